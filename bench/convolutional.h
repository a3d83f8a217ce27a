/// The network of the workloads `cnn` and `channels`: three convolutions and two dense layers, for ten classes.
#pragma once
#include "gradus/nn/convolutions.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/pools.h"

namespace gradus::bench {

inline Sequential convolutional_network() {
  const auto layer = [](std::int64_t filters, std::int64_t stride) {
    return Conv2D(filters, 3, {.strides = stride, .padding = Padding::same, .activation = relu});
  };
  return Sequential{layer(32, 1), layer(64, 2), layer(64, 1), MaxPooling2D(), Flatten(), Dense(128, relu), Dense(10)};
}

}  // namespace gradus::bench
