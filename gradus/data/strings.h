/// Strings: text, in the host's memory. Elements of text data sets hold it. Ops, traced functions and devices take
/// numbers alone; a lookup (gradus/text) turns text into numbers.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// An array of strings, row-major. They are bytes, by convention UTF-8; readers that need it check it. A value: copying
/// copies the text.
///
///   const Strings one = "some words";              // a scalar
///   const Strings two{"some words", "and more"};   // shape [2]
class Strings {
 public:
  /// No string: shape [0].
  Strings() : shape_{0} {}
  /// One string, a scalar.
  Strings(std::string one) : shape_{}, values_{std::move(one)} {}
  Strings(const char* one) : Strings(std::string(one)) {}
  /// Shape [n].
  Strings(std::initializer_list<std::string_view> values);
  Strings(std::vector<std::string> values);
  /// InvalidArgument unless the shape has as many elements as there are values.
  Strings(const Shape& shape, std::vector<std::string> values);

  /// Its extents.
  const Shape& shape() const { return shape_; }
  /// The number of strings.
  std::int64_t size() const { return std::ssize(values_); }
  /// All strings, row-major.
  const std::vector<std::string>& values() const { return values_; }
  /// The only string; InvalidArgument if there is another number of them.
  const std::string& item() const;
  /// Along axis 0; OutOfRange past its ends. Negative indices count from the end.
  Strings operator[](std::int64_t index) const;
  /// The same strings in another shape; InvalidArgument unless it has as many elements.
  Strings reshaped(const Shape& shape) const { return {shape, values_}; }
  /// True if shapes and all strings are the same.
  bool operator==(const Strings&) const = default;
  /// Prints `["some words", "and more"]`, with rows in brackets of their own.
  friend std::ostream& operator<<(std::ostream& out, const Strings& strings);

  // Mistakes: compilers quote the line.
  template <std::same_as<Tensor> T>
  operator T() const = delete;  // strings live on the host: look them up by TextVectorization, StringLookup, Tokenizer

 private:
  Shape shape_;
  std::vector<std::string> values_;
};

namespace detail::inline rooms {

/// Strings as stages hand them on: u8 [bytes], the shape and the lengths before the text. On the processor.
Tensor packed(const Strings& strings);
/// Strings that packed() made. DataError for other bytes.
Strings unpacked(const Tensor& packed);
/// The spec of packed strings.
inline Spec packed_spec() { return {u8, {any_size}}; }
/// InvalidArgument if this thread traces a function: `what` reads or gives strings.
void require_no_trace(std::string_view what);

}  // namespace detail::inline rooms

}  // namespace gradus
