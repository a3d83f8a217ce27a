/// SpectralNormalization: a layer whose kernel is kept at spectral norm 1 (Miyato et al. 2018), with Keras's defaults.
#pragma once
#include <string>
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"

namespace gradus {

struct SpectralNormalizationOptions {
  std::int64_t power_iterations = 1;
  std::string name = {};
  static constexpr auto ranges() { return std::array{Allowed::positive("power_iterations")}; }
};
/// In training, before each call: the kernel [..., n], as a matrix of n columns, is divided by its largest singular
/// value, which power iteration follows by the variable vector_u [1, n], and the layer's variable is assigned; in
/// inference, and frozen (set_trainable), the layer as it is. The layer has one kernel, or is an Embedding (else
/// InvalidArgument).
struct SpectralNormalization : Module {
  explicit SpectralNormalization(Module layer, SpectralNormalizationOptions options = {});
};

}  // namespace gradus
