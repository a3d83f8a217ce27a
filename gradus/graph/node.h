/// Node: one application of an op, or a leaf. The graph of nodes is the record of the computation; a Tensor is a handle
/// on one. Walks over the graph keep their marks outside the nodes.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include "gradus/base/ref.h"
#include "gradus/graph/op.h"
#include "gradus/tensor/buffer.h"

namespace gradus {

namespace detail::inline rooms {

struct Node;
void dispose(Node* node);

/// The operands of a node: three in place, more on the heap.
class Inputs {
 public:
  Inputs() = default;
  explicit Inputs(In tensors);
  int size() const { return size_; }
  const Ref<Node>& operator[](int i) const { return begin()[i]; }
  const Ref<Node>* begin() const { return many_ ? many_.get() : few_.data(); }
  const Ref<Node>* end() const { return begin() + size_; }

 private:
  std::array<Ref<Node>, 3> few_;
  std::unique_ptr<Ref<Node>[]> many_;
  int size_ = 0;
};

/// A computed value, set once; other threads may look while it is being set.
class ValueCell {
 public:
  ValueCell() = default;
  ValueCell(const ValueCell&) = delete;
  ~ValueCell() { release(buffer_.load(std::memory_order_acquire)); }
  Buffer* get() const { return buffer_.load(std::memory_order_acquire); }
  explicit operator bool() const { return get(); }
  void set(Ref<Buffer> buffer) {
    if (buffer) buffer->refs.fetch_add(1, std::memory_order_relaxed);
    release(buffer_.exchange(buffer.get(), std::memory_order_acq_rel));
  }
  /// Sets it in place of `known`; false if it holds another one by now.
  bool replace(Buffer& known, const Ref<Buffer>& buffer) {
    buffer->refs.fetch_add(1, std::memory_order_relaxed);
    Buffer* expected = &known;
    const bool is_replaced = buffer_.compare_exchange_strong(expected, buffer.get(), std::memory_order_acq_rel);
    release(is_replaced ? &known : buffer.get());
    return is_replaced;
  }
  void reset() { release(buffer_.exchange(nullptr, std::memory_order_acq_rel)); }

 private:
  static void release(Buffer* buffer) {
    if (buffer && buffer->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) dispose(buffer);
  }
  std::atomic<Buffer*> buffer_{nullptr};
};

class Pending;

/// Larger than that of every node made before, smaller than that of every node made later.
std::uint64_t new_sequence();

/// Its memory comes from a free list of the thread.
struct Node final : RefCounted {
  Node() = default;
  /// Throws what `applied` has against `specs`, those of `operands`.
  Node(AnyOp applied, Specs specs, In operands) : op(std::move(applied)), spec(op.infer(specs)), inputs(operands) {}
  static void* operator new(std::size_t bytes);
  static void operator delete(void* memory);

  AnyOp op;  // null: a leaf, whose value was given or will be bound
  Spec spec;
  Inputs inputs;
  ValueCell value;                          // set once computed
  std::uint64_t sequence = new_sequence();  // grows with every node made in the process
  std::uint32_t trace = 0;                  // the innermost trace in which it was made; 0: concrete
  std::uint32_t scope = 0;                  // layer and profile scope in which it was recorded (graph/scope.h)
  std::atomic<Pending*> queue{nullptr};     // where it waits to be computed; null: computed, symbolic, or a leaf
  std::uint32_t position = 0;               // its place in that queue
  std::atomic<std::uint32_t> recorder = 0;  // the number of the thread that made it, or computes it after a failure
  bool varies = false;                      // in a trace: from shard to shard of a batch

  bool is_leaf() const { return !op; }
};

/// The node counts as made now: code that looks at the order of making sees the order of this run.
void renumber(Node& node);

}  // namespace detail::inline rooms

}  // namespace gradus
