#include "gradus/onnx/scope.h"
#include <algorithm>
#include <unordered_set>
#include "gradus/graph/context.h"
#include "gradus/onnx/placed.h"
#include "gradus/onnx/row.h"

namespace gradus::onnx {
namespace {

/// The attributes of `node`, those that stand for an attribute of the function around replaced by its value.
std::vector<Attribute> substituted(const NodeDefinition& node, const Scope& scope) {
  std::vector<Attribute> attributes;
  for (const Attribute& a : node.attributes) {
    const Attribute* actual = a.reference.empty() ? &a : scope.function_attribute(a.reference);
    if (!actual) continue;
    attributes.push_back(*actual);
    attributes.back().name = a.name;
  }
  return attributes;
}

bool has_references(const NodeDefinition& node) {
  return std::ranges::any_of(node.attributes, [](const Attribute& a) { return !a.reference.empty(); });
}
bool has_graphs(const NodeDefinition& node) {
  return std::ranges::any_of(node.attributes, [](const Attribute& a) { return a.graph != nullptr; });
}

/// Within a trace, what depends on nothing but constants is computed once, outside of it: so its values can decide
/// about shapes.
bool is_constant_in_trace(const NodeDefinition& node, In inputs) {
  return Context::current() && node.row && !node.row->random && !has_graphs(node) &&
         std::ranges::none_of(inputs, [](const Tensor& x) { return x.is_symbolic(); });
}

Results compute(const NodeDefinition& node, const Tensors& inputs, const Scope& scope) {
  const Call call(node, inputs, scope);
  if (!is_constant_in_trace(node, inputs)) return node.row->run(call);
  const Untraced outside;
  return node.row->run(call);
}

Tensors call_function(const NodeDefinition& node, const Tensors& inputs, const Scope& caller) {
  const FunctionDefinition& f = *node.function;
  require<DataError>(inputs.size() <= f.inputs.size(), "the function takes ", f.inputs.size(), " inputs, given ",
                     inputs.size());
  Scope body(f.body, nullptr, &node, &f);
  if (caller.is_wide()) body.widen();
  for (std::size_t i = 0; i < f.inputs.size(); ++i) body.set(f.inputs[i], i < inputs.size() ? inputs[i] : Tensor());
  for (const NodeDefinition& inner : f.body.nodes) body.run(inner);
  Tensors results;
  for (const std::string& name : f.outputs) results.push_back(body.get(name));
  return results;
}

/// The same error, opened by the node; its kind is kept where it is not about the model.
[[noreturn]] void rethrow_at(const NodeDefinition& node) {
  const std::string place =
      text("node ", named(node.name.empty() && !node.outputs.empty() ? node.outputs.front() : node.name), " (",
           node.domain.empty() ? "" : node.domain + ".", node.op, "-", node.version, "): ");
  try {
    throw;
  } catch (const Unsupported& error) {
    throw Unsupported(place + error.what());
  } catch (const ResourceExhausted& error) {
    throw ResourceExhausted(place + error.what());
  } catch (const Error& error) { throw DataError(place + error.what()); } catch (const std::bad_alloc&) {
    throw ResourceExhausted(place + "no memory for it");
  }
}

void collect_names(const GraphDefinition& graph, std::unordered_set<std::string> inside,
                   std::vector<std::string>& names) {
  for (const ValueInfo& input : graph.inputs) inside.insert(input.name);
  for (const NamedTensor& made : graph.initializers) inside.insert(made.name);
  const auto use = [&](const std::string& name) {
    if (!name.empty() && !inside.contains(name)) names.push_back(name);
  };
  for (const NodeDefinition& node : graph.nodes) {
    for (const std::string& name : node.inputs) use(name);
    for (const Attribute& a : node.attributes)
      if (a.graph) collect_names(*a.graph, inside, names);
    inside.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const ValueInfo& output : graph.outputs) use(output.name);
}

}  // namespace

bool Scope::has(const std::string& name) const { return values_.contains(name) || (outer_ && outer_->has(name)); }

Tensor Scope::as_here(const Tensor& value) const { return wide_ && value.defined() ? wide(value) : value; }

const Tensor& Scope::get(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer_)
    if (const auto found = scope->values_.find(name); found != scope->values_.end()) return found->second;
  throw DataError(text("there is no value `", name, "`"));
}

const Attribute* Scope::function_attribute(const std::string& name) const {
  const Scope* scope = this;
  while (scope && !scope->call_) scope = scope->outer_;
  if (!scope) return nullptr;
  for (const Attribute& a : scope->call_->attributes)
    if (a.name == name) return &a;
  for (const Attribute& a : scope->function_->defaults)
    if (a.name == name) return &a;
  return nullptr;
}

void Scope::run(const NodeDefinition& written) {
  NodeDefinition replaced;
  if (has_references(written)) {
    replaced = written;
    replaced.attributes = substituted(written, *this);
  }
  const NodeDefinition& node = has_references(written) ? replaced : written;
  Tensors inputs;
  for (const std::string& name : node.inputs) inputs.push_back(name.empty() ? Tensor() : as_here(get(name)));
  Tensors results;
  try {
    results = node.function ? call_function(node, inputs, *this) : static_cast<Tensors>(compute(node, inputs, *this));
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      require<DataError>(i < results.size(), "there is no output ", i, "; the op has ", results.size());
      set(node.outputs[i], results[i]);
    }
  } catch (const Error&) { rethrow_at(node); }
  for (const std::string& name : node.dying) forget(name);
}

Tensors Scope::run_all() {
  for (const NodeDefinition& node : graph_.nodes) run(node);
  Tensors results;
  for (const ValueInfo& output : graph_.outputs) results.push_back(get(output.name));
  return results;
}

Tensors run_graph(const GraphDefinition& graph, In inputs, const Scope* outer) {
  require<DataError>(inputs.size() == graph.inputs.size(), "graph `", graph.name, "` takes ", graph.inputs.size(),
                     " inputs, given ", inputs.size());
  Scope scope(graph, outer);
  for (const NamedTensor& made : graph.initializers) scope.set(made.name, made.value);
  for (std::size_t i = 0; i < inputs.size(); ++i) scope.set(graph.inputs[i].name, inputs[i]);
  return scope.run_all();
}

bool runs_again(const GraphDefinition& graph) {
  return std::ranges::any_of(graph.nodes, [](const NodeDefinition& node) {
    return node.op == "Gradient" ||
           std::ranges::any_of(node.attributes, [](const Attribute& a) { return a.graph && runs_again(*a.graph); });
  });
}

std::vector<std::string> captured_names(const NodeDefinition& node) {
  std::vector<std::string> names;
  for (const Attribute& a : node.attributes)
    if (a.graph) collect_names(*a.graph, {}, names);
  return names;
}

}  // namespace gradus::onnx
