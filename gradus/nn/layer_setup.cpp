/// The setup of a layer beside its values: its trainability, its view by traces, and becoming another layer.
#include <algorithm>
#include <typeinfo>
#include "gradus/function/trace.h"
#include "gradus/function/variable_cell.h"
#include "gradus/nn/layer.h"

namespace gradus {
namespace {

std::string shown(const Layer& layer) {
  return text("layer ", layer.name().empty() ? layer.kind() : std::string_view(layer.name()));
}

/// Calls f(layer) for `layer` and all within.
void for_each_layer(const Layer& layer, const std::function<void(const Layer&)>& f) {
  f(layer);
  for (const auto& child : layer.children()) for_each_layer(*child, f);
}

}  // namespace

void Layer::set_trainable(bool trainable) {
  if (Trace* trace = Trace::current()) trace->note_set(setup_.record()->trainable);
  setup_.set_trainable(trainable);
  for (const auto& child : children()) child->set_trainable(trainable);
  for (const Variable& variable : variables())
    variable.cell()->set_trainable(trainable && variable.cell()->made_trainable);
}

bool Layer::is_trainable() const {
  if (Trace* trace = Trace::current()) {
    const auto& record = setup_.record();
    trace->watch_flag(std::shared_ptr<const std::atomic<bool>>(record, &record->trainable), shown(*this));
  }
  return setup_.trainable();
}

void Layer::note_change_within(const char* how) {
  setup_.change(how);
  for (const auto& child : children()) child->note_change_within(how);
}

void Layer::watch(Trace& trace) const { trace.watch(WatchedSetup{setup_.record(), setup_.number(), shown(*this)}); }

void Layer::note_looked_at() const {
  if (Trace* trace = Trace::current()) for_each_layer(*this, [&](const Layer& layer) { layer.watch(*trace); });
}

bool Layer::has_setup_of(const Layer& other) const {
  if (typeid(*this) != typeid(other) || !has_fixed_setup() || origin_ != other.origin_) return false;
  return std::ranges::equal(children(), other.children(),
                            [](const auto& mine, const auto& theirs) { return mine->has_setup_of(*theirs); });
}

void Layer::rebind(const Rebinding& cells) {
  Variables bound;
  for (const auto& cell : own_.cells()) {
    const auto found = cells.find(cell.get());
    bound.add((found == cells.end() ? cell : found->second)->handle);
  }
  own_ = std::move(bound);
  for (const auto& child : children()) child->rebind(cells);
  name_variables();
}

void Layer::take_own(Layer& fresh) {
  origin_ = fresh.origin_;
  policy_ = fresh.policy_;
  own_policy_ = fresh.own_policy_;
  loss_scale_ = std::move(fresh.loss_scale_);
  name_ = std::move(fresh.name_);
  prefix_ = std::move(fresh.prefix_);
  own_name_ = fresh.own_name_;
  built_ = fresh.built_;
  input_ = std::move(fresh.input_);
  inputs_ = std::move(fresh.inputs_);
  own_ = std::move(fresh.own_);
  own_names_ = std::move(fresh.own_names_);
  own_regularizers_ = std::move(fresh.own_regularizers_);
  activity_regularizer_ = std::move(fresh.activity_regularizer_);
  call_losses_.forget();
  setup_.set_trainable(fresh.setup_.trainable());
}

/// Default names go by the field, or by the kind with a number: "dense_1".
void Layer::take_place_of(const Layer& before, bool keeps_own_name) {
  if (!own_name_ || (before.own_name_ && !keeps_own_name)) {
    std::string name = before.name_;
    if (!before.own_name_ && name.starts_with(before.kind())) name.replace(0, before.kind().size(), kind());
    rename(std::move(name), before.own_name_);
  }
  set_prefix(before.prefix_);
  if (own_policy_ || before.own_policy_) return;
  if (before.policy_ && policy_ != before.policy_) take_policy(*before.policy_, false);
  if (before.loss_scale_) take_loss_scale(before.loss_scale_);
}

void Layer::copy_trainability(const Layer& like) {
  setup_.set_trainable(like.setup_.trainable());
  const auto mine = children(), theirs = like.children();
  for (std::size_t i = 0; i < mine.size() && i < theirs.size(); ++i) mine[i]->copy_trainability(*theirs[i]);
}

void Layer::keep_loss_scale_of(const Layer& before) {
  if (const auto own = loss_scale(), known = before.loss_scale(); own && known && own != known) {
    known->assign(*own);
    replace_loss_scale(own, known);
  }
  settle_loss_scale();
}

void Layer::replace_loss_scale(const std::shared_ptr<LossScale>& before, const std::shared_ptr<LossScale>& now) {
  if (loss_scale_ == before) loss_scale_ = now;
  for (const auto& child : children()) child->replace_loss_scale(before, now);
}

/// Variables belong to the innermost layer.
void Layer::settle_loss_scale() {
  for (const Variable& variable : variables()) variable.cell()->loss_scale = loss_scale_;
  for (const auto& child : children()) child->settle_loss_scale();
}

}  // namespace gradus
