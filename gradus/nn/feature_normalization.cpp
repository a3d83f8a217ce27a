/// Statistics are merged chunk by chunk (Chan, Golub and LeVeque 1979), so that no large numbers are subtracted from
/// each other.
#include "gradus/nn/feature_normalization.h"
#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/notice.h"
#include "gradus/base/ranges.h"
#include "gradus/function/pending.h"
#include "gradus/function/variable_cell.h"
#include "gradus/nn/cloned.h"
#include "gradus/nn/described.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

constexpr double smallest_deviation = 1e-7;
constexpr std::int64_t chunk_rows = 256;

struct Moments1D {
  std::int64_t count = 0;
  std::vector<double> mean, square;  // square: the sum of squared distances from the mean

  void add(const Tensor& x, int axis) {
    const Shape& shape = x.shape();
    const int at = shape.normalized(axis);
    std::int64_t outer = 1, inner = 1;
    for (int i = 0; i < shape.rank(); ++i) (i < at ? outer : inner) *= i == at ? 1 : shape[i];
    const auto features = static_cast<std::size_t>(shape[at]);
    const std::int64_t more = outer * inner;
    if (mean.empty()) mean.resize(features), square.resize(features);
    require<DataError>(mean.size() == features, "adapt: an element has ", features, " features along axis ", axis,
                       ", those before have ", mean.size());
    if (more == 0) return;
    with_type(x.dtype(), [&]<class T>(T) {
      const T* values = x.host<T>();
      for (std::size_t feature = 0; feature < features; ++feature) {
        const auto for_each = [&](const auto& visit) {
          for (std::int64_t o = 0; o < outer; ++o) {
            const T* row = values + (o * shape[at] + static_cast<std::int64_t>(feature)) * inner;
            for (std::int64_t i = 0; i < inner; ++i) visit(static_cast<double>(static_cast<wide_t<T>>(row[i])));
          }
        };
        double sum = 0, distances = 0;
        for_each([&](double v) { sum += v; });
        const double chunk_mean = sum / static_cast<double>(more);
        for_each([&](double v) { distances += (v - chunk_mean) * (v - chunk_mean); });
        join(feature, more, chunk_mean, distances);
      }
    });
    count += more;
  }

 private:
  template <class T> using wide_t = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
  void join(std::size_t feature, std::int64_t more, double chunk_mean, double distances) {
    const double n = static_cast<double>(count), m = static_cast<double>(more), step = chunk_mean - mean[feature];
    mean[feature] += step * m / (n + m);
    square[feature] += distances + step * step * n * m / (n + m);
  }
};

Tensor tensor_of(const std::vector<double>& values, DType t) {
  return cast(from_values(values, {static_cast<std::int64_t>(values.size())}), t);
}

