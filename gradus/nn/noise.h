/// Layers that disturb their input in training, and do nothing in inference. A rate outside [0, 1) or a
/// negative stddev is an InvalidArgument.
#pragma once
#include "gradus/nn/module.h"

namespace gradus {

/// [batch, time, channels]: drops whole channels of an example.
struct SpatialDropout1D : Module {
  explicit SpatialDropout1D(double rate);
};
/// [batch, rows, columns, channels]: drops whole channels of an example.
struct SpatialDropout2D : Module {
  explicit SpatialDropout2D(double rate);
};
/// [batch, depth, rows, columns, channels]: drops whole channels of an example.
struct SpatialDropout3D : Module {
  explicit SpatialDropout3D(double rate);
};
/// Adds numbers drawn from a normal distribution.
struct GaussianNoise : Module {
  explicit GaussianNoise(double stddev);
};
/// Multiplies with numbers drawn from a normal distribution around 1, of variance rate / (1 - rate).
struct GaussianDropout : Module {
  explicit GaussianDropout(double rate);
};
/// Dropout that keeps mean and variance of what selu gives (Klambauer et al. 2017).
struct AlphaDropout : Module {
  explicit AlphaDropout(double rate);
};

}  // namespace gradus
