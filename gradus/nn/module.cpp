/// The value semantics of modules.
#include "gradus/nn/module.h"
#include <atomic>
#include "gradus/function/trace.h"
#include "gradus/function/whereabouts.h"
#include "gradus/nn/copying.h"
#include "gradus/nn/layer.h"
#include "gradus/nn/summary.h"

namespace gradus {
namespace {

bool same_structure(const Variables& a, const Variables& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].shape() != b[i].shape() || a[i].dtype() != b[i].dtype()) return false;
  return true;
}

void write_values(const Module& from, const Module& to) {
  const Variables source = from.variables(), target = to.variables();
  require(same_structure(source, target), "assigning module ", from.name(), " to ", to.name(),
          ": they have variables of different shapes; assign between models of one structure, or copy-construct");
  for (std::size_t i = 0; i < source.size(); ++i) {
    target[i].set_mask(source[i].mask());
    target[i].assign(source[i].value());
  }
  const auto scale = to.layer_behind().loss_scale(), other = from.layer_behind().loss_scale();
  if (scale && other) scale->assign(*other);
}

Variables trainable_of(const Layer& layer) {
  require(layer.is_built(), "module ", layer.name(),
          " has no variables yet: call it on an input first, or build({f32, {any_size, ...}})");
  Variables trainable;
  for (const Variable& variable : layer.variables())
    if (variable.trainable()) trainable.add(variable);
  return trainable;
}

thread_local const Module* being_shared = nullptr;
/// Whether any model of this process shares a layer with another one: then the last that was asked has named it.
std::atomic<bool> shares_layers{false};

}  // namespace

Module::Module() : Module(std::shared_ptr<Layer>()) {}
Module::Module(std::shared_ptr<Layer> layer) : layer_(std::move(layer)) {
  whereabouts::enter(this, whereabouts::Kind::module);
}
Module::Module(const Module& other) : Module(std::shared_ptr<Layer>()) {
  if (other.copies_are_shared()) {
    layer_ = other.layer_;
    handle_ = Handle::shared;
  } else {
    Copying copying;
    layer_ = copying.copy_of(other.layer_, other, *this);
    if (copying.is_inner()) handle_ = other.handle_;
  }
}
Module::Module(Module&& other) noexcept : layer_(std::move(other.layer_)), handle_(other.handle_) {
  whereabouts::enter(this, whereabouts::Kind::module);
}
Module::~Module() { whereabouts::leave(this); }

void Module::settle() {
  if (handle_ != Handle::shared) return;
  handle_ = Handle::settled;
  shares_layers = true;
}
Module::Sharing::Sharing(const Module& module) { being_shared = &module; }
Module::Sharing::~Sharing() { being_shared = nullptr; }
/// What a model was made with is copied with the model, unless the model takes it now.
bool Module::copies_are_shared() const {
  return being_shared == this || (handle_ == Handle::shared && !Copying::is_active());
}

Module& Module::operator=(const Module& other) {
  if (this == &other) return *this;
  if (is_built() && other.layer_) write_values(other, *this);
  else *this = Module(other);
  return *this;
}

Module& Module::operator=(Module&& other) {
  if (this == &other) return *this;
  if (is_built() && other.layer_) write_values(other, *this);
  else layer_ = std::move(other.layer_);
  return *this;
}

Layer& Module::layer_behind() const {
  require(static_cast<bool>(layer_), "this module is empty: it was moved from; assign a module to it first");
  return *layer_;
}
bool Module::is_built() const { return layer_ && layer_->is_built(); }

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
  return layer_behind().variables();
}

Variables Module::trainable_variables() const {
  if (!layer_behind().is_built()) return Variables::later([layer = layer_] { return trainable_of(*layer); });
  return trainable_of(*layer_);
}

void Module::set_trainable(bool trainable) {
  for (Variable& variable : variables()) variable.set_trainable(trainable);
}

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
  if (mask.defined()) CallScope::set_mask(x, mask);
  return CallScope::mask_of((*this)(x));
}
const std::string& Module::name() const { return layer_behind().name(); }
std::string Module::summary() const { return summary_of(layer_behind()); }

}  // namespace gradus
