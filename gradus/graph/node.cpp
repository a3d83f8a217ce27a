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
  }
};

// A plain pointer costs no check for construction at each use, and can be asked after the thread's destructors have
// run.
[[gnu::tls_model("initial-exec")]] constinit thread_local NodePool* pool = nullptr;
constinit thread_local bool thread_ended = false;

struct PoolOwner {
  NodePool owned;
  PoolOwner() { pool = &owned; }
  PoolOwner(const PoolOwner&) = delete;
  ~PoolOwner() {
    pool = nullptr;
    thread_ended = true;
  }
};

/// The thread's pool; null when its destructors are running.
[[gnu::noinline]] NodePool* make_pool() {
  if (!thread_ended) thread_local PoolOwner owner;
  return pool;
}
NodePool* this_pool() { return pool ? pool : make_pool(); }

void destroy_all(std::vector<Node*>& doomed) {
  while (!doomed.empty()) {
    Node* next = doomed.back();
    doomed.pop_back();
    if (next->queue.load(std::memory_order_acquire)) EvaluationHooks::forget(*next);
    delete next;
  }
}

}  // namespace

void* Node::operator new(std::size_t bytes) {
  NodePool* const own = this_pool();
  if (!own || own->free.empty()) return ::operator new(bytes);
  void* const memory = own->free.back();
  own->free.pop_back();
  return memory;
}
void Node::operator delete(void* memory) {
  NodePool* const own = this_pool();
  if (own && own->free.size() < NodePool::capacity) own->free.push_back(memory);
  else ::operator delete(memory);
}

Inputs::Inputs(In tensors) : size_(static_cast<int>(tensors.size())) {
  if (tensors.size() > few_.size()) many_ = std::make_unique<Ref<Node>[]>(tensors.size());
  Ref<Node>* places = many_ ? many_.get() : few_.data();
  for (std::size_t i = 0; i < tensors.size(); ++i) places[i] = tensors[i].node();
}

std::uint64_t new_sequence() { return next_sequence.fetch_add(1, std::memory_order_relaxed); }
void renumber(Node& node) { node.sequence = new_sequence(); }

/// A node's death may be the death of its operands, and so on down a long chain: they queue instead of nesting. Static
/// tensors die after the pool: then they nest.
void dispose(Node* node) {
  NodePool* const own = this_pool();
  if (!own) {
    std::vector<Node*> doomed{node};
    destroy_all(doomed);
    return;
  }
  own->doomed.push_back(node);
  if (own->destroying) return;
  own->destroying = true;
  destroy_all(own->doomed);
  own->destroying = false;
}

}  // namespace gradus
