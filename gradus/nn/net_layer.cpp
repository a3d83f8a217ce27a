/// Finding, naming and building what a struct of layers holds.
#include "gradus/nn/net_layer.h"
#include <algorithm>
#include <typeinfo>
#include "gradus/function/pending.h"
#include "gradus/function/trace.h"
#include "gradus/nn/cloned.h"

namespace gradus {

void NetLayer::build_for(std::span<const Spec> inputs) {
  std::vector<Spec> symbolic(inputs.begin(), inputs.end());
  for (Spec& spec : symbolic)
    for (int axis = 0; axis < spec.shape.rank(); ++axis)
      if (spec.shape[axis] < 0) spec.shape.set(axis, dimension::symbol(axis));
  const ModeScope mode(CallMode::inference);
  const Trace trace(symbolic);
  const TrialScope trial;  // ends first: it holds what is traced
  Tensors parameters;
  for (const Tensor& parameter : trace.parameters()) parameters.push_back(computed(parameter));
  run_on(parameters);
}

std::vector<std::shared_ptr<Layer>> NetLayer::children() const {
  std::vector<std::shared_ptr<Layer>> all;
  visit({.layer = [&](const std::string&, const Module& layer) { all.push_back(child_of(layer)); }});
  return all;
}

Variables NetLayer::variables() const {
  Variables all;
  visit({.layer = [&](const std::string&, const Module& layer) { all = all + layer.variables(); },
         .variable = [&](const std::string&, const Variable& variable) { all.add(variable); }});
  return all;
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
  visit({.layer =
             [&](const std::string& field, const Module& module) {
               Layer& layer = module.layer_behind();
               if (!layer.has_own_name()) layer.rename(field, false);
               const std::size_t outer = layer.has_own_name() ? field.rfind('/') + 1 : 0;
               layer.set_prefix(path + field.substr(0, outer));
             },
         .variable = [&](const std::string& field,
                         const Variable& variable) { const_cast<Variable&>(variable).set_name(path + field); }});
}

NetCall::NetCall(const Module& model, const std::shared_ptr<NetLayer>& layer)
    : model_(model),
      layer_(layer),
      scope_(layer->name().empty() ? layer->kind() : std::string_view(layer->name())),
      call_(*layer) {
  note_use();
}

void NetCall::note_use() const {
  if (Trace* trace = Trace::current()) trace->note_use(&model_, layer_->variables());
}

void NetCall::finish(std::vector<Spec> inputs) const {
  if (layer_->is_built()) return;
  layer_->finish_first_call(inputs);
  note_use();
}

void fail_as_module(const Layer& layer) {
  throw InvalidArgument(text("model ", layer.name(),
                             ": it does not make one tensor of one tensor; call it as the Model that it is, with all "
                             "its inputs"));
}

}  // namespace gradus
