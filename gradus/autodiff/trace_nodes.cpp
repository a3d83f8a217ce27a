/// A depth-first walk without recursion.
#include "gradus/autodiff/trace_nodes.h"
#include <unordered_set>

namespace gradus {

std::vector<Ref<Node>> nodes_of_trace(In roots, std::uint32_t trace) {
  std::vector<Ref<Node>> order;
  std::unordered_set<const Node*> entered;
  std::vector<std::pair<Node*, int>> stack;
  const auto enter = [&](Node* node) {
    if (node && node->trace == trace && !node->is_leaf() && entered.insert(node).second) stack.emplace_back(node, 0);
  };
  for (const Tensor& root : roots) {
    enter(root.node().get());
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < node->inputs.size()) {
        enter(node->inputs[next++].get());
        continue;
      }
      order.emplace_back(node);
      stack.pop_back();
    }
  }
  return order;
}

}  // namespace gradus
