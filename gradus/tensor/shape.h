/// What a tensor is before its contents: element type and shape. Both are small values, compared by content.
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
  static constexpr int max_rank = 8;
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  /// InvalidArgument past eight dimensions.
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  /// Number of elements (symbolic if a dimension is). InvalidArgument past 2^63 - 1.
  std::int64_t size() const;
  /// Negative axes count from the end; OutOfRange otherwise.
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(normalized(axis))]; }
  std::int64_t& operator[](int axis) { return dims_[static_cast<std::size_t>(normalized(axis))]; }
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(rank_); ++i)
      if (dims_[i] != other.dims_[i]) return false;
    return true;
  }
  /// "(32, 100)", as TensorFlow prints it.
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape);

  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }
  /// The last dimension; 1 of a scalar.
  std::int64_t back() const { return rank_ ? dims_[static_cast<std::size_t>(rank_ - 1)] : 1; }
  bool is_symbolic() const;

  void set(int axis, std::int64_t dim) { dims_[static_cast<std::size_t>(normalized(axis))] = dim; }
  void push_back(std::int64_t dim);
  void insert(int position, std::int64_t dim);  // 0 <= position <= rank
  void erase(int axis);
  /// The axis in [0, rank); OutOfRange if there is none such.
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

/// What is known of a tensor before it exists.
struct Spec {
  DType dtype = f32;
  [[no_unique_address]] Shape shape;
  Placement device = {};
  /// A spec without a device equals those on any, so this is not transitive.
  bool operator==(const Spec& other) const {
    return dtype == other.dtype && shape == other.shape &&
           (device == other.device || !device.is_named() || !other.device.is_named());
  }
};

/// Bytes of a dense tensor. InvalidArgument past 2^63 - 1. The spec must not be symbolic.
std::int64_t bytes_of(const Spec& spec);

std::uint64_t hash_of(const Shape& shape);
inline std::uint64_t hash_of(const Spec& spec) {
  return mix(hash_of(spec.shape), static_cast<std::uint64_t>(spec.dtype));
}

/// "f32[64,784]", as the text form of graphs and messages write it; "f32[64,784]@cpu:1" where a device is named.
std::ostream& operator<<(std::ostream& out, const Spec& spec);
/// "[64,784]"
std::string brackets(const Shape& shape);
Shape shape_from_brackets(std::string_view text);
Spec spec_from_text(std::string_view text);

/// The strides of a dense row-major array of this shape (symbolic where they have to be).
Shape dense_strides(const Shape& shape);

/// The shape that both operands broadcast to, aligned at the last dimension, as in NumPy. `op` opens the error.
Shape broadcast_shape(const Shape& a, const Shape& b, std::string_view op);

}  // namespace gradus
