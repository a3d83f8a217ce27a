/// Finds the channels that are 0, and the variables that contain them.
#include "gradus/nn/channels.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include "gradus/graph/context.h"
#include "gradus/nn/layer.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

using Kind = ChannelFlow::Kind;

/// A layer with its own variables, those of no child.
struct ChannelStage {
  std::shared_ptr<Layer> layer;
  ChannelFlow flow;
  Variables variables;

  explicit ChannelStage(std::shared_ptr<Layer> l) : layer(std::move(l)), flow(layer->channel_flow()) {
    if (flow.kind != Kind::unknown) variables = layer->variables();
  }
  /// Channels of the output of a layer of kind `mixed`.
  std::int64_t outputs() const {
    for (std::size_t i = 0; i < variables.size(); ++i)
      if (flow.is_kernel(i)) return variables[i].shape()[flow.axes[i].outputs];
    return 0;
  }
  /// The values of n output channels where all inputs are 0.
  std::vector<double> of_zeros(const Tensor& shift, std::int64_t n) const {
    Tensor y = shift.defined() ? reshape(shift, {1, n}) : zeros({1, n});
    if (flow.activation) y = flow.activation(y);
    return cast(y, f64).to_vector<double>();
  }
};

/// Where channels are made and read: the layers between treat each by itself.
struct Chain {
  std::size_t producer, consumer;
};

bool is_sequential(const Layer& layer) { return layer.kind() == "sequential"; }

/// A Sequential within is what it holds.
void add_stages(std::vector<ChannelStage>& stages, const Layer& sequential) {
  for (const auto& layer : sequential.children()) {
    if (is_sequential(*layer)) add_stages(stages, *layer);
    else stages.emplace_back(layer);
  }
}
std::vector<ChannelStage> stages_of(std::string_view op, const Sequential& model) {
  require(model.is_built(), op, ": model ", model.layer_behind().called(),
          " is not built; call it, or build(spec), first");
  std::vector<ChannelStage> stages;
  add_stages(stages, model.layer_behind());
  std::set<const Layer*> seen;
  for (const ChannelStage& stage : stages)
    require(seen.insert(stage.layer.get()).second, op, ": layer ", stage.layer->name(),
            " is in the model twice: its channels cannot be chosen for each place");
  return stages;
}

std::vector<Chain> chains_of(const std::vector<ChannelStage>& stages) {
  std::vector<Chain> chains;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].flow.kind != Kind::mixed) continue;
    std::size_t next = i + 1;
    while (next < stages.size() && stages[next].flow.kind == Kind::apart) ++next;
    if (next < stages.size() && stages[next].flow.kind == Kind::mixed) chains.push_back({i, next});
  }
  return chains;
}

/// The sums of |x| over all axes but one.
std::vector<double> magnitudes_along(const Variable& variable, int axis) {
  std::vector<int> others;
  for (int i = 0; i < variable.shape().rank(); ++i)
    if (i != axis) others.push_back(i);
  return reduce_sum(abs(cast(variable.value(), f64)), {.axis = others}).to_vector<double>();
}

/// For each channel that the layer makes; 0: its kernels are 0.
std::vector<double> magnitudes_of(const ChannelStage& producer) {
  std::vector<double> sums(static_cast<std::size_t>(producer.outputs()));
  for (std::size_t i = 0; i < producer.variables.size(); ++i) {
    if (!producer.flow.is_kernel(i)) continue;
    const std::vector<double> of_one = magnitudes_along(producer.variables[i], producer.flow.axes[i].outputs);
    std::ranges::transform(sums, of_one, sums.begin(), std::plus<>());
  }
  for (double& sum : sums)
    if (std::isnan(sum)) sum = std::numeric_limits<double>::infinity();  // what is no number is kept
  return sums;
}

/// The channels of the producer that arrive as 0 if their kernels are 0. `shifted`: with the existing biases, else
/// without any.
std::vector<bool> stays_zero(const std::vector<ChannelStage>& stages, const Chain& chain, bool shifted) {
  std::vector<std::int64_t> origin(static_cast<std::size_t>(stages[chain.producer].outputs()));
  std::iota(origin.begin(), origin.end(), std::int64_t{0});
  std::vector<bool> is_zero(origin.size(), true);
  for (std::size_t k = chain.producer; k < chain.consumer; ++k) {
    const ChannelFlow& flow = stages[k].flow;
    std::vector<std::int64_t> arrived;
    for (std::int64_t place = 0; place < flow.places; ++place)
      for (const std::int64_t channel : origin)
        arrived.insert(arrived.end(), static_cast<std::size_t>(flow.repeats), channel);
    origin = std::move(arrived);
    const std::vector<double> values =
        stages[k].of_zeros(shifted ? flow.shift : Tensor(), static_cast<std::int64_t>(origin.size()));
    for (std::size_t i = 0; i < origin.size(); ++i)
      if (values[i] != 0) is_zero[static_cast<std::size_t>(origin[i])] = false;
  }
  return is_zero;
}

/// Masks elements of these channels along an axis, besides what is masked.
void mask_along(Variable& variable, int axis, const std::vector<std::int64_t>& pruned) {
  Shape across;
  for (int i = 0; i < variable.shape().rank(); ++i) across.push_back(i == axis ? variable.shape()[i] : 1);
  std::vector<bool> kept(static_cast<std::size_t>(variable.shape()[axis]), true);
  for (const std::int64_t channel : pruned) kept[static_cast<std::size_t>(channel)] = false;
  Tensor mask = broadcast_to(from_values(kept, across), variable.shape());
  if (const Tensor before = variable.mask(); before.defined()) mask = logical_and(mask, before);
  variable.set_mask(mask);
}

