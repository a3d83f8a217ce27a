/// Layers that are functions of a kind and a few numbers.
#include "gradus/nn/pools.h"
#include <functional>
#include "gradus/nn/cloned.h"
#include "gradus/nn/described.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/pool.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/special.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

using Options = std::vector<LayerOption>;

struct SpatialLayer final : Cloned<SpatialLayer>, Described {
  SpatialLayer(std::string_view layer, std::string_view kind, int spatial, Options options,
               std::function<Tensor(const Tensor&)> f)
      : name_of_layer(layer), name_of_kind(kind), spatial(spatial), options(std::move(options)), f(std::move(f)) {}
  LayerConfig config() const override { return {std::string(name_of_layer), options}; }
  std::string_view kind() const override { return name_of_kind; }
  void build(const Spec& input) override { check(input); }
  Tensor call(const Tensor& x) const override {
    check(x.spec());
    return f(x);
  }
  ChannelFlow channel_flow() const override { return {.kind = ChannelFlow::Kind::apart}; }
  void check(const Spec& input) const {
    require(input.shape.rank() == spatial + 2, name_of_layer, ": the input is ", input, ", expected ", spatial + 2,
            " dimensions: [batch, spatial..., channels]");
  }
  Tensor call_masked(const Tensor& x, const Tensor& mask) const override {
    check(x.spec());
    return of_masked ? of_masked(x, mask) : f(x);
  }
  bool looks_at_places() const override { return static_cast<bool>(of_masked); }
  bool mixes_places(const Shape&) const override { return true; }
  std::function<Tensor(const Tensor& x, const Tensor& mask)> of_masked = {};
  std::string_view name_of_layer, name_of_kind;
  int spatial;
  Options options;
  std::function<Tensor(const Tensor&)> f;
};

std::shared_ptr<Layer> window_layer(std::string_view layer, std::string_view kind, int spatial, Options options,
                                    std::function<Tensor(const Tensor&)> f) {
  return std::make_shared<SpatialLayer>(layer, kind, spatial, std::move(options), std::move(f));
}

using Pool = Tensor (*)(const Tensor&, const Sizes&, const PoolingOptions&);

template <class Size>
std::shared_ptr<Layer> pooling(std::string_view layer, std::string_view kind, Pool pool, Size size,
                               const PoolOptionsOf<Size>& options) {
  const Sizes window = size, strides = options.strides.value_or(size);
  for (const Sizes& sizes : {window, strides})
    for (std::int64_t each : sizes) require(each > 0, layer, ": sizes and strides must be positive, got ", each);
  Options made_with{{"pool_size", window},
                    {"strides", strides},
                    {"padding", std::string(options.padding == Padding::same ? "same" : "valid")}};
  return window_layer(layer, kind, static_cast<int>(window.size()), std::move(made_with),
                      [=, padding = options.padding](const Tensor& x) {
                        return pool(x, window, {.strides = strides, .padding = padding});
                      });
}

using Reduce = Tensor (*)(const Tensor&, ReduceOptions);

std::shared_ptr<Layer> global(std::string_view layer, std::string_view kind, Reduce reduce, int spatial,
                              bool keepdims) {
  return window_layer(layer, kind, spatial, {{"keepdims", keepdims}}, [=](const Tensor& x) {
    std::vector<int> axes;
    for (int i = 1; i <= spatial; ++i) axes.push_back(i);
    return reduce(x, {.axis = axes, .keepdims = keepdims});
  });
}

/// The mean of the places that count; 0 where none does.
std::shared_ptr<Layer> global_average_1d(bool keepdims) {
  constexpr std::string_view name = "GlobalAveragePooling1D";
  const auto mean = [keepdims](const Tensor& x) { return reduce_mean(x, {.axis = {1}, .keepdims = keepdims}); };
  auto layer =
      std::make_shared<SpatialLayer>(name, "global_average_pooling1d", 1, Options{{"keepdims", keepdims}}, mean);
  layer->of_masked = [keepdims](const Tensor& x, const Tensor& mask) {
    return in_computed_dtype(x, [&](const Tensor& wide) {
      const Tensor counts = expand_dims(spread_mask(mask, {x.shape()[0], x.shape()[1]}), -1);
      const ReduceOptions over{.axis = {1}, .keepdims = keepdims};
      const Tensor number = reduce_sum(cast(counts, wide.dtype()), over);
      return divide_no_nan(reduce_sum(where(counts, wide, fill_like(wide, 0)), over), number);
    });
  };
  return layer;
}

std::shared_ptr<Layer> padded(std::string_view layer, std::string_view kind, const Paddings& spatial) {
  Paddings all(1, {0, 0});
  std::vector<std::vector<std::int64_t>> made_with;
  for (const auto& [before, after] : spatial) {
    require(before >= 0 && after >= 0, layer, ": padding must not be negative, got {", before, ", ", after, "}");
    all.push_back({before, after});
    made_with.push_back({before, after});
  }
  all.push_back({0, 0});
  const OptionValue padding = made_with.size() == 1 ? OptionValue(made_with[0]) : OptionValue(made_with);
  return window_layer(layer, kind, static_cast<int>(spatial.size()), {{"padding", padding}},
                      [all](const Tensor& x) { return pad(x, all); });
}

Paddings on_either_side(const Sizes& sizes) {
  Paddings paddings;
  for (std::int64_t size : sizes) paddings.push_back({size, size});
  return paddings;
}

