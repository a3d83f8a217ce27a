#include "gradus/onnx/resolve.h"
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include "gradus/onnx/attributes.h"
#include "gradus/onnx/row.h"
#include "gradus/onnx/scope.h"

namespace gradus::onnx {
namespace {

/// Calls of functions within functions multiply: at most this many nodes may run for one call of the model, loops
/// aside.
constexpr std::int64_t most_nodes = 1'000'000;
/// Functions that call functions: each call stands on the stack.
constexpr int most_calls = 200;

class Resolver {
 public:
  Resolver(ModelFile& model, const std::string& file) : model_(model), file_(file) {}
  void run();

 private:
  using Names = std::unordered_set<std::string>;
  /// The names of a graph and of those around it.
  struct Known {
    Names names;
    const Known* outer = nullptr;
    bool has(const std::string& name) const { return names.contains(name) || (outer && outer->has(name)); }
  };
  template <class... Parts> void expect(bool ok, const Parts&... parts) const {
    if (!ok) throw DataError(printable(text(file_, ": ", parts...), true));
  }
  void enter_functions();
  void resolve_graph(GraphDefinition& graph, const std::vector<OperatorSet>& opsets, Known known);
  void resolve_subgraph(const NodeDefinition& node, const Attribute& attribute, const std::vector<OperatorSet>& opsets,
                        const Known& around);
  void check_attribute(const NodeDefinition& node, const std::string& name, std::int64_t opset) const;
  void resolve_node(NodeDefinition& node, const std::vector<OperatorSet>& opsets);
  void find_function(NodeDefinition& node, std::int64_t opset);
  void mark_dying(GraphDefinition& graph, const Names& kept) const;
  /// How many nodes a graph is when functions stand in place of their calls, and how deep these are nested.
  struct Size {
    std::int64_t nodes = 0;
    int depth = 0;
    void add(const Size& part) {
      nodes += part.nodes;
      depth = std::max(depth, part.depth);
    }
  };
  Size size_of(const GraphDefinition& graph);
  Size size_of(const FunctionDefinition& function);

