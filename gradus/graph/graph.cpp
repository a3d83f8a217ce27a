/// Flattening of nodes, hashing and verification of graphs.
#include "gradus/graph/graph.h"
#include <algorithm>
#include <sstream>
#include <unordered_map>
#include "gradus/graph/extents.h"
#include "gradus/graph/flatten_in_order.h"
#include "gradus/graph/per_value.h"
#include <utility>
#include "gradus/graph/region.h"

namespace gradus {

int Graph::symbols() const {
  int count = 0;
  const auto add = [&](std::int64_t d) { count = std::max(count, dimension::symbols_in(d)); };
  std::vector<std::int64_t> extents;
  for (const Value& v : values) {
    for (std::int64_t d : v.spec.shape) add(d);
    if (v.op && Extents::add(v.op, extents)) std::ranges::for_each(std::exchange(extents, {}), add);
    for (const Region* region : v.op.regions()) count = std::max(count, region->symbols());
    // A size may be used as a number alone, or decide about a place alone.
    if (v.op.is_index())
      for (const scalar::Instruction& i : v.op.index_formula().instructions)
        if (i.op == scalar::Opcode::extent) add(static_cast<std::int64_t>(i.bits));
    if (v.op.is_view()) {
      const View view = v.op->view(v.op.attributes(), (*this)[v.in[0]].spec.shape, v.spec.shape);
      add(view.offset);
      for (std::int64_t stride : view.strides) add(stride);
    }
  }
  return count;
}

std::uint64_t hash_of(const Value& v, std::uint64_t seed) {
  std::uint64_t hash = mix(seed, v.op ? v.op.hash() : 1 + static_cast<std::uint64_t>(v.is_constant));
  for (int operand : v.in) hash = mix(hash, static_cast<std::uint64_t>(operand));
  return mix(mix(hash, hash_of(v.spec)), v.constant);
}

std::uint64_t hash_of(const Graph& graph) {
  std::uint64_t hash = graph.values.size();
  for (const Value& v : graph.values) hash = hash_of(v, hash);
  for (const auto* list : {&graph.inputs, &graph.outputs, &graph.dying}) {
    hash = mix(hash, list->size());
    for (int i : *list) hash = mix(hash, static_cast<std::uint64_t>(i));
  }
  return hash;
}

namespace {

class Flattener {
 public:
  explicit Flattener(const std::function<bool(const Node&)>& is_input = {}) : is_input_(is_input) {}

  void add_input(const Node& node) {
    result.graph.inputs.push_back(result.graph.add({.spec = node.spec, .scope = node.scope}));
    positions_[&node] = result.graph.inputs.back();
  }
  /// A computed node, whose operands are there.
  void add(const Node& node) {
    if (positions_.contains(&node)) return;
    Value v{.op = node.op, .spec = node.spec, .scope = node.scope};
    for (const Ref<Node>& operand : node.inputs) v.in.push_back(positions_.at(operand.get()));
    positions_[&node] = result.graph.add(std::move(v));
  }
  int place(Node* root) {
    enter(root);
    while (!stack_.empty()) {
      auto& [node, next] = stack_.back();
      if (next < node->inputs.size()) {
        enter(node->inputs[next++].get());
        continue;
      }
      add(*node);
      stack_.pop_back();
    }
    return positions_.at(root);
  }
  Flattened result;

 private:
  void enter(Node* node) {
    if (positions_.contains(node)) return;
    if (node->is_leaf() || (is_input_ && is_input_(*node))) {
      add_input(*node);
      result.inputs.emplace_back(node);
      return;
    }
    // A node that is met twice before it is done is entered twice; the second time it is already placed.
    stack_.emplace_back(node, 0);
  }

  const std::function<bool(const Node&)> is_input_;
  std::unordered_map<const Node*, int> positions_;
  std::vector<std::pair<Node*, int>> stack_;
};

/// Written only into a message: a graph is long.
struct Written {
  const Graph& graph;
  friend std::ostream& operator<<(std::ostream& out, const Written& written) { return out << to_text(written.graph); }
};
struct InGraph {
  const Graph& graph;
  int value;
  friend std::ostream& operator<<(std::ostream& out, const InGraph& place) {
    return out << "value %" << place.value << " of\n" << Written{place.graph};
  }
};

void verify_value(const Graph& graph, int i) {
  const Value& v = graph[i];
  const InGraph where{graph, i};
  std::vector<Spec> specs;
  for (int operand : v.in) {
    internal_check(operand >= 0 && operand < i, "an operand does not come first: ", where);
    specs.push_back(graph[operand].spec);
  }
  internal_check(!v.is_constant || (!v.op && v.in.empty()), "a constant has an op: ", where);
  if (!v.op) return;
  try {
    internal_check(v.op.infer(specs) == v.spec, "the spec is not what the op infers: ", where);
  } catch (const Error& error) { throw InternalError(text("internal fault: ", error.what(), ": ", where)); }
}

}  // namespace

Flattened detail::flatten(std::span<const Ref<Node>> roots, const std::function<bool(const Node&)>& is_input) {
  Flattener flattener(is_input);
  for (const Ref<Node>& root : roots) flattener.result.graph.outputs.push_back(flattener.place(root.get()));
  return std::move(flattener.result);
}

Graph flatten_in_order(std::span<Node* const> inputs, std::span<Node* const> computed) {
  Flattener flattener;
  for (const Node* node : inputs) flattener.add_input(*node);
  for (const Node* node : computed) flattener.add(*node);
  return std::move(flattener.result.graph);
}

void verify(const Graph& graph) {
  for (int i = 0; i < graph.size(); ++i) verify_value(graph, i);
  PerValue<int> bound(graph);
  for (int i : graph.inputs) {
    internal_check(i >= 0 && i < graph.size() && graph[i].is_input() && !bound[i]++,
                   "inputs are not what they have to be:\n", Written{graph});
  }
  for (int i = 0; i < graph.size(); ++i)
    internal_check(!graph[i].is_input() || bound[i], "value %", i, " is bound to nothing:\n", Written{graph});
  for (int o : graph.outputs) internal_check(o >= 0 && o < graph.size(), "an output does not exist:\n", Written{graph});
  for (int d : graph.dying)
    internal_check(d >= 0 && d < graph.size() && graph[d].is_input(), "what dies is no input:\n", Written{graph});
}

}  // namespace gradus
