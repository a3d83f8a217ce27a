/// Numbers that options may be given, and how they are put into a field of any type: for tests that try all of them.
#pragma once
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace gradus {

constexpr double odd_numbers[] = {std::numeric_limits<double>::quiet_NaN(),
                                  std::numeric_limits<double>::infinity(),
                                  -std::numeric_limits<double>::infinity(),
                                  -1e300,
                                  -2,
                                  -1,
                                  -0.5,
                                  0,
                                  0.5,
                                  1,
                                  1.5,
                                  2,
                                  3,
                                  1e6,
                                  2147483647,
                                  1e300};

/// Whether the field is a number and can hold this one.
template <class Field> bool set_number(Field& field, double value) {
  if constexpr (std::same_as<Field, bool> || std::same_as<Field, char>) {
    return false;
  } else if constexpr (std::integral<Field>) {
    if (std::trunc(value) != value || !(std::abs(value) < 9e18)) return false;
    if (value < 0 ? !std::in_range<Field>(static_cast<std::int64_t>(value))
                  : !std::in_range<Field>(static_cast<std::uint64_t>(value)))
      return false;
    field = static_cast<Field>(value);
    return true;
  } else if constexpr (std::floating_point<Field>) {
    field = value;
    return true;
  } else if constexpr (requires {
                         { field.constant() } -> std::same_as<double>;
                       }) {  // a learning rate
    field = Field(value);
    return true;
  } else {
    return false;
  }
}
template <class T> bool set_number(std::optional<T>& field, double value) {
  if constexpr (std::is_constructible_v<T, double>) {
    field.emplace(T(0));
    return set_number(*field, value);
  }
  return false;
}
template <class T> bool set_number(std::vector<T>& field, double value) {
  return !field.empty() && set_number(field[0], value);
}
template <class T, std::size_t n> bool set_number(std::array<T, n>& field, double value) {
  return set_number(field[0], value);
}

}  // namespace gradus
