/// A walk over pairs of nodes.
#include "gradus/graph/same_value.h"
#include <cstring>
#include <set>
#include <vector>

namespace gradus {
namespace {

/// A sum over shards of two lengths is the same one for both.
const Node* sum_itself(const Node* node) {
  while (node->op.joins_shards() && node->inputs.size() == 2) node = node->inputs[0].get();
  return node;
}

bool are_equal_leaves(const Node& a, const Node& b) {
  const Buffer *x = a.value.get(), *y = b.value.get();
  if (!x || !y || a.spec != b.spec || x->bytes() != y->bytes() || !x->data() || !y->data()) return false;
  return std::memcmp(x->data(), y->data(), static_cast<std::size_t>(x->bytes())) == 0;
}

}  // namespace

bool are_surely_equal(const Node& a, const Node& b) {
  using Pair = std::pair<const Node*, const Node*>;
  std::vector<Pair> waiting{{&a, &b}};
  std::set<Pair> seen;
  while (!waiting.empty()) {
    const Node *const x = sum_itself(waiting.back().first), *const y = sum_itself(waiting.back().second);
    waiting.pop_back();
    if (x == y || !seen.insert({x, y}).second) continue;
    if (x->is_leaf() || y->is_leaf()) {
      if (!x->is_leaf() || !y->is_leaf() || !are_equal_leaves(*x, *y)) return false;
      continue;
    }
    if (x->op != y->op || x->inputs.size() != y->inputs.size()) return false;
    for (int i = 0; i < x->inputs.size(); ++i) waiting.emplace_back(x->inputs[i].get(), y->inputs[i].get());
  }
  return true;
}

}  // namespace gradus
