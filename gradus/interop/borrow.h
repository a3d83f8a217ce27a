/// Tensors on memory of others, without a copy: spans, pointers with strides. dlpack.h takes and gives DLPack's
/// tensors, eigen.h Eigen's matrices.
///
///   const Tensor x = borrow(std::span<const float>(values), {rows, columns}, {.owner = keeper});
///
/// The memory is read in place and never written: steps that update a Variable or a tensor that is no longer needed in
/// place take new memory instead. It must not change while it is borrowed. The owner is released once, when the last
/// tensor, Variable, pending computation or program that holds the memory is gone, on whichever thread that is.
///
/// Rules, each with an InvalidArgument that names it; .copy_if_needed copies the elements instead, and releases the
/// owner at once:
///   - the address is a multiple of the size of an element (64 bytes, as for memory of the library, are not needed);
///   - kernels read whole vectors, up to 64 bytes behind the last element. These bytes have to be readable: they are if
///     they lie in the page of memory in which the last element ends, or if .padded says so;
///   - strides reach each element of a gapless piece of memory once, in any order of axes and in any direction, or are
///     0 for elements that repeat along an axis. Such a tensor is a lazy view: transpose, reverse, broadcast_to.
///     Strides with gaps, and windows that overlap, are copied or refused.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// Options of borrow.
struct BorrowOptions {
  std::shared_ptr<const void> owner = {};  // kept as long as the memory is needed; none: the caller keeps it
  std::vector<std::int64_t> strides = {};  // in elements, one for each axis; empty: row-major
  std::int64_t offset = 0;                 // place of element [0, 0, ...] in the span; above 0 with negative strides
  bool padded = false;                     // 64 bytes behind the last element are readable
  bool copy_if_needed = false;             // copies memory that cannot be read in place
  static constexpr auto ranges() { return std::array{Allowed::any("strides"), Allowed::not_negative("offset")}; }
};

namespace detail {

/// The memory that may be read.
struct Borrowable {
  const void* first;      // of the span, or of element [0, 0, ...]
  std::int64_t elements;  // of the span; -1: as many as strides reach
};
Tensor borrow(std::string_view what, const Borrowable& memory, const Spec& spec, const BorrowOptions& options);

}  // namespace detail

/// A tensor of this shape on these values. The dtype is that of T. InvalidArgument if the shape, with .strides and
/// .offset, has elements outside of the span, or without strides another number of elements, and for memory that cannot
/// be read in place (see above). A shape without elements borrows nothing.
template <class T>
  requires Element<std::remove_const_t<T>>
Tensor borrow(std::span<T> values, const Shape& shape, const BorrowOptions& options = {}) {
  return detail::borrow("borrow", {values.data(), static_cast<std::int64_t>(values.size())},
                        {dtype_of<std::remove_const_t<T>>(), shape}, options);
}
/// As borrow of a span, from the pointer to element [0, 0, ...] on. The caller answers for the memory that the strides
/// reach.
template <Element T> Tensor borrow(const T* first, const Shape& shape, const BorrowOptions& options = {}) {
  return detail::borrow("borrow", {first, -1}, {dtype_of<T>(), shape}, options);
}
/// A tensor that owns a vector: it is moved, not copied.
template <Element T> Tensor borrow(std::vector<T>&& values, const Shape& shape) {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements in memory: take from_values");
  const auto kept = std::make_shared<const std::vector<T>>(std::move(values));
  return borrow(std::span<const T>(*kept), shape, {.owner = kept, .copy_if_needed = true});
}

}  // namespace gradus
