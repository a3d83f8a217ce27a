/// Building, naming and running of layers.
#include "gradus/nn/layer.h"
#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <utility>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/notice.h"
#include "gradus/function/pending.h"
#include "gradus/function/trace.h"
#include "gradus/function/variable_cell.h"
#include "gradus/graph/context.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/special.h"
#include "gradus/ops/widened.h"

namespace gradus {

std::uint64_t Layer::new_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}
Layer::Layer() : origin_(setup_.number()) {}

Layer::Layer(const Layer& other)
    : setup_(other.setup_),
      origin_(other.origin_),
      policy_(other.policy_),
      own_policy_(other.own_policy_),
      loss_scale_(other.loss_scale_),
      name_(other.name_),
      prefix_(other.prefix_),
      own_name_(other.own_name_),
      built_(other.built_),
      input_(other.input_),
      inputs_(other.inputs_),
      own_names_(other.own_names_),
      own_regularizers_(other.own_regularizers_),
      activity_regularizer_(other.activity_regularizer_) {
  for (const Variable& variable : other.own_) {
    Variable copy(variable);
    own_.add(copy);
  }
}

void Layer::ensure_built(std::span<const Spec> inputs) {
  const HostFloats floats;
  if (built_) return;
  const Untraced outside;
  const BuildingScope building(*this);
  std::vector<Spec> of_variables(inputs.begin(), inputs.end());
  for (Spec& spec : of_variables)
    if (policy_ && is_floating(spec.dtype)) spec.dtype = policy_->variable;
  const Variables before = own_;
  try {
    build_for(of_variables);
  } catch (...) {  // the next attempt makes them anew
    own_ = before;
    own_names_.resize(before.size());
    own_regularizers_.resize(before.size());
    throw;
  }
  note_built(inputs);
}

void Layer::build_for(std::span<const Spec> inputs) {
  require(inputs.size() == 1, kind(), ": it takes one input, not ", inputs.size());
  build(inputs[0]);
}

void Layer::note_built(std::span<const Spec> inputs) {
  inputs_.assign(inputs.begin(), inputs.end());
  for (Spec& input : inputs_)
    for (int axis = 0; axis < input.shape.rank(); ++axis)
      if (dimension::is_symbolic(input.shape[axis])) input.shape.set(axis, any_size);
  if (inputs.size() == 1) input_ = inputs_[0];
  built_ = true;
  origin_ = setup_.number();
  name_variables();
}

void Layer::run_for(std::span<const Spec> inputs, CallMode mode) {
  if (inputs.size() == 1) output_of(inputs[0], mode);
}

/// A mask belongs to a tensor. If a layer returns its input with another mask, or none, the result becomes a new
/// tensor.
Tensor Layer::run(const Tensor& x) const {
  const HostFloats floats;
  const NameScope scope(name_.empty() ? kind() : std::string_view(name_));
  const CallScope this_call(*this);
  require(
      !CallContext::here().cache || extends_caches() || !mixes_places(x.shape()), called(),
      ": it looks at several places of a sequence, of which a cache of keys and values has only those of attention; "
      "call the model on whole sequences");
  const Tensor input = casts_input() ? computed(x) : x, mask = SequenceMask::of(input);
  note_lost_mask(input);
  Tensor y = mask.defined() ? call_masked(input, mask) : call(input);
  if (y.node() == input.node() && compute_mask(input, mask).node() != mask.node()) y = without_mask(y);
  note_result(input, mask, y);
  return y;
}

void Layer::note_result(const Tensor& x, const Tensor& mask, const Tensor& y) const {
  if (const Tensor of_result = compute_mask(x, mask); of_result.defined()) SequenceMask::set(y, of_result);
  else if (SequenceMask::is_used() && children().empty()) SequenceMask::follow(y, x);
  note_activity(activity_regularizer_, y);
}

