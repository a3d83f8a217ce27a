/// Tensors as text, in NumPy's layout: rows in brackets, columns aligned to the right. Past 1000 elements only the ends
/// of every dimension are shown. A scalar is a plain number.
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include "gradus/base/floating_point_state.h"
#include "gradus/graph/tensor.h"

namespace gradus {
namespace {

constexpr std::int64_t elide_past = 1000, ends = 3;

/// The shortest text that reads back as the same number; of doubles within arrays eight digits.
template <NarrowElement T> std::string number(T value) {
  const HostFloats floats;  // from_chars rounds as the caller does
  const auto exact = static_cast<float>(value);
  if (std::isnan(exact)) return "nan";
  char digits[48];
  for (int precision = 1;; ++precision) {
    const auto end = std::to_chars(digits, digits + sizeof digits, exact, std::chars_format::general, precision);
    double read = 0;
    std::from_chars(digits, end.ptr, read);
    if (T(read) != value && precision < 9) continue;
    return {digits, std::to_chars(digits, digits + sizeof digits, read).ptr};
  }
}
template <class T> std::string number(T value, bool within_array) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else if constexpr (NarrowElement<T>) {
    return number(value);
  } else {
    if (std::isnan(value)) return "nan";  // of either sign
    char digits[48];
    const bool shorten = std::is_same_v<T, double> && within_array;
    const auto end = shorten ? std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 8)
                             : std::to_chars(digits, digits + sizeof digits, value);
    return {digits, end.ptr};
  }
}

class Layout {
 public:
  explicit Layout(const Tensor& x) : spec_(x.spec()), data_(x.host()), elided_(spec_.shape.size() > elide_past) {}

  std::string text() {
    if (spec_.shape.rank() == 0) return element(0, false);
    walk(0, 0, [&](std::int64_t i) { width_ = std::max(width_, element(i, true).size()); });
    return rows(0, 0);
  }

 private:
  std::string element(std::int64_t i, bool within_array) const {
    return with_type(spec_.dtype, [&]<class T>(T) { return number(static_cast<const T*>(data_)[i], within_array); });
  }
  bool shown(std::int64_t i, std::int64_t n) const { return !elided_ || n <= 2 * ends || i < ends || i >= n - ends; }

  /// Visits the elements that are shown.
  template <class Visit> void walk(int axis, std::int64_t offset, const Visit& visit) const {
    if (axis == spec_.shape.rank()) return visit(offset);
    const std::int64_t n = spec_.shape[axis];
    for (std::int64_t i = 0; i < n; ++i)
      if (shown(i, n)) walk(axis + 1, offset * n + i, visit);
  }

  std::string rows(int axis, std::int64_t offset) const {
    const int rank = spec_.shape.rank();
    if (axis == rank) {
      const std::string plain = element(offset, true);
      return std::string(width_ - plain.size(), ' ') + plain;
    }
    const std::int64_t n = spec_.shape[axis];
    // Between matrices stands an empty line.
    const std::string separator = axis == rank - 1 ? " "
                                                   : std::string(static_cast<std::size_t>(rank - 1 - axis), '\n') +
                                                         std::string(static_cast<std::size_t>(axis + 1), ' ');
    std::string out = "[";
    for (std::int64_t i = 0; i < n; ++i) {
      if (i && (shown(i, n) || shown(i - 1, n))) out += separator;
      if (shown(i, n)) out += rows(axis + 1, offset * n + i);
      else if (shown(i - 1, n)) out += "...";
    }
    return out + "]";
  }

  Spec spec_;
  const void* data_;
  bool elided_;
  std::size_t width_ = 0;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& x) {
  const HostFloats floats;
  return out << Layout(x).text();
}

}  // namespace gradus
