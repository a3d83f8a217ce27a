/// Finding, naming and building the layers of a struct.
#include "gradus/nn/net_layer.h"
#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <typeinfo>
#include "gradus/function/pending.h"
#include "gradus/function/trace.h"
#include "gradus/nn/cloned.h"

namespace gradus {

std::shared_ptr<NetLayer> NetLayer::of(const Module& model) {
  auto layer = std::dynamic_pointer_cast<NetLayer>(child_of(model));
  require(static_cast<bool>(layer), "module ", model.layer_behind().called(), ": it is no struct of layers");
  return layer;
}

void NetLayer::run_for(std::span<const Spec> inputs, CallMode call_mode) {
  std::vector<Spec> symbolic(inputs.begin(), inputs.end());
  for (Spec& spec : symbolic)
    for (int axis = 0; axis < spec.shape.rank(); ++axis)
      if (spec.shape[axis] < 0) spec.shape.set(axis, dimension::symbol(axis));
  const ModeScope mode(call_mode);
  const OutermostCall call(*this);
  const Trace trace(symbolic);
  const TrialScope trial;  // ends first: it holds what is traced
  Tensors parameters;
  for (const Tensor& parameter : trace.parameters()) parameters.push_back(computed(parameter));
  run_on(parameters);
}

namespace {

/// True if a walk down from `layer` meets `goal`. Walks within this one do not ask.
bool leads_to(const Layer& layer, const Layer& goal, std::set<const Layer*>& seen) {
  if (&layer == &goal) return true;
  if (!seen.insert(&layer).second) return false;
  return std::ranges::any_of(layer.children(), [&](const auto& child) { return leads_to(*child, goal, seen); });
}
thread_local bool looks_for_circles = false;

/// A raw pointer may lead to an object that holds the model itself, as a pointer to the parent does: it is none of its
/// layers then.
void drop_circles(std::vector<NetLayer::Met>& met, const Layer& net) {
  if (looks_for_circles) return;
  looks_for_circles = true;
  std::erase_if(met, [&](const NetLayer::Met& each) {
    std::set<const Layer*> seen;
    return each.is_borrowed && leads_to(each.layer->layer_behind(), net, seen);
  });
  looks_for_circles = false;
}

std::string text_name(const std::string& path, const SavedText& text) {
  return path + '/' + std::string(text.saved_as());
}

/// Each variable once, in their order. By halves, so that a list is copied as often as a logarithm of their number.
Variables joined(std::span<const Variables> lists) {
  if (lists.size() < 2) return lists.empty() ? Variables() : lists[0];
  const std::size_t half = lists.size() / 2;
  return joined(lists.first(half)) + joined(lists.subspan(half));
}

}  // namespace

std::vector<NetLayer::Met> NetLayer::layers() const {
  std::vector<Met> all, met;
  visit({.layer = [&](const std::string& field,
                      const Module& layer) { all.push_back({field, &layer, layer.is_settled()}); },
         .borrowed = [&](const std::string& field, const Module& layer) { all.push_back({field, &layer, true}); }});
  std::map<const Layer*, bool> is_owned;
  for (const Met& each : all) is_owned[&each.layer->layer_behind()] |= !each.is_borrowed;
  std::set<const Layer*> seen;
  bool any_borrowed = false;
  for (Met& each : all) {
    const Layer* layer = &each.layer->layer_behind();
    if ((each.is_borrowed && is_owned[layer]) || !seen.insert(layer).second) continue;
    any_borrowed = any_borrowed || each.is_borrowed;
    met.push_back(std::move(each));
  }
  if (any_borrowed) drop_circles(met, *this);
  return met;
}

std::vector<std::shared_ptr<Layer>> NetLayer::children() const {
  std::vector<std::shared_ptr<Layer>> all;
  for (const Met& each : layers()) all.push_back(child_of(*each.layer));
  return all;
}

Variables NetLayer::variables() const {
  std::vector<Variables> all;
  const std::vector<Met> met = layers();
  auto next = met.begin();
  const auto meet = [&](const std::string&, const Module& layer) {
    if (next == met.end() || next->layer != &layer) return;
    all.push_back(next++->layer->layer_behind().variables());
  };
  visit({.layer = meet,
         .variable = [&](const std::string&, const Variable& variable) { all.push_back(Variables{variable}); },
         .borrowed = meet});
  return joined(all);
}

void NetLayer::adopt_fields() {
  const auto settle = [](const std::string&, const Module& layer) { const_cast<Module&>(layer).settle(); };
  visit({.layer = settle, .borrowed = [](const std::string&, const Module&) {}});
  name_variables();
}

WatchedFields::Fields NetLayer::fields() const {
  WatchedFields::Fields fields;
  visit({.layer = [&](const std::string& name,
                      const Module& layer) { fields.emplace_back(name, "", layer.setup_number()); },
         .plain = [&](const std::string& name, std::string value) { fields.emplace_back(name, std::move(value)); }});
  return fields;
}

void NetLayer::watch(Trace& trace) const {
  Layer::watch(trace);
  trace.watch(WatchedFields{setup().record(), name().empty() ? "a model" : "model " + name(), fields(),
                            [this] { return fields(); }});
}

bool NetLayer::has_setup_of(const Layer& other) const {
  if (typeid(*this) != typeid(other) || policy() != other.policy()) return false;
  const auto& net = static_cast<const NetLayer&>(other);
  bool is_known = true;
  WatchedFields::Fields plain[2];
  for (const NetLayer* each : {this, &net}) {
    WatchedFields::Fields& own = plain[each == this];
    each->visit({.layer = [&](const std::string& name, const Module&) { own.emplace_back(name, "", 1u); },
                 .plain = [&](const std::string& name, std::string value) { own.emplace_back(name, std::move(value)); },
                 .other = [&](const std::string&) { is_known = false; }});
  }
  return is_known && plain[0] == plain[1] &&
         std::ranges::equal(children(), other.children(),
                            [](const auto& mine, const auto& theirs) { return mine->has_setup_of(*theirs); });
}

void NetLayer::rebind(const Rebinding& cells) {
  Layer::rebind(cells);
  visit({.variable = [&](const std::string&, const Variable& variable) {
    if (const auto found = cells.find(variable.cell().get()); found != cells.end())
      const_cast<Variable&>(variable).become(found->second);
  }});
  name_variables();
}

/// "layers_0/kernel"; a model with a name, as a field of another model has one, puts that first.
void NetLayer::name_variables() {
  const std::string path = prefix() + (name().empty() ? "" : name() + "/");
  for (const auto& [field, module, is_borrowed] : layers()) {
    Layer& layer = module->layer_behind();
    const bool has_own_name = layer.has_own_name();
    const std::string outer = path + field.substr(0, has_own_name ? field.rfind('/') + 1 : 0);
    if (is_borrowed) {
      layer.name_variables_as(outer, has_own_name ? layer.name() : field);
      continue;
    }
    if (!has_own_name) layer.rename(field, false);
    layer.set_prefix(outer);
  }
  visit({.variable = [&](const std::string& field, const Variable& variable) {
    const_cast<Variable&>(variable).set_name(path + field);
  }});
}

void NetLayer::visit_texts(const std::string& path, const TextVisitor& visit_text) const {
  for (const auto& [field, module, is_borrowed] : layers()) {
    const Layer& layer = module->layer_behind();
    const bool has_own_name = !is_borrowed && layer.has_own_name();
    layer.visit_texts(path + (has_own_name ? field.substr(0, field.rfind('/') + 1) + layer.name() : field) + '/',
                      visit_text);
  }
  visit({.text = [&](const std::string& field, const SavedText& text) {
    visit_text(text_name(path + field, text), text);
  }});
}

NetCall::NetCall(const Module& model, std::shared_ptr<NetLayer> layer)
    : model_(model),
      layer_(std::move(layer)),
      scope_(layer_->name().empty() ? layer_->kind() : std::string_view(layer_->name())),
      call_(*layer_) {
  note_use();
}

NetCall::NetCall(const Module& model) : NetCall(model, NetLayer::of(model)) {}

void NetCall::note_use() const {
  if (Trace* trace = Trace::current()) trace->note_use(&model_, layer_->variables());
}

void NetCall::finish(std::vector<Spec> inputs) const {
  if (layer_->is_built()) return;
  layer_->finish_first_call(inputs);
  note_use();
}

void detail::fail_as_module(const Layer& layer) {
  throw InvalidArgument(text("model ", layer.called(),
                             ": it does not make one tensor of one tensor; call it as the Model that it is, with all "
                             "its inputs"));
}

}  // namespace gradus
