// A batch through a model with one output, by the function that fit uses too.
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/erased/erased.h"
#include "gradus/gradus.h"

namespace gradus::examine_test {
namespace {

struct Net {
  Dense first{8}, last{2};
  Tensor operator()(Tensor x) const { return last(relu(first(x))); }
};

/// The losses of the epochs, and the first kernel.
template <class Train> auto trained(const Train& train) {
  set_seed(3);
  Model<Net> model;
  SGD sgd({.learning_rate = 0.05});
  const History history = train(model, sgd);
  return std::pair(history.loss, model.variables()[0].value().template to_vector<float>());
}

/// Trains by fit, and by an erased task; gives what both gave.
template <class Data> auto both(const Data& data, erased::OneOutput parts) {
  const SparseCategoricalCrossentropy loss(from_logits);
  FitOptions options{.epochs = 2, .verbose = false};
  options.sample_weight = parts.is_weighted;
  options.class_weight = parts.class_weights;
  parts.loss = [&](const Tensor& y, const Tensor& prediction, const auto& weights) {
    return OutputLoss(loss).weighed(y, prediction, weights);
  };
  const auto typed = [&](Model<Net>& model, SGD& sgd) { return fit(model, sgd, loss, data, options); };
  const auto erased = [&](Model<Net>& model, SGD& sgd) {
    parts.call = [&](erased::In in) { return model(in[0]); };
    erased::Task task{.fields = parts.is_weighted ? 3u : 2u};
    task.examine = [&](erased::In fields) { return erased::examine(model.layer_behind(), parts, fields); };
    task.build = [&](const std::vector<Spec>& specs, CallMode mode) {
      return build_all(model.layer_behind(), std::span(specs).first(1), mode);
    };
    return erased::fit(model, sgd, task, data.pipeline(), options);
  };
  return std::pair(trained(typed), trained(erased));
}

const Tensor x() { return random::stateless_normal({24, 3}, constant({1, 2})); }
const Tensor y() { return cast(reduce_sum(x(), {.axis = {1}}) > 0, i32); }

TEST(Examine, WeighsExamplesAsFitDoes) {
  const Tensor weight = cast(mod(range(24), 3), f32);
  const Tensor holed = where(expand_dims(equal(weight, 0), 1), full({24, 3}, NAN), x());  // examples of weight 0
  const auto [typed, erased] =
      both(data::from_tensor_slices(holed, y(), weight).batch(8), {.inputs = 1, .is_weighted = true});
  EXPECT_EQ(typed, erased);
  EXPECT_TRUE(std::isfinite(typed.first.back()));
}

TEST(Examine, WeighsClassesAsFitDoes) {
  const auto [typed, erased] =
      both(data::from_tensor_slices(x(), y()).batch(8), {.inputs = 1, .class_weights = {{0, 1.0}, {1, 3.0}}});
  EXPECT_EQ(typed, erased);
}

}  // namespace
}  // namespace gradus::examine_test
