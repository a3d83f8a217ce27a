/// Finding, naming and building what a struct of layers holds.
#include "gradus/nn/net_layer.h"
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

WatchedFields::Fields NetLayer::plain_fields() const {
  WatchedFields::Fields fields;
  visit({.plain = [&](const std::string& name, std::string value) { fields.emplace_back(name, std::move(value)); }});
  return fields;
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
  Trace* trace = Trace::current();
  if (!trace) return;
  WatchedFields::Fields fields = layer->plain_fields();
  if (fields.empty()) return;
  const auto now = [weak = std::weak_ptr(layer)] {
    const auto alive = weak.lock();
    return alive ? alive->plain_fields() : WatchedFields::Fields();
  };
  const std::string owner = layer->name().empty() ? "a model" : "model " + layer->name();
  trace->watch({layer.get(), owner, std::move(fields), now});
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
