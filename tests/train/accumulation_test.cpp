/// A batch in parts is the whole batch: by fit, by tape and by accumulated_gradients, to 1e-12 in f64.
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/gradients/batches.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/fit.h"
#include "tests/errors.h"

namespace gradus::accumulation_test {
namespace {

constexpr std::int64_t batch_size = 22, batches = 3;

/// Labels with a class that is ignored, and weights, some of them 0, whole parts of either included.
struct Data {
  Tensor x = random::normal({batch_size * batches, 6}, {.dtype = f64, .seed = 1});
  Tensor y = where(range(batch_size * batches) < 8, full({batch_size * batches}, 3, i32),
                   random::integers({batch_size * batches}, {.low = 0, .high = 4, .seed = 2}));
  Tensor weight =
      where(logical_and(range(batch_size * batches) > 40, range(batch_size* batches) < 55),
            zeros({batch_size * batches}, f64), random::uniform({batch_size * batches}, {.dtype = f64, .seed = 3}));
  Dataset<3> dataset = data::from_tensor_slices(x, y, weight).batch(batch_size);
};

Sequential make_model() {
  set_seed(7);
  Sequential model{Dense(9, tanh, {.dtype = f64}), Dense(4, linear, {.dtype = f64})};
  model.build({f64, {any_size, 6}});
  return model;
}

/// Kinds of optimizers, by what has to act once on the whole.
std::vector<Optimizer> optimizers() {
  const Schedule schedule = CosineDecay({.initial_learning_rate = 0.1, .decay_steps = 5});
  return {SGD({.learning_rate = schedule, .momentum = 0.9, .nesterov = true, .global_clipnorm = 0.05}),
          SGD({.learning_rate = 0.1, .weight_decay = 0.1, .clipnorm = 0.03}),
          Adam({.learning_rate = schedule, .amsgrad = true, .global_clipnorm = 0.1}),
          AdamW({.learning_rate = 0.01, .clipnorm = 0.05}),
          RMSprop({.learning_rate = 0.01, .momentum = 0.5, .centered = true, .weight_decay = 0.01})};
}

const SparseCategoricalCrossentropy masked(from_logits, {.ignore_class = 3});

double difference(const Module& a, const Module& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.variables().size(); ++i)
    most = std::max(most, max_abs_difference(a.variables()[i], b.variables()[i]));
  return most;
}

/// One way to train on the batches: gives the mean of the losses of the first epoch.
using Way = std::function<double(Sequential&, Optimizer&, std::int64_t micro_batch)>;

double by_fit(Sequential& model, Optimizer& optimizer, std::int64_t micro_batch) {
  const History history = fit(model, optimizer, masked, Data().dataset,
                              {.epochs = 2, .sample_weight = true, .micro_batch = micro_batch, .verbose = false});
  return history.loss[0];
}

double by_steps(const std::function<LossAndGradients(In)>& step, Optimizer& optimizer) {
  Loss first;
  for (int epoch = 0; epoch < 2; ++epoch)
    for (auto [x, y, weight] : Data().dataset) {
      const LossAndGradients result = step(Tensors{x, y, weight});
      optimizer.apply_gradients(result.gradients);
      if (epoch == 0) first += result.loss;
    }
  return first.item();
}

double by_tape(Sequential& model, Optimizer& optimizer, std::int64_t micro_batch) {
  return by_steps(
      [&](In in) {
        LossAndGradients all;
        for (auto [x, y, weight] : micro_batches({in[0], in[1], in[2]}, micro_batch)) {
          GradientTape tape;
          const Loss loss = masked(y, model(x, training), weight);
          all.gradients += tape.gradient(loss, model.trainable_variables());
          all.loss += loss;
        }
        return all;
      },
      optimizer);
}

double by_accumulated_gradients(Sequential& model, Optimizer& optimizer, std::int64_t micro_batch) {
  return by_steps(
      [&](In in) {
        return accumulated_gradients(
            [&](Tensor x, Tensor y, Tensor weight) { return masked(y, model(x, training), weight); },
            model.trainable_variables(), {in[0], in[1], in[2]}, {.micro_batch = micro_batch});
      },
      optimizer);
}

TEST(Accumulation, IsTheWholeBatch) {
  const std::size_t kinds = optimizers().size();
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    Sequential whole = make_model();
    Optimizer of_whole = optimizers()[kind];
    const double loss = by_fit(whole, of_whole, 0);
    for (const Way& way : {Way(by_fit), Way(by_tape), Way(by_accumulated_gradients)})
      for (const std::int64_t rows : {batch_size, std::int64_t{7}, std::int64_t{4}}) {
        Sequential parts = make_model();
        Optimizer of_parts = optimizers()[kind];
        EXPECT_NEAR(way(parts, of_parts, rows), loss, 1e-12) << "optimizer " << kind << ", parts of " << rows;
        EXPECT_LT(difference(whole, parts), 1e-12) << "optimizer " << kind << ", parts of " << rows;
        EXPECT_EQ(of_parts.iterations(), of_whole.iterations()) << "updates are counted, not parts";
      }
  }
}

/// A penalty beside the loss counts once, whatever the parts.
TEST(Accumulation, PenaltiesCountOnce) {
  Sequential whole = make_model(), parts = make_model();
  const auto penalised = [](const Sequential& model) {
    return [&model](Tensor y, Tensor prediction, Tensor weight) {
      Loss loss = masked(y, prediction, weight);
      for (const Variable& v : model.trainable_variables()) loss = loss + 0.1 * reduce_sum(square(v));
      return loss;
    };
  };
  SGD one({.learning_rate = 0.1}), other({.learning_rate = 0.1});
  const Data data;
  const auto all_weighted = data::from_tensor_slices(data.x, data.y, data.weight + 0.5).batch(batch_size);
  const FitOptions options{.epochs = 2, .sample_weight = true, .verbose = false};
  FitOptions in_parts = options;
  in_parts.micro_batch = 5;
  fit(whole, one, [&](Tensor y, Tensor p, Tensor w = {}) { return penalised(whole)(y, p, w); }, all_weighted, options);
  fit(
      parts, other, [&](Tensor y, Tensor p, Tensor w = {}) { return penalised(parts)(y, p, w); }, all_weighted,
      in_parts);
  EXPECT_LT(difference(whole, parts), 1e-12);
}

/// A penalty on a sum would count once for each part.
TEST(MicroBatches, RefuseASumWithAPenalty) {
  Sequential model{Dense(1)};
  const Tensor x = random::normal({6, 2}, {.seed = 1}), y = random::normal({6, 1}, {.seed = 2});
  model.build(x.spec());
  SGD optimizer;
  const auto loss = [&](const Tensor& t, const Tensor& p) {
    return Loss::sum(reduce_sum(square(t - p)) / 6) + 0.1 * reduce_sum(square(model.variables()[0].value()));
  };
  const auto train = [&](std::int64_t micro_batch) {
    fit(model, optimizer, loss, data::from_tensor_slices(x, y).batch(6),
        {.micro_batch = micro_batch, .verbose = false});
  };
  train(0);
  expect_error<InvalidArgument>([&] { train(2); }, {"fit: micro_batch", "Loss::sum with a penalty"});
}

}  // namespace
}  // namespace gradus::accumulation_test
