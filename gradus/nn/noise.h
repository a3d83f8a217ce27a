/// Regularizing layers that disturb their input in training, and do nothing in inference. A rate outside [0, 1) or a
/// negative stddev is an InvalidArgument.
#pragma once
#include "gradus/nn/module.h"

namespace gradus {

/// Drops whole channels of an example: [batch, time, channels].
struct SpatialDropout1D : Module {
  explicit SpatialDropout1D(double rate);
};
/// Drops whole channels of an example: [batch, rows, columns, channels].
struct SpatialDropout2D : Module {
  explicit SpatialDropout2D(double rate);
};
/// Drops whole channels of an example: [batch, depth, rows, columns, channels].
struct SpatialDropout3D : Module {
  explicit SpatialDropout3D(double rate);
};
/// Adds numbers drawn from a normal distribution.
struct GaussianNoise : Module {
  explicit GaussianNoise(double stddev);
};
/// Multiplies by numbers drawn from a normal distribution around 1, of variance rate / (1 - rate).
struct GaussianDropout : Module {
  explicit GaussianDropout(double rate);
};
/// Dropout that keeps mean and variance of selu's results (Klambauer et al. 2017).
struct AlphaDropout : Module {
  explicit AlphaDropout(double rate);
};

}  // namespace gradus
