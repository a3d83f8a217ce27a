/// Modules: calling, building, variables.
#include "gradus/nn/module.h"
#include <algorithm>
#include <atomic>
#include <ostream>
#include "gradus/function/trace.h"
#include "gradus/function/whereabouts.h"
#include "gradus/nn/assignment.h"
#include "gradus/nn/copying.h"
#include "gradus/nn/layer.h"
#include "gradus/nn/summary.h"

namespace gradus {
namespace {

/// At its end the module is a handle of another layer, or that layer is another one.
struct Assigning {
  ~Assigning() { whereabouts::note_change(); }
};

/// The first layer within that has no variables yet, although others have them; null if none has.
const Layer* first_uncalled(const Layer& layer) {
  const auto layers = layer.children();
  const auto has = [](const auto& each) { return has_variables(*each) || first_uncalled(*each); };
  if (std::ranges::none_of(layers, has)) return nullptr;
  const auto without = std::ranges::find_if_not(layers, [](const auto& each) { return has_variables(*each); });
  const Layer* const within = first_uncalled(**without);
  return within ? within : without->get();
}

[[noreturn]] void fail_without_variables(const Layer& layer) {
  const Layer* const uncalled = first_uncalled(layer);
  throw InvalidArgument(text("module ", layer.called(),
                             " has no variables yet: call it on an input first, or build({f32, {any_size, ...}})",
                             uncalled ? text("; of its layers, ", uncalled->called(), " was not called") : ""));
}

Variables trainable_of(const Layer& layer) {
  if (!has_variables(layer)) fail_without_variables(layer);
  Variables trainable;
  for (const Variable& variable : layer.variables())
    if (variable.trainable()) trainable.add(variable);
  return trainable;
}

thread_local const Module* being_shared = nullptr;
/// True if any model of this process shares a layer with another one: then the last that was asked has named it.
std::atomic<bool> shares_layers{false};

}  // namespace

Module::Module(std::shared_ptr<Layer> layer) : layer_(std::move(layer)) {
  whereabouts::enter(this, whereabouts::Kind::module);
}
Module::Module(const Module& other) : Module(std::shared_ptr<Layer>()) {
  if (other.copies_are_shared()) {
    layer_ = other.shared_layer();
    handle_ = Handle::shared;
  } else {
    Copying copying;
    layer_ = copying.copy_of(other.shared_layer(), other, *this);
    if (copying.is_inner()) handle_ = other.handle_;
  }
}
/// Traces made through `other` must not go on with layers that it has no more.
Module::Module(Module&& other) noexcept : layer_(std::move(other.layer_)), handle_(other.handle_) {
  whereabouts::enter(this, whereabouts::Kind::module);
  if (layer_) shared_layer()->note_change("was moved");
}
Module::~Module() { whereabouts::leave(this); }

void Module::settle() {
  if (handle_ != Handle::shared) return;
  handle_ = Handle::settled;
  shares_layers = true;
}
Module::Sharing::Sharing(const Module& module) { being_shared = &module; }
Module::Sharing::~Sharing() { being_shared = nullptr; }
/// Layers that a model was made with are copied with the model, unless the model takes them now.
bool Module::copies_are_shared() const {
  return being_shared == this || (handle_ == Handle::shared && !Copying::is_active());
}

Module& Module::operator=(const Module& other) {
  const Assigning assigning;
  const std::shared_ptr<Layer> next = other.shared_layer(), before = shared_layer();  // `other` may be within
  if (this == &other || (next && next == before)) return *this;
  if (other.copies_are_shared()) {  // others that have shared the layer before keep it
    if (before) before->note_change_within("was assigned to");
    layer_ = next;
    handle_ = Handle::shared;
  } else if (keeps_variables() && next) gradus::assign(layer_, before, next);
  else adopt(layer_, before, copy_of(next));
  return *this;
}

Module& Module::operator=(Module&& other) {
  const Assigning assigning;
  const std::shared_ptr<Layer> next = other.shared_layer(), before = shared_layer();  // `other` may be within
  if (this == &other || (next && next == before)) return *this;
  if (other.copies_are_shared() || (keeps_variables() && next)) return *this = std::as_const(other);
  adopt(layer_, before, next);
  if (next) next->note_change("was moved");
  other.layer_ = nullptr;
  return *this;
}

bool Module::keeps_variables() const { return is_built() && shared_layer()->variables().size() > 0; }

const std::shared_ptr<Layer>& Module::shared_layer() const {
  const std::shared_ptr<Layer>* layer = &layer_;
  while (*layer && (*layer)->successor) layer = &(*layer)->successor;
  return *layer;
}
Layer& Module::layer_behind() const {
  const std::shared_ptr<Layer>& layer = shared_layer();
  require(static_cast<bool>(layer), "this module is empty: it was moved from; assign a module to it first");
  return *layer;
}
bool Module::is_built() const { return shared_layer() && has_variables(*shared_layer()); }
std::uint64_t Module::setup_number() const { return shared_layer() ? shared_layer()->setup().number() : 0; }

Tensor Module::operator()(const Tensor& x) const {
  Layer& layer = layer_behind();
  layer.ensure_built(x.spec());
  if (Trace* trace = Trace::current()) trace->note_use(this, layer.variables());
  return layer.run(x);
}
Tensor Module::operator()(const Tensor& x, training_t) const {
  const ModeScope mode(CallMode::training);
  return (*this)(x);
}
Tensor Module::operator()(const Tensor& x, inference_t) const {
  const ModeScope mode(CallMode::inference);
  return (*this)(x);
}

void Module::build(const Spec& input) { layer_behind().ensure_built(input); }

Variables Module::variables() const {
  if (shares_layers.load(std::memory_order_relaxed)) layer_behind().name_again();
  layer_behind().note_looked_at();
  return layer_behind().variables();
}

Variables Module::trainable_variables() const {
  if (!layer_behind().is_built()) return Variables::later([layer = shared_layer()] { return trainable_of(*layer); });
  return trainable_of(layer_behind());
}

void Module::set_trainable(bool trainable) { layer_behind().set_trainable(trainable); }

void Module::set_name(std::string name) { layer_behind().rename(std::move(name), true); }
void Module::set_policy(const Policy& policy) { layer_behind().set_policy(policy); }
double Module::loss_scale() const {
  const std::shared_ptr<LossScale> scale = layer_behind().loss_scale();
  return scale ? scale->value() : 1;
}
std::vector<Tensor> Module::losses() const {
  Tensors all = layer_behind().call_losses();
  for (Tensor& penalty : layer_behind().penalties()) all.push_back(std::move(penalty));
  return all;
}
Tensor Module::compute_mask(const Tensor& x, const Tensor& mask) const {
  const TrialScope trial;
  const ModeScope mode(CallMode::inference);
  if (!mask.defined()) return SequenceMask::of((*this)(x));
  const Tensor masked = without_mask(x);
  SequenceMask::set(masked, mask);
  return SequenceMask::of((*this)(masked));
}
const std::string& Module::name() const { return layer_behind().name(); }
std::string Module::summary() const { return summary_of(layer_behind()); }
std::ostream& operator<<(std::ostream& out, const Module& module) { return out << module.summary(); }

}  // namespace gradus
