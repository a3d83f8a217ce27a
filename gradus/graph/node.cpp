/// Birth and death of nodes: free lists per thread, and no recursion however long a chain.
#include "gradus/graph/node.h"
#include "gradus/graph/context.h"
#include "gradus/graph/tensor.h"

namespace gradus {
namespace {

std::atomic<std::uint64_t> next_sequence{1};

/// Memory of dead nodes of this thread, for reuse.
struct NodePool {
  static constexpr std::size_t capacity = 1 << 14;
  std::vector<void*> free;
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
  node->sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  return node;
}

/// A node's death may be the death of its operands, and so on down a long chain: they queue instead of nesting.
void dispose(Node* node) {
  thread_local std::vector<Node*> doomed;
  thread_local bool running = false;
  doomed.push_back(node);
  if (running) return;
  running = true;
  while (!doomed.empty()) {
    Node* next = doomed.back();
    doomed.pop_back();
    if (next->queue.load(std::memory_order_acquire)) Evaluation::forget(*next);
    destroy(next);
  }
  running = false;
}

}  // namespace gradus