std::shared_ptr<Layer> upsampling(std::string_view layer, std::string_view kind, const Sizes& sizes) {
  for (std::int64_t size : sizes) require(size > 0, layer, ": sizes must be positive, got ", size);
  const OptionValue size = sizes.size() == 1 ? OptionValue(sizes[0]) : OptionValue(sizes);
  return window_layer(layer, kind, static_cast<int>(sizes.size()), {{"size", size}}, [sizes](Tensor x) {
    for (std::size_t i = 0; i < sizes.size(); ++i) x = repeat(x, sizes[i], static_cast<int>(i) + 1);
    return x;
  });
}

std::shared_ptr<Layer> interpolating(Pair size, ResizeMethod method) {
  require(size.rows > 0 && size.columns > 0, "UpSampling2D: sizes must be positive, got ", size.rows, " and ",
          size.columns);
  Options made_with{{"size", Sizes(size)}, {"interpolation", std::string(name_of(method))}};
  return window_layer("UpSampling2D", "up_sampling2d", 2, std::move(made_with), [=](const Tensor& x) {
    const Shape& shape = x.shape();
    return resize(x, {dimension::multiply(shape[1], size.rows), dimension::multiply(shape[2], size.columns)},
                  {.method = method});
  });
}

}  // namespace

MaxPooling1D::MaxPooling1D() : MaxPooling1D(2) {}
MaxPooling2D::MaxPooling2D() : MaxPooling2D(2) {}
MaxPooling3D::MaxPooling3D() : MaxPooling3D(2) {}
MaxPooling1D::MaxPooling1D(Single size, Pool1DOptions options)
    : Module(pooling("MaxPooling1D", "max_pooling1d", max_pool1d, size, options)) {}
MaxPooling2D::MaxPooling2D(Pair size, PoolOptions options)
    : Module(pooling("MaxPooling2D", "max_pooling2d", max_pool2d, size, options)) {}
MaxPooling3D::MaxPooling3D(Triple size, Pool3DOptions options)
    : Module(pooling("MaxPooling3D", "max_pooling3d", max_pool3d, size, options)) {}

AveragePooling1D::AveragePooling1D() : AveragePooling1D(2) {}
AveragePooling2D::AveragePooling2D() : AveragePooling2D(2) {}
AveragePooling3D::AveragePooling3D() : AveragePooling3D(2) {}
AveragePooling1D::AveragePooling1D(Single size, Pool1DOptions options)
    : Module(pooling("AveragePooling1D", "average_pooling1d", avg_pool1d, size, options)) {}
AveragePooling2D::AveragePooling2D(Pair size, PoolOptions options)
    : Module(pooling("AveragePooling2D", "average_pooling2d", avg_pool2d, size, options)) {}
AveragePooling3D::AveragePooling3D(Triple size, Pool3DOptions options)
    : Module(pooling("AveragePooling3D", "average_pooling3d", avg_pool3d, size, options)) {}

GlobalMaxPooling1D::GlobalMaxPooling1D(bool keepdims)
    : Module(global("GlobalMaxPooling1D", "global_max_pooling1d", reduce_max, 1, keepdims)) {}
GlobalMaxPooling2D::GlobalMaxPooling2D(bool keepdims)
    : Module(global("GlobalMaxPooling2D", "global_max_pooling2d", reduce_max, 2, keepdims)) {}
GlobalMaxPooling3D::GlobalMaxPooling3D(bool keepdims)
    : Module(global("GlobalMaxPooling3D", "global_max_pooling3d", reduce_max, 3, keepdims)) {}
GlobalAveragePooling1D::GlobalAveragePooling1D(bool keepdims) : Module(global_average_1d(keepdims)) {}
GlobalAveragePooling2D::GlobalAveragePooling2D(bool keepdims)
    : Module(global("GlobalAveragePooling2D", "global_average_pooling2d", reduce_mean, 2, keepdims)) {}
GlobalAveragePooling3D::GlobalAveragePooling3D(bool keepdims)
    : Module(global("GlobalAveragePooling3D", "global_average_pooling3d", reduce_mean, 3, keepdims)) {}

ZeroPadding1D::ZeroPadding1D(std::int64_t padding) : ZeroPadding1D(std::array{padding, padding}) {}
ZeroPadding1D::ZeroPadding1D(std::array<std::int64_t, 2> padding)
    : Module(padded("ZeroPadding1D", "zero_padding1d", {padding})) {}
ZeroPadding2D::ZeroPadding2D(Pair padding)
    : Module(padded("ZeroPadding2D", "zero_padding2d", on_either_side(padding))) {}
ZeroPadding2D::ZeroPadding2D(std::array<std::int64_t, 2> rows, std::array<std::int64_t, 2> columns)
    : Module(padded("ZeroPadding2D", "zero_padding2d", {rows, columns})) {}
ZeroPadding3D::ZeroPadding3D(Triple padding)
    : Module(padded("ZeroPadding3D", "zero_padding3d", on_either_side(padding))) {}

UpSampling1D::UpSampling1D(Single size) : Module(upsampling("UpSampling1D", "up_sampling1d", size)) {}
UpSampling2D::UpSampling2D(Pair size, UpSamplingOptions options)
    : Module(options.interpolation == ResizeMethod::nearest ? upsampling("UpSampling2D", "up_sampling2d", size)
                                                            : interpolating(size, options.interpolation)) {}
UpSampling3D::UpSampling3D(Triple size) : Module(upsampling("UpSampling3D", "up_sampling3d", size)) {}

}  // namespace gradus
