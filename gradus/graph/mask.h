/// Masks: the places of sequences that count. A layer gives its result a mask, which belongs to the node of the result.
/// So it exists wherever the tensor goes, outside of the call, in traces, on other threads, as long as the node lives.
/// The result of a plain op has no mask; if it has the places of a masked operand, its mask is noted as lost.
///
/// Notes are kept beside nodes, so that nodes stay small, in a table that is read only once a tensor has had a mask. A
/// mask never depends on its tensor, only on the tensor's inputs; otherwise neither would be freed.
#pragma once
#include <atomic>
#include <string>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

namespace detail::inline rooms {

struct SequenceMask {
  /// The mask of `x`: bool, in its first dimensions; false: does not count. Empty: all count.
  static Tensor of(const Tensor& x);
  /// Sets the mask of `x`, which no other thread uses yet. Empty: all places count, by intent.
  static void set(const Tensor& x, const Tensor& places);
  /// True once a tensor of this process has had a mask.
  static bool is_used() { return used_.load(std::memory_order_relaxed); }
  /// True if `x` has no mask, and was made by plain ops of a tensor that has one, place by place.
  static bool is_lost(const Tensor& x);
  /// Notes that the mask of `x` is lost.
  static void lose(const Tensor& x);
  /// Notes the mask of y, made of x by a layer without a mask, as lost if that of x is, place by place.
  static void follow(const Tensor& y, const Tensor& x);
  /// The name of the op at which the mask of `x` was lost; empty if the op's node is gone.
  static std::string lost_by(const Tensor& x);

  // Masks across the border of a function: they travel as further tensors behind the others.

  /// Appends the notes on `tensors`, one for each tensor, unless there are none.
  static void append_all(std::vector<Tensor>& tensors);
  /// As append_all, but only the notes that exist. Returns the positions of their tensors.
  static std::vector<std::size_t> append_some(std::vector<Tensor>& tensors);
  /// Notes for `x` a value from append_all or append_some.
  static void give(const Tensor& x, const Tensor& noted);

  // For the rooms that make and free nodes. Only where is_used().

  /// `node` was made of `inputs`.
  static void made(const Ref<Node>& node, In inputs);
  /// `node` dies.
  static void forget(const Node& node);
  /// The mask of `node`; null: none.
  static Node* of(const Node& node);

 private:
  static std::atomic<bool> used_;
};

}  // namespace detail::inline rooms

}  // namespace gradus
