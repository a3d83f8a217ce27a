/// A module's inference as nodes with names.
#include <map>
#include <set>
#include "gradus/function/mode.h"
#include "gradus/function/trace.h"
#include "gradus/function/variable_cell.h"
#include "gradus/graph/scope.h"
#include "gradus/nn/layer.h"
#include "gradus/train/tensorboard.h"

namespace gradus {
namespace {

/// Open sizes as symbols.
Spec with_symbols(Spec spec) {
  int next = 0;
  for (int axis = 0; axis < spec.shape.rank(); ++axis)
    if (spec.shape[axis] == any_size) spec.shape.set(axis, dimension::symbol(next++));
  return spec;
}

class Shower {
 public:
  explicit Shower(const Trace& trace) {
    name(*trace.parameters()[0].node(), "x", "Placeholder");
    for (const auto& cell : trace.cells())
      if (cell->parameter.defined()) name(*cell->parameter.node(), cell->cell->name, "VariableV2");
  }

  /// Operands come first.
  void show(const Node& root) {
    std::vector<std::pair<const Node*, int>> stack{{&root, 0}};
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next == 0 && names_.contains(node)) stack.pop_back();
      else if (next < node->inputs.size()) stack.emplace_back(node->inputs[next++].get(), 0);
      else {
        add(*node);
        stack.pop_back();
      }
    }
  }
  std::vector<ShownNode> nodes;

 private:
  void add(const Node& node) {
    if (names_.contains(&node)) return;
    const std::string path = scope_path(node.scope), op(node.op ? node.op->name : std::string_view("constant"));
    name(node, path.empty() ? op : path + '/' + op, node.op ? op : "Const");
    for (const Ref<Node>& input : node.inputs) nodes.back().inputs.push_back(names_.at(input.get()));
  }

  void name(const Node& node, const std::string& wanted, std::string op) {
    std::string name = wanted;
    for (int i = 1; !taken_.insert(name).second; ++i) name = text(wanted, '_', i);
    names_.emplace(&node, name);
    nodes.push_back({std::move(name), std::move(op), {}, node.spec});
  }

  std::map<const Node*, std::string> names_;
  std::set<std::string> taken_;
};

}  // namespace

std::vector<ShownNode> detail::shown_graph(const Module& model) {
  const auto& input = model.layer_behind().input();
  if (!input) return {};
  const Spec argument = with_symbols(*input);
  const ModeScope mode(CallMode::inference);
  const Trace trace({&argument, 1});
  const Tensor result = model(trace.parameters()[0], inference);
  Shower shower(trace);
  shower.show(*result.node());
  return std::move(shower.nodes);
}

}  // namespace gradus