void Layer::note_activity(const Regularizer& regularizer, const Tensor& y) const {
  if (!regularizer || !CallScope::is_call()) return;
  const Tensor wide = widened(y), loss = regularizer(wide);
  if (y.shape().rank() == 0) return call_losses_.add(loss);
  const Tensor rows = element_count(fill({y.shape()[0]}, 0, loss.dtype()), loss.dtype());
  call_losses_.add(divide_no_nan(loss, rows));
}

Tensor Layer::computed(const Tensor& x) const {
  const HostFloats floats;
  if (!policy_ || !is_floating(x.dtype()) || x.dtype() == policy_->compute) return x;
  const Tensor narrow = cast(x, policy_->compute);
  if (const Tensor mask = SequenceMask::of(x); mask.defined()) SequenceMask::set(narrow, mask);
  return narrow;
}

Tensors Layer::penalties() const {
  Tensors all;
  Variables seen;
  add_penalties(all, seen);
  return all;
}

void Layer::add_penalties(Tensors& all, Variables& seen) const {
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const Variable& each = own_[i];
    if (!own_regularizers_[i] || !each.trainable() || seen.find(*each.cell()) >= 0) continue;
    seen.add(each);
    const NameScope scope(name_.empty() ? kind() : std::string_view(name_));
    all.push_back(own_regularizers_[i](each.value()));
  }
  for (const auto& child : children()) child->add_penalties(all, seen);
}

Tensors Layer::call_losses() const {
  Tensors all;
  std::set<const Layer*> seen;
  add_call_losses(all, seen);
  return all;
}

/// Those of a layer that is there twice count once.
void Layer::add_call_losses(Tensors& all, std::set<const Layer*>& seen) const {
  if (!seen.insert(this).second) return;
  const Tensors own = call_losses_.all();
  for (const Tensor& loss : own)
    require(!loss.is_symbolic() || Context::is_active(loss.node()->trace), "losses of ",
            name_.empty() ? kind() : std::string_view(name_),
            ": its last call was within a compiled function; ask for its losses there");
  all.insert(all.end(), own.begin(), own.end());
  for (const auto& child : children()) child->add_call_losses(all, seen);
}

void Layer::add_own_to(Structure& structure) const {
  for (std::size_t i = 0; i < own_.size(); ++i) structure.add(own_[i]);
}
void Layer::add_parts_to(Structure& structure) const {
  add_own_to(structure);
  for (const auto& child : children()) structure.add(*child);
}

bool Layer::brings_losses() const {
  return activity_regularizer_ ||
         std::ranges::any_of(children(), [](const auto& child) { return child->brings_losses(); });
}

void Layer::forget_call_losses() const {
  call_losses_.forget();
  for (const auto& child : children()) child->forget_call_losses();
}

void Layer::set_policy(const Policy& policy) {
  for (DType t : {policy.compute, policy.variable})
    require(is_floating(t), "policy of ", name_.empty() ? kind() : name_, ": expected floating types, got ", t);
  check_options("Policy", policy.loss_scale);
  take_policy(policy, true);
  const Untraced outside;
  if (policy.scale_loss) take_loss_scale(std::make_shared<LossScale>(policy.loss_scale));
}

void Layer::take_policy(const Policy& policy, bool own) {
  if (own_policy_ && !own) return;
  for (const Variable& variable : own_)
    require(!is_floating(variable.dtype()) || variable.dtype() == policy.variable, "policy: variable ", variable.name(),
            " is ", variable.dtype(), " already, not ", policy.variable, "; set the policy before the layer is built");
  if (policy_ != policy) setup_.change("was given another policy");
  origin_ = setup_.number();
  policy_ = policy;
  own_policy_ = own;
  for (const auto& child : children()) child->take_policy(policy, false);
}

void Layer::take_loss_scale(const std::shared_ptr<LossScale>& loss_scale) {
  loss_scale_ = loss_scale;
  for (const auto& child : children()) child->take_loss_scale(loss_scale);
  for (const Variable& variable : variables()) variable.cell()->loss_scale = loss_scale;
}

