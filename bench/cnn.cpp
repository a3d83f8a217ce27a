/// Training steps of convolutional networks: full convolutions, and depthwise-separable ones with normalisation.
#include "bench/convolutional.h"
#include "bench/inputs.h"
#include "bench/training.h"

namespace gradus::bench {
namespace {

Sequential separable_network() {
  Sequential model{Conv2D(32, 3, {.strides = 2, .padding = Padding::same, .use_bias = false})};
  const auto normalize = [&] {
    model.add(BatchNormalization({.momentum = 0.99, .epsilon = 1e-3}));
    model.add(Lambda([](const Tensor& x) { return relu(x); }));
  };
  normalize();
  for (const auto& [channels, stride] : {std::pair{64, 1}, {128, 2}, {128, 1}, {256, 2}, {256, 1}, {256, 1}}) {
    model.add(DepthwiseConv2D(3, {.strides = stride, .padding = Padding::same, .use_bias = false}));
    normalize();
    model.add(Conv2D(channels, 1, {.use_bias = false}));
    normalize();
  }
  model.add(GlobalAveragePooling2D());
  model.add(Dense(10));
  return model;
}

Figures train_images(Sequential model, Optimizer optimizer, Shape images) {
  images.set(0, rows_of_batch(images[0]));
  const SparseCategoricalCrossentropy loss_function(from_logits);
  const auto [x, y] = batch_of(images);
  model.build(x.spec());
  optimizer.build(model.trainable_variables());
  return measure_training(train_step(model, optimizer, loss_function), x, y);
}

}  // namespace

void add_cnn(Workloads& workloads) {
  workloads["cnn"] = [] {
    return train_images(convolutional_network(), Adam({.learning_rate = 1e-3}), {64, 28, 28, 1});
  };
  workloads["dwsep"] = [] {
    return train_images(separable_network(), SGD({.learning_rate = 0.01, .momentum = 0.9}), {64, 32, 32, 3});
  };
}

}  // namespace gradus::bench
