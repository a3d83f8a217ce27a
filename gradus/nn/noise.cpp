/// The random numbers of the layers of noise.
#include "gradus/nn/noise.h"
#include "gradus/base/ranges.h"
#include <cmath>
#include "gradus/nn/cloned.h"
#include "gradus/nn/described.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"

namespace gradus {
namespace {

/// A layer that does something to its input in training alone.
struct NoiseLayer final : ClonedMasked<NoiseLayer>, Described {
  NoiseLayer(std::string_view c, std::string_view k, double s, Tensor (*f)(const Tensor&, double))
      : name_of_class(c), name_of_kind(k), size(s), disturb(f) {}
  LayerConfig config() const override {
    return {std::string(name_of_class), {{name_of_class == "GaussianNoise" ? "stddev" : "rate", size}}};
  }
  std::string_view kind() const override { return name_of_kind; }
  void build(const Spec&) override {}
  Tensor call(const Tensor& x) const override {
    warn_if_mode_unsaid(name_of_kind);
    return is_training() && size > 0 ? disturb(x, size) : x;
  }
  /// In inference.
  ChannelFlow channel_flow() const override { return {.kind = ChannelFlow::Kind::apart}; }
  std::string_view name_of_class, name_of_kind;  // literals
  double size;
  Tensor (*disturb)(const Tensor&, double);
};

std::shared_ptr<Layer> noise(std::string_view layer, std::string_view kind, double size,
                             Tensor (*disturb)(const Tensor&, double)) {
  return std::make_shared<NoiseLayer>(layer, kind, size, disturb);
}

double checked_rate(std::string_view layer, double rate) {
  check_number(layer, "the rate", Allowed::share_below_one("rate"), rate);
  return rate;
}

/// [batch, 1 ..., channels]
Tensor spatial_dropout(const Tensor& x, double rate) {
  Shape channels = x.shape();
  for (int i = 1; i < channels.rank() - 1; ++i) channels.set(i, 1);
  const Tensor drawn = random::uniform(channels, {.dtype = computed_in(x.dtype())});
  return where(drawn < rate, fill_like(x, 0), x * (1 / (1 - rate)));
}
Tensor spatial_dropout_1d(const Tensor& x, double rate) {
  require(x.shape().rank() == 3, "SpatialDropout1D: the input is ", x.spec(), ", expected [batch, time, channels]");
  return spatial_dropout(x, rate);
}
Tensor spatial_dropout_2d(const Tensor& x, double rate) {
  require(x.shape().rank() == 4, "SpatialDropout2D: the input is ", x.spec(),
          ", expected [batch, rows, columns, channels]");
  return spatial_dropout(x, rate);
}

Tensor spatial_dropout_3d(const Tensor& x, double rate) {
  require(x.shape().rank() == 5, "SpatialDropout3D: the input is ", x.spec(),
          ", expected [batch, depth, rows, columns, channels]");
  return spatial_dropout(x, rate);
}

Tensor gaussian_noise(const Tensor& x, double stddev) {
  return x + random::normal(x.shape(), {.stddev = stddev, .dtype = x.dtype()});
}
Tensor gaussian_dropout(const Tensor& x, double rate) {
  return x * random::normal(x.shape(), {.mean = 1, .stddev = std::sqrt(rate / (1 - rate)), .dtype = x.dtype()});
}

/// Dropped elements take the value that selu saturates at; then mean and variance are put right.
Tensor alpha_dropout(const Tensor& x, double rate) {
  constexpr double saturated = -1.0507009873554805 * 1.6732632423543772;
  const double a = 1 / std::sqrt((1 - rate) * (1 + rate * saturated * saturated)), b = -a * saturated * rate;
  const Tensor drawn = random::uniform(x.shape(), {.dtype = computed_in(x.dtype())});
  return where(drawn < rate, scalar_like(x, saturated, "AlphaDropout"), x) * a + b;
}

}  // namespace

SpatialDropout1D::SpatialDropout1D(double rate)
    : Module(
          noise("SpatialDropout1D", "spatial_dropout1d", checked_rate("SpatialDropout1D", rate), spatial_dropout_1d)) {}
SpatialDropout2D::SpatialDropout2D(double rate)
    : Module(
          noise("SpatialDropout2D", "spatial_dropout2d", checked_rate("SpatialDropout2D", rate), spatial_dropout_2d)) {}
SpatialDropout3D::SpatialDropout3D(double rate)
    : Module(
          noise("SpatialDropout3D", "spatial_dropout3d", checked_rate("SpatialDropout3D", rate), spatial_dropout_3d)) {}
GaussianNoise::GaussianNoise(double stddev) : Module(noise("GaussianNoise", "gaussian_noise", stddev, gaussian_noise)) {
  check_number("GaussianNoise", "stddev", Allowed::not_negative("stddev"), stddev);
}
GaussianDropout::GaussianDropout(double rate)
    : Module(noise("GaussianDropout", "gaussian_dropout", checked_rate("GaussianDropout", rate), gaussian_dropout)) {}
AlphaDropout::AlphaDropout(double rate)
    : Module(noise("AlphaDropout", "alpha_dropout", checked_rate("AlphaDropout", rate), alpha_dropout)) {}

}  // namespace gradus
