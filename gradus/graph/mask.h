/// Masks: which places of sequences count. A layer gives its result a mask, which belongs to the node of the result: so
/// it is there wherever the tensor goes, outside of the call, in traces, on other threads, as long as the node lives.
/// What a plain op makes has none, and is noted as made of a masked tensor if its places are those of the operand.
///
/// Notes are kept beside nodes, which stay as small as they are: a table that is looked into once any tensor has had a
/// mask. A mask is made of what its tensor was made of, never of the tensor itself: else neither would be freed.
#pragma once
#include <atomic>
#include <string>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

struct SequenceMask {
  /// The mask of `x`: bool, in its first dimensions; false: does not count. Empty: all count.
  static Tensor of(const Tensor& x);
  /// Sets the mask of `x`, which no other thread computes with yet. Empty: all places count, and that is meant.
  static void set(const Tensor& x, const Tensor& places);
  /// True once any tensor of this process has had a mask.
  static bool is_used() { return used_.load(std::memory_order_relaxed); }
  /// True if `x` has no mask, and was made by plain ops of a tensor that has one, place by place.
  static bool is_lost(const Tensor& x);
  /// Notes that of `x`.
  static void lose(const Tensor& x);
  /// y, which a layer without a mask made of x, has lost one if x has, place by place.
  static void follow(const Tensor& y, const Tensor& x);
  /// The name of the op at which the mask of `x` was lost; empty if what made x is gone.
  static std::string lost_by(const Tensor& x);

  // Masks across the border of a function: they travel as further tensors behind the others.

  /// Adds what is noted of `tensors`, one a tensor, unless nothing is.
  static void append_all(std::vector<Tensor>& tensors);
  /// As append_all, only of those of which something is noted: their places.
  static std::vector<std::size_t> append_some(std::vector<Tensor>& tensors);
  /// Notes of `x` what append_all or append_some has added.
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

}  // namespace gradus
