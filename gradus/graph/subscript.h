/// Subscripts: the elements that x(all, slice(1, end), newaxis, ellipsis, -1, indices, mask) reads, as in NumPy.
///
/// `all`, `end`, `newaxis` and `ellipsis` are functions whose names stand for them, as std::endl is: a name `end` or
/// `all` of the program or of the standard library overloads them, where an object would be ambiguous. They are
/// recognised by their addresses, so the library alone defines them: an inline function has an address of its own in a
/// program with hidden symbols.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>
#include "gradus/graph/node.h"
#include "gradus/tensor/extent.h"

namespace gradus {

class Tensor;

namespace detail {
struct All {};
struct NewAxis {};
struct Ellipsis {};
struct End {};
template <class I>
concept Index = std::integral<I> && !std::same_as<I, bool>;
}  // namespace detail

/// As a subscript: every element of a dimension, NumPy's `:`.
detail::All all();
/// As a subscript: a new dimension of 1, NumPy's `newaxis` or `None`.
detail::NewAxis newaxis();
/// As a subscript: as many whole dimensions as the other subscripts leave, NumPy's `...`.
detail::Ellipsis ellipsis();
/// As the second number of a slice: up to the last element, or down to the first one if the step is negative.
detail::End end();

/// One bound of a slice: a number, which counts from the end of the dimension if it is negative; an extent of a tensor;
/// or {}, the place where the step begins or ends.
class SliceBound {
 public:
  SliceBound() = default;
  template <detail::Index I> SliceBound(I at) : at_(static_cast<std::int64_t>(at)) {}
  SliceBound(Extent at) : at_(at), symbolic_(at.is_symbolic()) {}
  SliceBound(detail::End (*end)());

  // For the rooms of the library.
  const std::optional<std::int64_t>& at() const { return at_; }
  bool is_end() const { return is_end_; }
  bool is_symbolic() const { return symbolic_; }

 private:
  std::optional<std::int64_t> at_;
  bool is_end_ = false, symbolic_ = false;
};

/// The elements of one dimension that slice(begin, end, step) names.
struct SliceRange {
  SliceBound begin = {}, end = {};  // [begin, end), clamped to the dimension
  std::int64_t step = 1;            // distance between elements; may be negative, not 0
};
/// Elements before `stop`, as Python's slice(stop).
inline SliceRange slice(SliceBound stop) { return {.end = stop}; }
/// Elements begin, begin + step ... before `stop`, as Python's slice(begin, stop, step). slice(1, end) has all but the
/// first, slice({}, {}, -1) all of them backwards.
inline SliceRange slice(SliceBound begin, SliceBound stop, std::int64_t step = 1) { return {begin, stop, step}; }

/// One subscript: an integer, which takes an element and drops the dimension; all, newaxis, ellipsis; a slice; a tensor
/// of integers, or of booleans.
class Subscript {
 public:
  /// None: behind the last one.
  Subscript() = default;
  template <detail::Index I> Subscript(I at) : kind_(Kind::element), range_{.begin = at} {}
  Subscript(Extent at) : kind_(Kind::element), range_{.begin = at} {}
  Subscript(detail::All (*name)());
  Subscript(detail::NewAxis (*name)());
  Subscript(detail::Ellipsis (*name)());
  Subscript(const SliceRange& range) : kind_(Kind::slice), range_(range) {}
  Subscript(const Tensor& places);
  /// A Variable: stands for its value.
  template <class V>
    requires(!std::same_as<V, Tensor> && !std::same_as<V, Subscript> && !std::is_arithmetic_v<V> &&
             std::convertible_to<const V&, Tensor>)
  Subscript(const V& places) : Subscript(static_cast<const Tensor&>(Tensor(places))) {}
  template <class T>
    requires(std::same_as<T, bool> || std::floating_point<T>)
  Subscript(T) = delete;  // an integer, or a tensor of integers or booleans

  // For the rooms of the library.
  enum class Kind { none, element, all, new_axis, ellipsis, slice, tensor };
  Kind kind() const { return kind_; }
  const SliceRange& range() const { return range_; }
  Tensor tensor() const;
  /// As it is written: "slice(1, end)".
  std::string to_text() const;

 private:
  Kind kind_ = Kind::none;
  SliceRange range_{};  // an element is at its begin
  detail::Ref<detail::Node> tensor_;
};

namespace detail::inline rooms {
/// Arguments without those that are none behind the last one.
std::vector<Subscript> given_subscripts(std::initializer_list<const Subscript*> subscripts);
}  // namespace detail::inline rooms

}  // namespace gradus