  ModelFile& model_;
  const std::string& file_;
  std::map<std::string, FunctionDefinition*> functions_;
  std::map<std::string, std::string> unknown_;                 // ops, each with the first node that wants it
  std::unordered_map<const FunctionDefinition*, Size> sizes_;  // of no node: being counted
  int level_ = 0;
};

std::string key_of(const auto& f, std::string_view name) { return text(f.domain, "::", name, "::", f.overload); }

std::optional<std::int64_t> version_of(const std::vector<OperatorSet>& opsets, const std::string& domain) {
  for (const OperatorSet& set : opsets)
    if (set.domain == domain) return set.version;
  return {};
}

/// The latest of the row's versions up to this opset; 0 if all are later.
int version_at(const Row& row, std::int64_t opset) {
  int best = 0;
  for (const int version : row.versions)
    if (version <= opset) best = std::max(best, version);
  return best;
}

void Resolver::find_function(NodeDefinition& node, std::int64_t opset) {
  const auto found = functions_.find(key_of(node, node.op));
  if (found != functions_.end()) {
    node.function = found->second;
    node.version = static_cast<int>(opset);
    return;
  }
  unknown_.emplace(text(node.domain, node.domain.empty() ? "" : ".", node.op, "-", opset), node.where());
}

/// One that the op has not in this opset would be ignored, and something else computed.
void Resolver::check_attribute(const NodeDefinition& node, const std::string& name, std::int64_t opset) const {
  if (has_attribute(node.op, name, opset)) return;
  const std::string opsets = opsets_with(node.op, name), named = attributes_of(node.op, opset);
  const std::string_view there = named.empty() ? "none" : std::string_view(named);
  expect(!opsets.empty(), node.where(), ": unknown attribute `", name, "`; ", node.op, " has ", there);
  expect(false, node.where(), ": attribute `", name, "` is of opsets ", opsets, ", but the model is of ", opset,
         ", where ", node.op, " has ", there);
}

void Resolver::resolve_node(NodeDefinition& node, const std::vector<OperatorSet>& opsets) {
  const std::optional<std::int64_t> opset = version_of(opsets, node.domain);
  const bool is_local = functions_.contains(key_of(node, node.op));
  expect(opset || is_local, node.where(), ": the model imports no operator set of domain `", node.domain, "`");
  if (is_local) return find_function(node, opset.value_or(1));
  const Row* row = find_row(node.domain, node.op);
  node.version = row ? version_at(*row, *opset) : 0;
  if (node.version == 0) return find_function(node, *opset);
  node.row = row;
  for (const Attribute& a : node.attributes) check_attribute(node, a.name, *opset);
}

void Resolver::resolve_subgraph(const NodeDefinition& node, const Attribute& attribute,
                                const std::vector<OperatorSet>& opsets, const Known& around) {
  Known inner{.outer = &around};
  for (const ValueInfo& input : attribute.graph->inputs)
    expect(inner.names.insert(input.name).second, node.where(), ": two inputs of graph `", attribute.name,
           "` are named `", input.name, "`");
  for (const NamedTensor& made : attribute.graph->initializers) inner.names.insert(made.name);
  resolve_graph(*attribute.graph, opsets, std::move(inner));
}

/// `known`: names that exist before the graph's nodes.
void Resolver::resolve_graph(GraphDefinition& graph, const std::vector<OperatorSet>& opsets, Known known) {
  for (NodeDefinition& node : graph.nodes) {
    expect(!node.op.empty(), node.where(), ": a node without an op");
    for (const std::string& name : node.inputs)
      expect(name.empty() || known.has(name), node.where(), ": input `", name,
             "` is made by no node before it: the graph has a cycle, is not in order, or lacks it");
    resolve_node(node, opsets);
    for (const Attribute& a : node.attributes)
      if (a.graph) resolve_subgraph(node, a, opsets, known);
    for (const std::string& name : node.outputs)
      expect(name.empty() || known.names.insert(name).second, node.where(), ": output `", name,
             "` is the name of another value");
  }
  Names kept;
  for (const ValueInfo& output : graph.outputs) {
    expect(known.has(output.name), "graph `", graph.name, "`: output `", output.name, "` is made by no node");
    kept.insert(output.name);
  }
  mark_dying(graph, kept);
}

/// A Gradient runs nodes again that come before it, so nothing dies in its graph and those around it.
void Resolver::mark_dying(GraphDefinition& graph, const Names& kept) const {
  if (runs_again(graph)) return;
  Names seen = kept;
  Names made;
  for (const NodeDefinition& node : graph.nodes) made.insert(node.outputs.begin(), node.outputs.end());
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    std::vector<std::string> used = captured_names(*node);
    used.insert(used.end(), node->inputs.begin(), node->inputs.end());
    used.insert(used.end(), node->outputs.begin(), node->outputs.end());
    for (const std::string& name : used)
      if (made.contains(name) && seen.insert(name).second) node->dying.push_back(name);
  }
}

Resolver::Size Resolver::size_of(const GraphDefinition& graph) {
  Size size;
  for (const NodeDefinition& node : graph.nodes) {
    size.add(node.function ? size_of(*node.function) : Size{1, 0});
    for (const Attribute& a : node.attributes)
      if (a.graph) size.add(size_of(*a.graph));
    expect(size.nodes <= most_nodes, "the functions that call functions make up more than ", most_nodes, " nodes");
  }
  return size;
}

Resolver::Size Resolver::size_of(const FunctionDefinition& function) {
  const auto [place, is_new] = sizes_.emplace(&function, Size{});
  expect(is_new || place->second.nodes > 0, "function `", function.name, "` calls itself");
  if (!is_new) return place->second;
  const auto expect_flat = [&](int depth) {
    expect(depth <= most_calls, "functions call functions more than ", most_calls, " deep");
  };
  expect_flat(++level_);  // before the walk goes deeper, and below for nodes counted before
  Size size = size_of(function.body);
  --level_;
  size.add({1, size.depth + 1});
  expect_flat(size.depth);
  return sizes_[&function] = size;
}

void Resolver::enter_functions() {
  for (const auto& f : model_.functions)
    expect(functions_.emplace(key_of(*f, f->name), f.get()).second, "two functions are named `", f->name, "`");
  for (const auto& f : model_.functions) {
    Known known;
    for (const std::string& input : f->inputs)
      expect(known.names.insert(input).second, "function `", f->name, "`: two inputs are named `", input, "`");
    for (const std::string& output : f->outputs) f->body.outputs.push_back({.name = output});
    resolve_graph(f->body, f->opsets.empty() ? model_.opsets : f->opsets, std::move(known));
  }
}

void Resolver::run() {
  for (const OperatorSet& set : model_.opsets)
    if (set.domain.empty() && set.version > newest_opset)
      throw Unsupported(text(file_, ": operator set ", set.version, "; the newest that is known is ", newest_opset));
  enter_functions();
  Known known;
  for (const ValueInfo& input : model_.graph.inputs)
    expect(!input.name.empty() && known.names.insert(input.name).second, "two inputs are named `", input.name, "`");
  Names made;
  for (const NamedTensor& each : model_.graph.initializers)
    expect(!each.name.empty() && made.insert(each.name).second, "two initializers are named `", each.name, "`");
  known.names.insert(made.begin(), made.end());
  resolve_graph(model_.graph, model_.opsets, std::move(known));
  if (!unknown_.empty()) {
    std::string list;
    for (const auto& [op, node] : unknown_) list += text(list.empty() ? "" : ", ", "op ", op, " of ", node);
    throw Unsupported(printable(text(file_, ": there is no ", list), true));
  }
  size_of(model_.graph);
}

}  // namespace

void resolve(ModelFile& model, const std::string& file) { Resolver(model, file).run(); }

}  // namespace gradus::onnx
