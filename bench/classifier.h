/// A multi-layer perceptron of ten classes, its Adam, and batches to train it with.
#pragma once
#include <vector>
#include "bench/workloads.h"
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/optim/optimizers.h"

namespace gradus::bench {

struct Batch {
  Tensor x, y;  // f32 [rows, inputs] in [0, 1), i32 [rows] of ten classes
};
inline Batch batch_of(std::int64_t rows, std::int64_t inputs) {
  return {random::uniform({rows, inputs}, {.seed = 0}), random::integers({rows}, {.high = 10, .seed = 1})};
}

inline Sequential perceptron(const std::vector<std::int64_t>& hidden) {
  Sequential model;
  for (std::int64_t units : hidden) model.add(Dense(units, relu));
  model.add(Dense(10));
  return model;
}

/// train_step() is the whole of a training step, compiled.
struct Classifier {
  explicit Classifier(const std::vector<std::int64_t>& hidden, const Policy& policy = float32)
      : model(perceptron(hidden)) {
    model.set_policy(policy);
  }
  Classifier(const Classifier&) = delete;

  Sequential model;
  Adam optimizer{{.learning_rate = 1e-3}};
  SparseCategoricalCrossentropy loss_function{from_logits};

  auto train_step() {
    return function(
        [this](Tensor x, Tensor y) {
          GradientTape tape;
          Loss loss = loss_function(y, cast(model(x, training), f32));
          optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
          return loss;
        },
        function_options);
  }
};

}  // namespace gradus::bench