void Layer::pass_on(Layer& child) const {
  if (!setup_.trainable()) child.set_trainable(false);
  if (policy_) child.take_policy(*policy_, false);
  if (loss_scale_) child.take_loss_scale(loss_scale_);
}

void Layer::renew_loss_scale() {
  if (loss_scale_) take_loss_scale(std::make_shared<LossScale>(*loss_scale_));
}

std::shared_ptr<LossScale> Layer::loss_scale() const {
  if (loss_scale_) return loss_scale_;
  for (const auto& child : children())
    if (auto found = child->loss_scale()) return found;
  return nullptr;
}

Variables Layer::variables() const {
  Variables all = own_;
  for (const auto& child : children()) all = all + child->variables();
  return all;
}

Variables Layer::kernels() const {
  Variables found;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const std::string_view name = own_names_[i];
    const bool depthwise = name.ends_with("depthwise_kernel");
    if (!depthwise && (name.ends_with("kernel") || name.ends_with("embeddings"))) found.add(own_[i]);
  }
  return found;
}

std::int64_t Layer::places_of(const Shape& shape) {
  std::int64_t places = 1;
  for (int axis = 1; axis + 1 < shape.rank(); ++axis)
    if (shape[axis] >= 0) places *= shape[axis];
  return places;
}

std::int64_t Layer::multiplications() const { return input_ ? places_of(input_->shape) : 1; }

namespace {

/// Elements of a variable, and of its mask unless nothing is masked there.
Variable part_of(const Variable& whole, const ChannelFlow::Axes& axes, const ChannelList& inputs,
                 const ChannelList& outputs) {
  const auto taken = [&](Tensor x) {
    for (const auto& [channels, axis] : {std::pair(&inputs, axes.inputs), {&outputs, axes.outputs}})
      if (*channels && axis >= 0)
        x = gather(x, from_values(**channels, {static_cast<std::int64_t>((*channels)->size())}), axis);
    return x;
  };
  Variable part(taken(whole.value()), whole.name(), {whole.cell()->made_trainable, whole.aggregation()});
  part.set_trainable(whole.trainable());
  if (const Tensor mask = whole.mask(); mask.defined())
    if (const Tensor kept = taken(mask); reduce_all(kept).item() == 0) part.set_mask(kept);
  return part;
}

}  // namespace

std::shared_ptr<Layer> Layer::with_channels(const ChannelList& inputs, const ChannelList& outputs) const {
  const Untraced outside;
  const ChannelFlow flow = channel_flow();
  std::shared_ptr<Layer> copy = clone();
  if (!inputs && !outputs) return copy;
  internal_check(flow.axes.size() == own_.size(), "channels of ", name_, " cannot be told apart");
  copy->own_ = Variables();
  copy->origin_ = copy->setup_.number();
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const Variable part = part_of(own_[i], flow.axes[i], inputs, outputs);
    part.cell()->loss_scale = loss_scale_;
    copy->own_.add(part);
  }
  if (inputs) copy->input_->shape.set(-1, static_cast<std::int64_t>(inputs->size())), copy->inputs_ = {*copy->input_};
  if (outputs) copy->set_output_channels(static_cast<std::int64_t>(outputs->size()));
  return copy;
}

namespace {

/// The spec of what `call` makes of such inputs, whose sizes are symbols where they are not known.
Spec traced_output(std::span<const Spec> inputs, CallMode call_mode, const std::function<Tensor(In parameters)>& call) {
  std::vector<Spec> symbolic(inputs.begin(), inputs.end());
  int next = 0;
  std::map<int, std::int64_t> of_axis;  // of several inputs axes of one number are taken to agree, as batches do
  for (Spec& spec : symbolic)
    for (int axis = 0; axis < spec.shape.rank(); ++axis)
      if (spec.shape[axis] == any_size) {
        const auto [at, is_new] = of_axis.try_emplace(axis, 0);
        if (is_new) at->second = dimension::symbol(next++);
        spec.shape.set(axis, at->second);
      }
  const ModeScope mode(call_mode);
  const Trace trace(symbolic);
  const TrialScope trial;  // ends first: it holds what is traced
  Spec output = call(trace.parameters()).spec();
  for (int axis = 0; axis < output.shape.rank(); ++axis)
    if (dimension::is_symbolic(output.shape[axis])) output.shape.set(axis, any_size);
  return output;
}

}  // namespace

