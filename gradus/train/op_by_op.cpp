/// The walk back over recorded nodes.
#include "gradus/train/op_by_op.h"
#include <algorithm>
#include <unordered_set>

namespace gradus {

std::vector<const Node*> history(std::span<const Tensor> last) {
  std::vector<const Node*> found, stack;
  std::unordered_set<const Node*> seen;
  for (const Tensor& x : last) stack.push_back(x.node().get());
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (node->is_leaf() || !seen.insert(node).second) continue;
    found.push_back(node);
    for (const Ref<Node>& operand : node->inputs) stack.push_back(operand.get());
  }
  std::ranges::sort(found, {}, &Node::sequence);
  return found;
}

}  // namespace gradus
