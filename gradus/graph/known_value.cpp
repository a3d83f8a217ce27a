/// A search for arguments first, which ends at the first one; the ops are then applied again outside of the trace.
#include "gradus/graph/known_value.h"
#include <optional>
#include <unordered_set>
#include "gradus/graph/context.h"
#include "gradus/graph/graph.h"
#include "gradus/graph/per_value.h"

namespace gradus {
namespace {

/// True if the value is there, or is computed without a trace.
bool is_given(const Node& node) { return !node.trace || node.value; }

/// True if a value that only a call of the function has, or one shard, leads to `root`.
bool follows_from_calls(const Node& root) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> left{&root};
  while (!left.empty()) {
    const Node* const node = left.back();
    left.pop_back();
    if (is_given(*node) || !seen.insert(node).second) continue;
    if (node->is_leaf() || node->varies || node->op.joins_shards() || node->spec.shape.is_symbolic()) return true;
    for (const Ref<Node>& operand : node->inputs) left.push_back(operand.get());
  }
  return false;
}

/// The ops that lead to `root`; empty if it is not known.
std::optional<Flattened> known_ops(Node& root) {
  if (follows_from_calls(root)) return {};
  Flattened flat = flatten(std::array{Ref<Node>(&root)}, is_given);
  if (flat.graph.symbols() > 0) return {};  // an op may have a size among its attributes
  return flat;
}

Tensor given_value(const Ref<Node>& node) {
  return node->value ? Tensor::of_buffer(node->spec, Ref<Buffer>(node->value.get())) : Tensor(node);
}

Tensor applied_outside(const Flattened& ops) {
  const Untraced outside;
  PerValue<Tensor> values(ops.graph);
  for (std::size_t i = 0; i < ops.inputs.size(); ++i) values[ops.graph.inputs[i]] = given_value(ops.inputs[i]);
  for (int i = 0; i < ops.graph.size(); ++i) {
    if (ops.graph[i].is_input()) continue;
    Tensors operands;
    for (const int operand : ops.graph[i].in) operands.push_back(values[operand]);
    values[i] = make_node(ops.graph[i].op, operands);
  }
  return values[ops.graph.outputs[0]];
}

}  // namespace

bool is_known(const Tensor& x) {
  return x.defined() && (is_given(*x.node()) || (Context::is_active(x.node()->trace) && known_ops(*x.node())));
}

bool compute_known(Node& node) {
  const std::optional<Flattened> ops = known_ops(node);
  if (!ops) return false;
  node.value.set(applied_outside(*ops).host_buffer());
  return true;
}

}  // namespace gradus
