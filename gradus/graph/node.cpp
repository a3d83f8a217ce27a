/// Birth and death of nodes: free lists per thread, and no recursion however long a chain.
#include "gradus/graph/node.h"
#include "gradus/graph/context.h"
#include "gradus/graph/tensor.h"

namespace gradus {
namespace {

std::atomic<std::uint64_t> next_sequence{1};

/// Memory of dead nodes of this thread, for reuse, and nodes that wait to be destroyed.
struct NodePool {
  static constexpr std::size_t capacity = 1 << 14;
  std::vector<void*> free;
  std::vector<Node*> doomed;
  bool destroying = false;
  ~NodePool() {
    for (void* memory : free) ::operator delete(memory);
    alive() = false;
  }
  static bool& alive() {
    thread_local bool value = true;
    return value;
  }
};
NodePool& pool() {
  thread_local NodePool only;
  return only;
}

void destroy(Node* node) {
  node->~Node();
  if (NodePool::alive() && pool().free.size() < NodePool::capacity) pool().free.push_back(node);
  else ::operator delete(node);
}

}  // namespace

Inputs::Inputs(In tensors) : size_(static_cast<int>(tensors.size())) {
  if (tensors.size() > few_.size()) many_ = std::make_unique<Ref<Node>[]>(tensors.size());
  Ref<Node>* places = many_ ? many_.get() : few_.data();
  for (std::size_t i = 0; i < tensors.size(); ++i) places[i] = tensors[i].node();
}

Node* new_node() {
  auto& free = pool().free;
  void* memory;
  if (free.empty()) {
    memory = ::operator new(sizeof(Node));
  } else {
    memory = free.back();
    free.pop_back();
  }
  Node* node = new (memory) Node;
  renumber(*node);
  return node;
}

std::uint64_t new_sequence() { return next_sequence.fetch_add(1, std::memory_order_relaxed); }
void renumber(Node& node) { node.sequence = new_sequence(); }

namespace {

void destroy_all(std::vector<Node*>& doomed) {
  while (!doomed.empty()) {
    Node* next = doomed.back();
    doomed.pop_back();
    if (next->queue.load(std::memory_order_acquire)) EvaluationHooks::forget(*next);
    destroy(next);
  }
}

}  // namespace

/// A node's death may be the death of its operands, and so on down a long chain: they queue instead of nesting. Static
/// tensors die after the pool: then they nest.
void dispose(Node* node) {
  if (!NodePool::alive()) {
    std::vector<Node*> doomed{node};
    destroy_all(doomed);
    return;
  }
  NodePool& nodes = pool();
  nodes.doomed.push_back(node);
  if (nodes.destroying) return;
  nodes.destroying = true;
  destroy_all(nodes.doomed);
  nodes.destroying = false;
}

}  // namespace gradus
