/// A model whose halves are on two devices, and some steps of its training: what tests of the processor's logical
/// devices and of a plugin's have in common.
#pragma once
#include <vector>
#include "gradus/gradus.h"

namespace gradus {

struct Halves {
  Device a, b;
  Dense first{16, tanh}, second{4};
  Tensor operator()(Tensor x) const {
    {
      const DeviceScope scope(a);
      x = first(x);
    }
    const DeviceScope scope(b);
    return second(x);
  }
};

/// Five steps. The losses, and in `state` if it is given the Variables of the model and of Adam.
inline std::vector<Tensor> losses_of_halves(Device a, Device b, std::vector<Tensor>* state = nullptr) {
  set_seed(3);
  Model<Halves> model({.a = a, .b = b});
  Adam optimizer({.learning_rate = 1e-2});
  const Tensor x = random::normal({24, 8}, {.seed = 1}), y = random::integers({24}, {.high = 4, .seed = 9});
  auto step = function([&](Tensor features, Tensor labels) {
    GradientTape tape;
    Loss loss = Loss::mean(sparse_categorical_crossentropy(labels, model(features, training), from_logits));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  std::vector<Tensor> losses;
  for (int i = 0; i < 5; ++i) losses.push_back(step(x, y).value());
  if (state)
    for (const Variable& variable : model.variables() + optimizer.variables()) state->push_back(variable.value());
  return losses;
}

}  // namespace gradus
