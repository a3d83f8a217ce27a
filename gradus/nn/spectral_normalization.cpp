/// The kernel is assigned, as in Keras: gradients are by the normalized kernel.
#include "gradus/nn/spectral_normalization.h"
#include "gradus/nn/cloned.h"
#include "gradus/nn/initializers.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

/// x / |x|; 0 stays.
Tensor unit(const Tensor& x) { return x * rsqrt(maximum(reduce_sum(square(x)), 1e-12)); }

struct SpectralNormalizationLayer final : Cloned<SpectralNormalizationLayer> {
  SpectralNormalizationLayer(Module given, SpectralNormalizationOptions o)
      : layer(std::move(given)), options(std::move(o)) {
    check_options("SpectralNormalization", options);
    name_by_kind(layer.layer_behind());
  }
  std::string_view kind() const override { return "spectral_normalization"; }
  std::vector<std::shared_ptr<Layer>> children() const override { return {child_of(layer)}; }
  void build(const Spec& input) override {
    Layer& inner = layer.layer_behind();
    inner.ensure_built(input);
    const Variables kernels = inner.kernels();
    require(kernels.size() == 1 && kernels[0].value().shape().rank() >= 2, "SpectralNormalization: the layer `",
            inner.name(), "` has ", kernels.size(), " kernels, expected one of at least two dimensions");
    const Tensor kernel = kernels[0].value();
    const Tensor first = random::truncated_normal({1, kernel.shape().back()}, {.stddev = 0.02});
    add_variable("vector_u", cast(first, computed_in(kernel.dtype())), {.trainable = false});
  }
  Tensor call(const Tensor& x) const override {
    warn_if_mode_unsaid("spectral normalization");
    if (is_training() && is_trainable()) normalize();
    return layer.layer_behind().run(x);
  }
  Tensor compute_mask(const Tensor& x, const Tensor& mask) const override {
    return layer.layer_behind().compute_mask(x, mask);
  }

 private:
  void normalize() const {
    Variable& kernel = layer.layer_behind().kernels()[0];
    Variable& vector_u = variable(0);
    const Tensor before = kernel, wide = cast(before, vector_u.value().dtype());
    const Tensor matrix = stop_gradient(reshape(wide, {-1, before.shape().back()}));
    Tensor u = vector_u, v;
    for (std::int64_t i = 0; i < options.power_iterations; ++i) {
      v = unit(matmul(u, transpose(matrix)));
      u = unit(matmul(v, matrix));
    }
    const Tensor sigma = reduce_sum(matmul(v, matrix) * u);
    const Tensor divided = where(equal(sigma, 0), matrix, matrix / sigma);  // a kernel of zeros stays
    vector_u.assign(u);
    kernel.assign(cast(reshape(divided, before.shape()), before.dtype()));
  }
  Module layer;
  SpectralNormalizationOptions options;
};

}  // namespace

SpectralNormalization::SpectralNormalization(Module layer, SpectralNormalizationOptions options)
    : Module(named(std::make_shared<SpectralNormalizationLayer>(std::move(layer), options), options.name)) {}

}  // namespace gradus