struct NormalizationLayer final : ClonedMasked<NormalizationLayer>, Described {
  explicit NormalizationLayer(int a) : axis(a), first_mean{0}, first_variance{1} {}
  NormalizationLayer(std::vector<double> means, std::vector<double> variances)
      : axis(-1), first_mean(std::move(means)), first_variance(std::move(variances)), has_statistics(true) {}
  std::string_view kind() const override { return "normalization"; }
  LayerConfig config() const override {
    return {"Normalization", {{"axis", std::vector<std::int64_t>{is_built() ? from_end : axis}}}};
  }
  void build(const Spec& input) override {
    const int at = input.shape.normalized(axis);
    require(input.shape[at] >= 0, "Normalization: the input is ", input, ", its features, dimension ", at,
            ", must be known");
    from_end = at - input.shape.rank();
    const Shape features{input.shape[at]};
    const DType t = is_floating(input.dtype) ? computed_in(input.dtype) : f32;
    const auto given = static_cast<std::int64_t>(first_mean.size());
    require(given == 1 || given == features[0], "Normalization: the input is ", input, ", but ", given,
            " means are given");
    add_variable("mean", broadcast_to(tensor_of(first_mean, t), features), {.trainable = false});
    add_variable("variance", broadcast_to(tensor_of(first_variance, t), features), {.trainable = false});
    first_value = variable(0).cell()->read();
  }
  Tensor call(const Tensor& x) const override {
    warn_if_not_adapted();
    const DType t = variable(0).value().dtype();
    const Tensor deviation = maximum(sqrt(variable(1).value()), smallest_deviation);
    const Tensor y = (cast(x, t) - aligned(variable(0).value())) / aligned(deviation);
    return is_floating(x.dtype()) ? cast(y, x.dtype()) : y;
  }
  /// [features, 1, 1 ...]: broadcast against inputs of any rank.
  Tensor aligned(const Tensor& feature) const {
    Shape shape{feature.shape()[0]};
    for (int i = -1; i > from_end; --i) shape.push_back(1);
    return reshape(feature, shape);
  }
  void set(const Moments1D& moments) {
    const auto features = static_cast<std::int64_t>(moments.mean.size());
    std::vector<double> variance;
    for (const double square : moments.square) variance.push_back(square / static_cast<double>(moments.count));
    const auto assign = [&](std::size_t i, const std::vector<double>& values) {
      Variable& v = variable(i);
      require(v.value().shape() == Shape{features}, "Normalization: adapt: the data has ", features,
              " features, the layer was built for ", v.value().shape()[0]);
      v.assign(tensor_of(values, v.value().dtype()));
    };
    assign(0, moments.mean);
    assign(1, variance);
  }
  /// A training goes through a layer that was given statistics neither here nor by adapt() or a file: one warning a
  /// process.
  void warn_if_not_adapted() const {
    if (has_statistics || !Pending::mine().is_recording() || variable(0).cell()->read().node() != first_value.node())
      return;
    static std::atomic<bool> warned{false};
    if (warned.exchange(true)) return;
    notice(text("gradus: a gradient is being recorded through ", name().empty() ? "normalization" : name(),
                ", which was not adapted: it changes nothing; call adapt(dataset) before training\n"));
  }

  const int axis;
  const std::vector<double> first_mean, first_variance;  // of each feature, or of all
  const bool has_statistics = false;                     // these are the user's
  int from_end = -1;                                     // the axis, counted from the end
  Tensor first_value;                                    // of the mean, as long as nothing was assigned
};

void adapt_layer(Layer& layer, const Moments1D& moments, const Spec& input) {
  require<DataError>(moments.count > 0, "Normalization: adapt: the data set is empty");
  layer.ensure_built(input);
  static_cast<NormalizationLayer&>(layer).set(moments);
}

}  // namespace

Normalization::Normalization() : Normalization(-1) {}
Normalization::Normalization(int axis) : Module(std::make_shared<NormalizationLayer>(axis)) {}
Normalization::Normalization(std::vector<double> mean, std::vector<double> variance)
    : Module(std::make_shared<NormalizationLayer>(mean, variance)) {
  require(!mean.empty() && mean.size() == variance.size(), "Normalization: ", mean.size(), " means and ",
          variance.size(), " variances, expected as many of both");
  for (const double m : mean) check_number("Normalization", "a mean", Allowed::finite("mean"), m);
  for (const double v : variance) check_number("Normalization", "a variance", Allowed::not_negative("variance"), v);
}

void Normalization::adapt(const Tensor& x) {
  const HostFloats floats;
  require(x.shape().rank() > 0, "Normalization: adapt: the data is a scalar ", x.spec(), ", it has no features");
  Moments1D moments;
  moments.add(x, layer_as<NormalizationLayer>(*this, "Normalization").axis);
  adapt_layer(layer_behind(), moments, x.spec());
}

void Normalization::adapt_to(const Pipeline& dataset) {
  const HostFloats floats;
  const int axis = layer_as<NormalizationLayer>(*this, "Normalization").axis;
  const Spec& element = dataset.specs()[0];
  require(element.shape.rank() > 0, "Normalization: adapt: field 0 of the data set is a scalar ", element,
          ", it has no features; batch it, or reshape it in a map");
  require(!dataset.is_endless(), "Normalization: adapt: the data set has no end; .take(n) says how much of it is read");
  const int at = element.shape.normalized(axis) - element.shape.rank();
  Moments1D moments;
  const bool even = std::ranges::count(element.shape, any_size) == 0 && dataset.cardinality().has_value();
  const Pipeline chunks = even ? dataset.batch(chunk_rows, {}) : dataset;  // elements of one size are read faster so
  for (const auto reading = chunks.epoch(0).begin(); !reading->at_end(); reading->advance())
    moments.add(reading->element()[0], at);
  adapt_layer(layer_behind(), moments, element);
}

}  // namespace gradus
