/// A multi-layer perceptron of ten classes and its Adam.
#pragma once
#include <algorithm>
#include <vector>
#include "bench/inputs.h"
#include "bench/training.h"
#include "gradus/nn/layers.h"

namespace gradus::bench {

inline Sequential perceptron(const std::vector<std::int64_t>& hidden) {
  Sequential model;
  for (std::int64_t units : hidden) model.add(Dense(units, relu));
  model.add(Dense(10));
  return model;
}

/// A wide network is thrown off by Adam's first steps of 1e-3, and after that rounding decides on its loss.
inline double learning_rate(const std::vector<std::int64_t>& hidden) {
  return *std::ranges::max_element(hidden) > 1000 ? 1e-4 : 1e-3;
}

struct Classifier {
  explicit Classifier(const std::vector<std::int64_t>& hidden, const Policy& policy = float32)
      : model(perceptron(hidden)), optimizer({.learning_rate = learning_rate(hidden)}) {
    model.set_policy(policy);
  }
  Classifier(const Classifier&) = delete;

  Sequential model;
  Adam optimizer;
  SparseCategoricalCrossentropy loss_function{from_logits};

  auto train_step() { return bench::train_step(model, optimizer, loss_function); }
};

}  // namespace gradus::bench
