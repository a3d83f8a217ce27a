/// Shapes, and specs: the element type, shape and device of a tensor. They are small values, compared by content.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string_view>
#include "gradus/base/hash.h"
#include "gradus/tensor/device.h"
#include "gradus/tensor/dimension.h"
#include "gradus/tensor/dtype.h"

namespace gradus {

/// Extents of a dense row-major array. A shape never allocates.
class Shape {
 public:
  static constexpr int max_rank = 8;  // dimensions
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  /// InvalidArgument past eight dimensions.
  explicit Shape(std::span<const std::int64_t> dims);

  /// The number of dimensions.
  int rank() const { return rank_; }
  /// Number of elements (symbolic if a dimension is). InvalidArgument past 2^63 - 1.
  std::int64_t size() const;
  /// The extent along an axis. Negative axes count from the end; OutOfRange past the ends.
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(normalized(axis))]; }
  std::int64_t& operator[](int axis) { return dims_[static_cast<std::size_t>(normalized(axis))]; }
  /// True if all extents are the same.
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(rank_); ++i)
      if (dims_[i] != other.dims_[i]) return false;
    return true;
  }
  /// Prints it as TensorFlow does: "(32, 100)".
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape);

  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }
  /// The last extent; 1 for a scalar.
  std::int64_t back() const { return rank_ ? dims_[static_cast<std::size_t>(rank_ - 1)] : 1; }
  /// True if an extent is a symbol, which has a value in each call of a program.
  bool is_symbolic() const;

  /// Replaces the extent along an axis.
  void set(int axis, std::int64_t dim) { dims_[static_cast<std::size_t>(normalized(axis))] = dim; }
  /// Appends a dimension.
  void push_back(std::int64_t dim);
  /// Inserts a dimension before `position`, which is 0 to rank().
  void insert(int position, std::int64_t dim);
  /// Removes a dimension.
  void erase(int axis);
  /// The axis counted from the front; OutOfRange past the ends.
  int normalized(int axis) const {
    if (axis < -rank_ || axis >= rank_) [[unlikely]]
      fail_axis(axis);
    return axis < 0 ? axis + rank_ : axis;
  }
  /// The extents for given values of the symbols.
  Shape evaluated(std::span<const std::int64_t> symbols) const;

 private:
  [[noreturn]] void fail_axis(int axis) const;
  std::array<std::int64_t, max_rank> dims_{};
  int rank_ = 0;
};

/// The element type, shape and device of a tensor, which are known before its contents.
struct Spec {
  DType dtype = f32;                  // type of an element
  [[no_unique_address]] Shape shape;  // extents
  Placement device = {};              // a named device, or none
  /// True if all three are the same. A spec without a device equals those on any device, so this is not transitive.
  bool operator==(const Spec& other) const {
    return dtype == other.dtype && shape == other.shape &&
           (device == other.device || !device.is_named() || !other.device.is_named());
  }
};

/// The bytes of a dense tensor. InvalidArgument past 2^63 - 1. The spec must not be symbolic.
std::int64_t bytes_of(const Spec& spec);

/// A hash of the fields that operator== compares, without the device.
std::uint64_t hash_of(const Shape& shape);
inline std::uint64_t hash_of(const Spec& spec) {
  return detail::mix(hash_of(spec.shape), static_cast<std::uint64_t>(spec.dtype));
}

/// Prints "f32[64,784]", as graphs and messages do, or "f32[64,784]@cpu:1" if a device is named.
std::ostream& operator<<(std::ostream& out, const Spec& spec);
/// The shape as text: "[64,784]".
std::string brackets(const Shape& shape);
/// The shape of such a text.
Shape shape_from_brackets(std::string_view text);
/// The spec of a text such as "f32[64,784]".
Spec spec_from_text(std::string_view text);

/// The strides of a dense row-major array of this shape (symbolic where they have to be).
Shape dense_strides(const Shape& shape);

/// The shape that both operands broadcast to, aligned at the last dimension, as in NumPy. `op` opens the error.
Shape broadcast_shape(const Shape& a, const Shape& b, std::string_view op);

}  // namespace gradus
