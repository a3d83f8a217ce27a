/// Birth and death of nodes: free lists per thread, and no recursion however long a chain.
#include "gradus/graph/node.h"
#include "gradus/base/of_thread.h"
#include "gradus/graph/context.h"
#include "gradus/graph/mask.h"
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
  }
};

void destroy_all(std::vector<Node*>& doomed) {
  while (!doomed.empty()) {
    Node* next = doomed.back();
    doomed.pop_back();
    if (next->queue.load(std::memory_order_acquire)) LazyEvaluation::forget(*next);
    if (SequenceMask::is_used()) [[unlikely]]
      SequenceMask::forget(*next);
    delete next;
  }
}

}  // namespace

void* Node::operator new(std::size_t bytes) {
  std::vector<void*>& free = OfThread<NodePool>::get().free;
  if (free.empty()) return ::operator new(bytes);
  void* const memory = free.back();
  free.pop_back();
  return memory;
}
void Node::operator delete(void* memory) {
  std::vector<void*>& free = OfThread<NodePool>::get().free;
  if (free.size() < NodePool::capacity) free.push_back(memory);
  else ::operator delete(memory);
}

Inputs::Inputs(In tensors) : size_(static_cast<int>(tensors.size())) {
  if (tensors.size() > few_.size()) many_ = std::make_unique<Ref<Node>[]>(tensors.size());
  Ref<Node>* places = many_ ? many_.get() : few_.data();
  for (std::size_t i = 0; i < tensors.size(); ++i) places[i] = tensors[i].node();
}

std::uint64_t detail::new_sequence() { return next_sequence.fetch_add(1, std::memory_order_relaxed); }
void detail::renumber(Node& node) { node.sequence = new_sequence(); }

/// A node's death may be the death of its operands, and so on down a long chain: they queue instead of nesting.
void detail::dispose(Node* node) {
  NodePool& own = OfThread<NodePool>::get();
  own.doomed.push_back(node);
  if (own.destroying) return;
  own.destroying = true;
  destroy_all(own.doomed);
  own.destroying = false;
}

}  // namespace gradus
