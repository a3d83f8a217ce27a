/// SpectralNormalization: keeps the kernel of a layer at spectral norm 1 (Miyato et al. 2018), with Keras's defaults.
#pragma once
#include <string>
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"

namespace gradus {

/// Options of SpectralNormalization.
struct SpectralNormalizationOptions {
  std::int64_t power_iterations = 1;  // steps of the power iteration per call
  std::string name = {};              // empty: by its class
  static constexpr auto ranges() { return std::array{Allowed::positive("power_iterations")}; }
};
/// In training, before each call, the kernel [..., n], as a matrix of n columns, is divided by its largest singular
/// value, and the layer's variable is assigned. Power iteration estimates that value with the variable vector_u [1, n].
/// In inference, and when frozen (set_trainable), the kernel is not changed. The layer has one kernel, or is an
/// Embedding (else InvalidArgument).
struct SpectralNormalization : Module {
  explicit SpectralNormalization(Module layer, SpectralNormalizationOptions options = {});
};

}  // namespace gradus
