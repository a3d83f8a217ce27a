/// Models whose C++ loops over a length that varies, or runs layers in training alone: the first build, for open sizes
/// and in inference mode, does not meet all of their layers; fit and all else that builds by a data set does.
#include <gtest/gtest.h>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::open_loops_test {
namespace {

/// Sequences [length, 2] of lengths 3 to 8.
Dataset<2> sequences() {
  return data::from_generator<2>(std::array{Spec{f32, {any_size, 2}}, Spec{f32, {1}}},
                                 [n = 3]() mutable -> std::optional<std::pair<Tensor, Tensor>> {
                                   if (n > 8) return std::nullopt;
                                   const Tensor x = random::normal({n, 2}, {.seed = static_cast<std::uint64_t>(n)});
                                   ++n;
                                   return std::pair{x, reshape(reduce_mean(x), {1})};
                                 })
      .padded_batch(2);
}

struct Loop {
  Dense cell{3, tanh}, out{1};
  Tensor operator()(const Tensor& x) const {
    Tensor h = zeros({x.shape()[0], 3});
    for (std::int64_t t = 0; t < x.shape()[1]; ++t) {
      const Tensor now = reshape(slice(x, {0, t, 0}, {-1, 1, -1}), {x.shape()[0], 2});
      h = cell(concat({now, h}, -1));
    }
    return out(h);
  }
};

struct Nested {
  Sequential stages{Dense(2), Model<Loop>()};
  Tensor operator()(const Tensor& x) const { return stages(x); }
};

/// A head beside the result that only training runs.
struct Auxiliary {
  Dense hidden{4, tanh}, out{1};
  Dense auxiliary{1};
  Tensor operator()(const Tensor& x) const {
    const Tensor h = hidden(x), y = out(h);
    return is_training() ? y + 0.1 * auxiliary(h) : y;
  }
};

/// A layer that nothing runs is none of anybody's business.
struct Unused {
  Dense cell{3, tanh}, never{5}, out{1};
  Tensor operator()(const Tensor& x) const {
    Tensor h = zeros({x.shape()[0], 3});
    for (std::int64_t t = 0; t < x.shape()[1]; ++t)
      h = h + cell(reshape(slice(x, {0, t, 0}, {-1, 1, -1}), {x.shape()[0], 2}));
    return out(h);
  }
};

template <class M> std::vector<Tensor> weights_of(const M& model) {
  std::vector<Tensor> all;
  for (const Variable& variable : model.variables()) all.push_back(variable.value());
  return all;
}
void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(bitwise_equal(a[i], b[i])) << i;
}

/// What fit learns, compiled and op by op.
template <class M> void expect_fits(std::size_t variables, const Dataset<2>& dataset) {
  const auto trained = [&](bool run_eagerly, bool first_built) {
    set_seed(3);
    M model;
    if (first_built) model.build({f32, {any_size, any_size, 2}});
    Adam optimizer({.learning_rate = 0.01});
    const History history = fit(model, optimizer, MeanSquaredError(), dataset,
                                {.epochs = 2, .function = {.run_eagerly = run_eagerly}, .verbose = false});
    EXPECT_LT(history.loss.back(), history.loss.front());
    EXPECT_EQ(model.trainable_variables().size(), variables);
    EXPECT_GT(evaluate(model, MeanSquaredError(), dataset).loss, 0);
    return weights_of(model);
  };
  const auto weights = trained(false, false);
  expect_same(weights, trained(true, false));
  trained(false, true);
}

TEST(OpenLoops, Fit) { expect_fits<Model<Loop>>(4, sequences()); }
TEST(OpenLoops, FitOfAModelWithin) { expect_fits<Model<Nested>>(6, sequences()); }

TEST(OpenLoops, ALayerThatNothingRuns) { expect_fits<Model<Unused>>(4, sequences()); }

TEST(OpenLoops, EvaluateAndPredictFirst) {
  Model<Loop> model;
  EXPECT_GT(evaluate(model, MeanSquaredError(), sequences()).loss, 0);
  EXPECT_EQ(model.trainable_variables().size(), 4u);
  const auto inputs = sequences().map([](Tensor x, Tensor) { return x; });
  Model<Loop> other;
  EXPECT_EQ(predict(other, inputs).shape(), (Shape{6, 1}));
  EXPECT_EQ(other.trainable_variables().size(), 4u);
  Adam optimizer;
  fit(other, optimizer, MeanSquaredError(), sequences(), {.verbose = false});
}

TEST(OpenLoops, TheOthersThatBuild) {
  Model<Loop> ranged, reported;
  SGD optimizer({.learning_rate = 1e-3});
  EXPECT_FALSE(learning_rate_range_test(ranged, optimizer, MeanSquaredError(), sequences(), {.steps = 4}).loss.empty());
  EXPECT_FALSE(precision_report(reported, MeanSquaredError(), sequences()).layers.empty());
}

TEST(OpenLoops, LayersOfTrainingAlone) {
  const Tensor x = random::normal({12, 4}, {.seed = 2});
  const auto dataset = data::from_tensor_slices(x, reduce_sum(x, {.axis = {1}, .keepdims = true})).batch(4);
  Model<Auxiliary> model;
  Adam optimizer;
  fit(model, optimizer, MeanSquaredError(), dataset, {.verbose = false});
  EXPECT_EQ(model.trainable_variables().size(), 6u);
  EXPECT_EQ(optimizer.iterations(), 3);
}

}  // namespace
}  // namespace gradus::open_loops_test
