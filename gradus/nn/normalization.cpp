/// Normalization layers: their variables, and the ops that they call.
#include "gradus/ops/normalization.h"
#include <algorithm>
#include "gradus/nn/cloned.h"
#include "gradus/nn/described.h"
#include "gradus/graph/shard_context.h"
#include "gradus/nn/normalization.h"
#include <algorithm>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/shards.h"
#include "gradus/ops/size_choice.h"

namespace gradus {
namespace {

void require_floats(std::string_view layer, const Spec& input) {
  require(is_floating(input.dtype), layer, ": the input is ", input,
          ", expected floats; cast it, for example with "
          "dataset.map");
}

/// Statistics and parameters of narrow types would not add up: they are f32.
DType parameter_dtype(const Spec& input) { return computed_in(input.dtype); }

/// The extents of `axis`, which must be known.
Shape extents_of(std::string_view layer, const Spec& input, const std::vector<int>& axis) {
  require(!axis.empty(), layer, ": expected at least one axis");
  std::uint32_t named = 0;
  for (int a : axis) {
    const int at = input.shape.normalized(a);
    require(!(named >> at & 1), layer, ": axis ", a, " of ", input, " is named twice");
    require(input.shape[at] >= 0, layer, ": the input is ", input, ", its dimension ", at, " must be known");
    named |= 1u << at;
  }
  Shape extents;
  for (int i = 0; i < input.shape.rank(); ++i)
    if (named >> i & 1) extents.push_back(input.shape[i]);
  return extents;
}

/// `mask`, of the first dimensions of x, if one of them is among `axes`, else nothing: rows then are apart.
Tensor among(const Tensor& mask, const Tensor& x, const std::vector<int>& axes) {
  if (!mask.defined()) return {};
  for (const int axis : axes)
    if (x.shape().normalized(axis) < mask.shape().rank()) return mask;
  return {};
}

/// True if a sequence is normalised over its places, too.
bool is_along_places(const Shape& input, const std::vector<int>& axes) {
  return input.rank() > 2 && std::ranges::any_of(axes, [&](int axis) { return input.normalized(axis) == 1; });
}

struct BatchNormalizationLayer final : ClonedMasked<BatchNormalizationLayer>, Described {
  explicit BatchNormalizationLayer(BatchNormalizationOptions o) : options(std::move(o)) {
    check_options("BatchNormalization", options);
  }
  std::string_view kind() const override { return "batch_normalization"; }
  LayerConfig config() const override {
    return {"BatchNormalization",
            {{"momentum", options.momentum},
             {"epsilon", options.epsilon},
             {"center", options.center},
             {"scale", options.scale},
             {"synchronized", options.synchronized},
             {"gamma_regularizer", options.gamma_regularizer},
             {"beta_regularizer", options.beta_regularizer}}};
  }
  void build(const Spec& input) override {
    require(input.shape.rank() >= 2 && input.shape.back() >= 0,
            "BatchNormalization: expected [batch, ..., features] with known features, got ", input);
    require_floats("BatchNormalization", input);
    const Shape features{input.shape.back()};
    const DType t = parameter_dtype(input);
    if (options.scale) add_variable("gamma", ones(features, t), options.gamma_regularizer);
    if (options.center) add_variable("beta", zeros(features, t), options.beta_regularizer);
    const VariableOptions moving{.trainable = false, .aggregation = Aggregation::mean};
    add_variable("moving_mean", zeros(features, t), moving);
    add_variable("moving_variance", ones(features, t), moving);
  }
  Tensor call(const Tensor& x) const override { return call_masked(x, {}); }
  Tensor call_masked(const Tensor& x, const Tensor& mask) const override {
    warn_if_mode_unsaid("batch normalization");
    Variable &moving_mean = variable(own_count() - 2), &moving_variance = variable(own_count() - 1);
    Tensor mean = moving_mean, variance = moving_variance;
    if (is_training() && is_trainable()) {
      const Tensor wide = cast(x, mean.dtype());
      const Tensor counts = spread_mask(mask, places_within(x)), own = any_place(x, counts);
      const bool is_joint = options.synchronized && number_of_shards() > 0;
      const Tensor any = is_joint && own.defined() ? all_reduce_sum(cast(own, i32)) > 0 : own;
      const Moments batch = is_joint ? moments_of_all(wide, counts) : moments_of(wide, counts);
      mean = any.defined() ? where(any, batch.mean, mean) : batch.mean;
      variance = any.defined() ? where(any, batch.variance, variance) : batch.variance;
      move(moving_mean, mean, any);
      move(moving_variance, variance, any);
    }
    return batch_normalization(x, mean, variance,
                               {.scale = options.scale ? Tensor(variable(0)) : Tensor(),
                                .offset = options.center ? Tensor(variable(options.scale ? 1 : 0)) : Tensor(),
                                .epsilon = options.epsilon});
  }
  /// All dimensions of x but the last.
  static Shape places_within(const Tensor& x) {
    Shape places = x.shape();
    places.erase(-1);
    return places;
  }
  /// bool: whether there is a place that counts, of which there could be statistics. Empty: there surely is.
  static Tensor any_place(const Tensor& x, const Tensor& counts) {
    if (counts.defined()) return reduce_any(counts);
    const std::int64_t places = places_within(x).size();
    return SizeChoice::choose(places > 0) ? Tensor() : extent(places, i64) > 0;
  }
  /// Over all axes but the last, of the places that count. As in Keras their number has its epsilon added.
  Moments moments_of(const Tensor& x, const Tensor& mask) const {
    std::vector<int> axes;
    for (int axis = 0; axis < x.shape().rank() - 1; ++axis) axes.push_back(axis);
    if (!mask.defined()) return moments(x, {.axis = axes});
    require(mask.shape().rank() == x.shape().rank() - 1, "BatchNormalization ", name(), ": the input is ", x.spec(),
            ", its mask ", mask.spec(), ", expected one of all axes but the last");
    const Tensor counts = expand_dims(mask, -1), zero = zeros_like(x), kept = where(counts, x, zero);
    const Tensor number = reduce_sum(cast(counts, x.dtype())) + 1e-7;
    const auto mean_of = [&](const Tensor& y) { return reduce_sum(where(counts, y, zero), {.axis = axes}) / number; };
    const Tensor mean = mean_of(kept);
    return {.mean = mean, .variance = mean_of(square(kept - mean))};
  }
  /// The same of all shards of the batch.
  Moments moments_of_all(const Tensor& x, const Tensor& mask) const {
    std::vector<int> axes;
    for (int axis = 0; axis < x.shape().rank() - 1; ++axis) axes.push_back(axis);
    const Tensor counts = mask.defined() ? expand_dims(mask, -1) : Tensor();
    const Tensor own = mask.defined() ? reduce_sum(cast(mask, x.dtype())) : extent(places_within(x).size(), x.dtype());
    const Tensor number = maximum(all_reduce_sum(own), 1);
    const auto mean_of = [&](const Tensor& y) {
      const Tensor kept = counts.defined() ? where(counts, y, zeros_like(y)) : y;
      return all_reduce_sum(reduce_sum(kept, {.axis = axes})) / number;
    };
    const Tensor mean = mean_of(x);
    return {.mean = mean, .variance = mean_of(square(x - mean))};
  }
  ChannelFlow channel_flow() const override {
    ChannelFlow flow{.kind = ChannelFlow::Kind::apart};
    if (options.scale) flow.axes.push_back({.inputs = 0});
    if (options.center) flow.axes.push_back({.inputs = 0, .shifts = true});
    flow.axes.push_back({.inputs = 0, .shifts = true});
    flow.axes.push_back({.inputs = 0});
    const Variable &mean = variable(own_count() - 2), &variance = variable(own_count() - 1);
    flow.shift = batch_normalization(zeros({1, mean.shape()[0]}, mean.dtype()), mean, variance,
                                     {.scale = options.scale ? Tensor(variable(0)) : Tensor(),
                                      .offset = options.center ? Tensor(variable(options.scale ? 1 : 0)) : Tensor(),
                                      .epsilon = options.epsilon});
    return flow;
  }
  /// Not by a batch without a place that counts. Under loss scaling a batch may overflow, and is skipped by the
  /// optimizer: so it is here.
  void move(Variable& statistic, const Tensor& batch, const Tensor& any) const {
    const Tensor before = statistic, seen = stop_gradient(batch);
    Tensor moved = before * options.momentum + seen * (1 - options.momentum);
    if (any.defined()) moved = where(any, moved, before);
    statistic.assign(loss_scale() ? where(is_finite(seen), moved, before) : moved);
  }
  BatchNormalizationOptions options;
};

struct LayerNormalizationLayer final : ClonedMasked<LayerNormalizationLayer>, Described {
  explicit LayerNormalizationLayer(LayerNormalizationOptions o) : options(std::move(o)) {
    check_options("LayerNormalization", options);
  }
  std::string_view kind() const override { return "layer_normalization"; }
  LayerConfig config() const override {
    return {"LayerNormalization",
            {{"axis", listed(options.axis)},
             {"epsilon", options.epsilon},
             {"center", options.center},
             {"scale", options.scale},
             {"gamma_regularizer", options.gamma_regularizer},
             {"beta_regularizer", options.beta_regularizer}}};
  }
  void build(const Spec& input) override {
    require_floats("LayerNormalization", input);
    const Shape extents = extents_of("LayerNormalization", input, options.axis);
    if (options.scale) add_variable("gamma", ones(extents, parameter_dtype(input)), options.gamma_regularizer);
    if (options.center) add_variable("beta", zeros(extents, parameter_dtype(input)), options.beta_regularizer);
  }
  Tensor call(const Tensor& x) const override { return call_masked(x, {}); }
  /// The mask matters where axes that it has are normalised over.
  Tensor call_masked(const Tensor& x, const Tensor& mask) const override {
    return layer_normalization(x, {.scale = options.scale ? Tensor(variable(0)) : Tensor(),
                                   .offset = options.center ? Tensor(variable(options.scale ? 1 : 0)) : Tensor(),
                                   .axis = options.axis,
                                   .epsilon = options.epsilon,
                                   .mask = among(mask, x, options.axis)});
  }
  bool mixes_places(const Shape& input) const override { return is_along_places(input, options.axis); }
  LayerNormalizationOptions options;
};

struct RMSNormalizationLayer final : Cloned<RMSNormalizationLayer>, Described {
  explicit RMSNormalizationLayer(RMSNormalizationOptions o) : options(std::move(o)) {
    check_options("RMSNormalization", options);
  }
  std::string_view kind() const override { return "rms_normalization"; }
  LayerConfig config() const override {
    return {"RMSNormalization", {{"axis", listed(options.axis)}, {"epsilon", options.epsilon}}};
  }
  void build(const Spec& input) override {
    require_floats("RMSNormalization", input);
    add_variable("scale", ones(extents_of("RMSNormalization", input, options.axis), parameter_dtype(input)));
  }
  Tensor call(const Tensor& x) const override {
    return rms_normalization(x, {.scale = variable(0), .axis = options.axis, .epsilon = options.epsilon});
  }
  bool mixes_places(const Shape& input) const override { return is_along_places(input, options.axis); }
  RMSNormalizationOptions options;
};

struct GroupNormalizationLayer final : ClonedMasked<GroupNormalizationLayer>, Described {
  GroupNormalizationLayer(std::int64_t n, GroupNormalizationOptions o) : groups(n), options(std::move(o)) {
    require(groups > 0 || groups == -1, "GroupNormalization: groups must be positive, or -1 for one a channel, got ",
            groups);
    check_options("GroupNormalization", options);
  }
  std::string_view kind() const override { return "group_normalization"; }
  LayerConfig config() const override {
    return {"GroupNormalization",
            {{"groups", groups},
             {"axis", std::int64_t{options.axis}},
             {"epsilon", options.epsilon},
             {"center", options.center},
             {"scale", options.scale},
             {"gamma_regularizer", options.gamma_regularizer},
             {"beta_regularizer", options.beta_regularizer}}};
  }
  void build(const Spec& input) override {
    require_floats("GroupNormalization", input);
    const Shape channels = extents_of("GroupNormalization", input, {options.axis});
    require(groups == -1 || channels[0] % groups == 0, "GroupNormalization: ", groups,
            " groups do not divide the channels of ", input);
    if (options.scale) add_variable("gamma", ones(channels, parameter_dtype(input)), options.gamma_regularizer);
    if (options.center) add_variable("beta", zeros(channels, parameter_dtype(input)), options.beta_regularizer);
  }
  Tensor call(const Tensor& x) const override { return call_masked(x, {}); }
  Tensor call_masked(const Tensor& x, const Tensor& mask) const override {
    const bool before_channels = mask.defined() && mask.shape().rank() <= x.shape().normalized(options.axis);
    return group_normalization(x, groups == -1 ? x.shape()[options.axis] : groups,
                               {.scale = options.scale ? Tensor(variable(0)) : Tensor(),
                                .offset = options.center ? Tensor(variable(options.scale ? 1 : 0)) : Tensor(),
                                .axis = options.axis,
                                .epsilon = options.epsilon,
                                .mask = before_channels && mask.shape().rank() > 1 ? mask : Tensor()});
  }
  bool mixes_places(const Shape& input) const override { return input.rank() > 2; }
  std::int64_t groups;
  GroupNormalizationOptions options;
};

struct UnitNormalizationLayer final : ClonedMasked<UnitNormalizationLayer>, Described {
  explicit UnitNormalizationLayer(std::vector<int> a) : axis(std::move(a)) {}
  std::string_view kind() const override { return "unit_normalization"; }
  LayerConfig config() const override { return {"UnitNormalization", {{"axis", listed(axis)}}}; }
  void build(const Spec&) override {}
  Tensor call(const Tensor& x) const override { return l2_normalize(x, axis); }
  Tensor call_masked(const Tensor& x, const Tensor& given) const override {
    Tensor mask = among(given, x, axis);
    if (!mask.defined()) return call(x);
    while (mask.shape().rank() < x.shape().rank()) mask = expand_dims(mask, -1);
    return call(where(mask, x, fill_like(x, 0)));
  }
  bool mixes_places(const Shape& input) const override { return is_along_places(input, axis); }
  std::vector<int> axis;
};

}  // namespace

BatchNormalization::BatchNormalization() : BatchNormalization(BatchNormalizationOptions{}) {}
BatchNormalization::BatchNormalization(BatchNormalizationOptions options)
    : Module(std::make_shared<BatchNormalizationLayer>(std::move(options))) {}
LayerNormalization::LayerNormalization() : LayerNormalization(LayerNormalizationOptions{}) {}
LayerNormalization::LayerNormalization(LayerNormalizationOptions options)
    : Module(named(std::make_shared<LayerNormalizationLayer>(options), options.name)) {}
RMSNormalization::RMSNormalization() : RMSNormalization(RMSNormalizationOptions{}) {}
RMSNormalization::RMSNormalization(RMSNormalizationOptions options)
    : Module(named(std::make_shared<RMSNormalizationLayer>(options), options.name)) {}
GroupNormalization::GroupNormalization(std::int64_t groups, GroupNormalizationOptions options)
    : Module(named(std::make_shared<GroupNormalizationLayer>(groups, options), options.name)) {}
UnitNormalization::UnitNormalization(NamedAxes named)
    : Module(std::make_shared<UnitNormalizationLayer>(std::move(named.axis))) {}

}  // namespace gradus
