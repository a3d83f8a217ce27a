/// The sum of two elements, as the numeric contract defines it.
#pragma once
#include <cstdint>
#include <type_traits>

namespace gradus::library {

/// Integers wrap around.
template <class T> [[gnu::always_inline]] inline T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else return static_cast<T>(a + b);
}

}  // namespace gradus::library