/// The channels of a layer's output that come from these of its input.
std::vector<std::int64_t> arriving(const ChannelFlow& flow, std::int64_t inputs,
                                   const std::vector<std::int64_t>& channels) {
  std::vector<std::int64_t> all;
  for (std::int64_t place = 0; place < flow.places; ++place)
    for (const std::int64_t channel : channels)
      for (std::int64_t k = 0; k < flow.repeats; ++k) all.push_back((place * inputs + channel) * flow.repeats + k);
  return all;
}

void mask_channels(const std::vector<ChannelStage>& stages, const Chain& chain, std::vector<std::int64_t> pruned) {
  std::int64_t inputs = stages[chain.producer].outputs();
  for (std::size_t k = chain.producer; k < chain.consumer; ++k) {
    const ChannelStage& stage = stages[k];
    const std::vector<std::int64_t> before = pruned;
    if (k != chain.producer) {
      pruned = arriving(stage.flow, inputs, before);
      inputs *= stage.flow.places * stage.flow.repeats;
    }
    for (std::size_t i = 0; i < stage.variables.size(); ++i) {
      const ChannelFlow::Axes& axes = stage.flow.axes[i];
      if (k == chain.producer ? axes.outputs >= 0 : axes.shifts && axes.outputs >= 0)
        mask_along(stage.variables[i], axes.outputs, pruned);
      else if (axes.shifts) mask_along(stage.variables[i], axes.inputs, before);
    }
  }
}

/// The channels that are not 0; one at least.
std::vector<std::int64_t> kept_channels(const std::vector<ChannelStage>& stages, const Chain& chain) {
  const std::vector<double> magnitudes = magnitudes_of(stages[chain.producer]);
  const std::vector<bool> is_zero = stays_zero(stages, chain, true);
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < magnitudes.size(); ++i)
    if (magnitudes[i] != 0 || !is_zero[i]) kept.push_back(static_cast<std::int64_t>(i));
  if (kept.empty()) kept.push_back(0);
  return kept;
}

/// A layer as a module.
struct RemadeChannels : Module {
  explicit RemadeChannels(std::shared_ptr<Layer> layer) : Module(std::move(layer)) {}
};

/// A model like `whole`, of these layers in the order of its stages.
Sequential made_like(const Layer& whole, std::span<const std::shared_ptr<Layer>> stages, std::size_t& next) {
  std::vector<Module> layers;
  for (const auto& layer : whole.children()) {
    if (is_sequential(*layer)) layers.push_back(made_like(*layer, stages, next));
    else layers.push_back(RemadeChannels(stages[next++]));
  }
  return Sequential(std::move(layers), {.policy = whole.policy().value_or(float32),
                                        .name = whole.has_own_name() ? whole.name() : std::string()});
}

}  // namespace

std::int64_t prune_channels(const Sequential& model, double share) {
  require(share >= 0 && share < 1, "prune_channels: the share must be at least 0 and below 1, got ", share);
  const Untraced outside;
  const std::vector<ChannelStage> stages = stages_of("prune_channels", model);
  std::int64_t masked = 0;
  for (const Chain& chain : chains_of(stages)) {
    if (std::ranges::count(stays_zero(stages, chain, false), false) > 0) continue;
    const std::vector<double> magnitudes = magnitudes_of(stages[chain.producer]);
    std::vector<std::int64_t> order(magnitudes.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::ranges::stable_sort(order, {}, [&](std::int64_t i) { return magnitudes[static_cast<std::size_t>(i)]; });
    order.resize(std::min(static_cast<std::size_t>(share * static_cast<double>(order.size())), order.size() - 1));
    masked += static_cast<std::int64_t>(order.size());
    if (!order.empty()) mask_channels(stages, chain, std::move(order));
  }
  return masked;
}

Sequential remove_pruned_channels(const Sequential& model) {
  const Untraced outside;
  const std::vector<ChannelStage> stages = stages_of("remove_pruned_channels", model);
  std::vector<ChannelList> inputs(stages.size()), outputs(stages.size());
  for (const Chain& chain : chains_of(stages)) {
    std::int64_t all = stages[chain.producer].outputs();
    std::vector<std::int64_t> kept = kept_channels(stages, chain);
    if (static_cast<std::int64_t>(kept.size()) == all) continue;
    outputs[chain.producer] = kept;
    for (std::size_t k = chain.producer + 1; k < chain.consumer; ++k) {
      const ChannelFlow& flow = stages[k].flow;
      inputs[k] = kept;
      kept = arriving(flow, all, kept);
      all *= flow.places * flow.repeats;
      outputs[k] = kept;
    }
    inputs[chain.consumer] = std::move(kept);
  }
  std::vector<std::shared_ptr<Layer>> layers;
  for (std::size_t k = 0; k < stages.size(); ++k) {
    layers.push_back(stages[k].layer->with_channels(inputs[k], outputs[k]));
    layers.back()->renew_loss_scale();
  }
  std::size_t next = 0;
  Sequential smaller = made_like(model.layer_behind(), layers, next);
  smaller.build(*model.layer_behind().input());
  return smaller;
}

}  // namespace gradus
