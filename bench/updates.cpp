/// Work around the gradients of a step: accumulating them over micro-batches, updating many parameters, and few rows of
/// a table.
#include "bench/classifier.h"
#include "bench/workloads.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/pools.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/random.h"

namespace gradus::bench {
namespace {

/// Eight micro-batches of 128, one update with the mean over 1024 examples.
Figures accumulate() {
  Sequential model = perceptron({2048, 2048});
  Adam optimizer({.learning_rate = learning_rate({2048, 2048})});
  SparseCategoricalCrossentropy loss_function(from_logits);
  const auto train_step = function(
      [&](Tensor x, Tensor y) {
        Gradients gradients;
        Loss total;
        for (auto [xb, yb] : micro_batches({x, y}, 128)) {
          GradientTape tape;
          Loss loss = loss_function(yb, model(xb, training));
          gradients += tape.gradient(loss, model.trainable_variables());
          total += loss;
        }
        optimizer.apply_gradients(gradients);
        return total;
      },
      function_options);
  const auto [x, y] = batch_of({1024, 784});
  model.build(x.spec());
  assign_given(model.trainable_variables());
  optimizer.build(model.trainable_variables());
  return measure_training(train_step, x, y);
}

std::vector<Shape> parameter_shapes() {
  std::vector<Shape> shapes;
  const auto add = [&](int count, const Shape& shape) { shapes.insert(shapes.end(), count, shape); };
  add(2, {2048, 2048});
  add(8, {1024, 1024});
  add(12, {512, 512});
  add(8, {256, 512});
  add(30, {512});
  return shapes;
}

/// Clip by the global norm, then AdamW, of 20,986,880 parameters whose gradients are given.
Figures adamw_update() {
  Variables parameters;
  Tensors gradients;
  for (const Shape& shape : parameter_shapes()) {
    const Variable parameter(random::normal(shape, {.stddev = 0.02}));
    parameters.add(parameter);
    gradients.push_back(random::normal(shape, {.stddev = 0.01}));
  }
  AdamW optimizer({.learning_rate = 3e-4, .weight_decay = 0.1, .epsilon = 1e-8});
  optimizer.build(parameters);
  const auto update = function(
      [&] { optimizer.apply_gradients(clip_by_global_norm(Gradients(parameters, gradients, constant(1.0)), 1.0)); },
      function_options);
  synchronize();
  const auto run = [&] { update(); };
  Figures figures = measure({.step = run, .step_without_reading = run, .wait = synchronize});
  figures.explain(update.explain());
  return figures;
}

/// A lazy step of Adam: 512 examples read 8 of a million rows of 64 each.
Figures table_update() {
  Sequential model{Embedding(1'000'000, 64), GlobalAveragePooling1D(), Dense(1)};
  Adam optimizer({.learning_rate = 1e-3, .lazy = true});
  const MeanSquaredError loss_function;
  const Tensor x = random::integers({512, 8}, {.high = 1'000'000, .seed = 1}),
               y = random::uniform({512, 1}, {.seed = 2});
  model.build(x.spec());
  optimizer.build(model.trainable_variables());
  return measure_training(train_step(model, optimizer, loss_function), x, y);
}

}  // namespace

void add_updates(Workloads& workloads) {
  workloads["accumulate"] = accumulate;
  workloads["adamw_update"] = adamw_update;
  workloads["table_update"] = table_update;
}

}  // namespace gradus::bench