Spec Layer::output_of(const Spec& input, CallMode call_mode) const {
  return traced_output({&input, 1}, call_mode, [&](In parameters) { return run(parameters[0]); });
}

std::optional<Spec> Layer::output() const {
  if (inputs_.empty()) return {};
  if (inputs_.size() == 1) return output_of(inputs_[0]);
  bool is_known = false;
  const Spec spec = traced_output(inputs_, CallMode::inference, [&](In parameters) {
    Tensors computed_inputs;
    for (const Tensor& x : parameters) computed_inputs.push_back(computed(x));
    const NameScope scope(name_.empty() ? kind() : std::string_view(name_));
    const CallScope this_call(*this);
    const Tensor result = call_on(computed_inputs);
    is_known = result.defined();
    return is_known ? result : parameters[0];
  });
  return is_known ? std::optional(spec) : std::nullopt;
}

Tensor Layer::call_on(In) const { return {}; }

std::string Layer::called() const {
  const std::string type = this->type();
  return name_.empty() || name_ == type || name_ == kind() ? type : "`" + name_ + "` (" + type + ")";
}

void Layer::add_variable(const std::string& name, const Tensor& initial, VariableOptions options,
                         Regularizer regularizer) {
  const Variable variable(initial, name, options);
  variable.cell()->loss_scale = loss_scale_;
  if (!setup_.trainable()) variable.cell()->set_trainable(false);
  own_.add(variable);
  own_names_.push_back(name);
  own_regularizers_.push_back(std::move(regularizer));
}

void Layer::rename(std::string name, bool by_user) {
  name_ = std::move(name);
  own_name_ = by_user;
  name_variables();
}

void Layer::set_prefix(const std::string& prefix) {
  prefix_ = prefix;
  name_variables();
}

void Layer::name_variables_as(const std::string& prefix, const std::string& name) {
  std::string own_prefix = std::exchange(prefix_, prefix), own_name = std::exchange(name_, name);
  name_variables();
  prefix_ = std::move(own_prefix);
  name_ = std::move(own_name);
}

std::vector<std::shared_ptr<const Layer>> Layer::sources() const {
  std::vector<std::shared_ptr<const Layer>> there;
  for (const auto& each : sources_)
    if (auto source = each.lock()) there.push_back(std::move(source));
  return there;
}
void Layer::note_source(const std::shared_ptr<const Layer>& source) {
  for (const auto& each : source->sources()) sources_.push_back(each);
  sources_.push_back(source);
}

void Layer::name_variables() {
  const std::string path = prefix_ + (name_.empty() ? std::string(kind()) : name_);
  for (std::size_t i = 0; i < own_.size(); ++i) own_[i].set_name(path + "/" + own_names_[i]);
  for (const auto& child : children()) child->set_prefix(path + "/");
}

void Layer::visit_texts(const std::string& path, const TextVisitor& visit) const {
  for (const auto& child : children())
    child->visit_texts(path + (child->name().empty() ? std::string(child->kind()) : child->name()) + '/', visit);
}

void detail::warn_if_mode_unsaid(std::string_view layer) {
  if (current_mode() != CallMode::unsaid || !Pending::mine().is_recording()) return;
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  notice(text("gradus: a gradient is being recorded through ", layer,
              " in a call that does not say its mode, so it runs as in inference; write model(x, training)\n"));
}

}  // namespace gradus
