/// The floats of 16 bits: IEEE 754 binary16, and bfloat16, which is the upper half of a float. They are storage:
/// formulas compute in float. Conversions to them round once, to nearest even, from any type. Subnormals are kept, NaN
/// stays NaN, too large numbers become infinite.
#pragma once
#include <bit>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace gradus {
namespace detail {

/// The bits of `value`, a float or double, rounded to a format with `exponent` and `mantissa` bits. It consists of
/// selections alone, so that loops of it become vector code. Additions of floats are exact or round to nearest even.
template <int exponent, int mantissa, class Real> constexpr std::uint16_t rounded_bits(Real value) {
  using Bits = std::conditional_t<sizeof(Real) == 8, std::uint64_t, std::uint32_t>;
  constexpr int width = static_cast<int>(sizeof(Real)) * 8, own = std::numeric_limits<Real>::digits - 1;
  constexpr int bias = (1 << (exponent - 1)) - 1, own_bias = (1 << (width - 2 - own)) - 1, cut = own - mantissa;
  constexpr Bits infinity = Bits{(2 << (width - 2 - own)) - 1} << own, ones = (Bits{1} << (cut - 1)) - 1;
  constexpr Bits target_infinity = (Bits{1} << (mantissa + exponent)) - (Bits{1} << mantissa);
  const Bits all = std::bit_cast<Bits>(value), size = all & (~Bits{0} >> 1);
  const Bits moved = size - (Bits{own_bias - bias} << own);
  Bits result = (moved + ones + (moved >> cut & 1)) >> cut;
  if constexpr (own_bias != bias) {
    // An addend whose last bit is worth as much as the last bit of the target's subnormals: the sum is rounded to
    // those.
    constexpr Bits aligner = Bits{own_bias + cut + 1 - bias} << own;
    const Real sum = std::bit_cast<Real>(size) + std::bit_cast<Real>(aligner);
    result = size < Bits{own_bias - bias + 1} << own ? std::bit_cast<Bits>(sum) - aligner : result;
    result = size >= Bits{own_bias + bias + 1} << own ? target_infinity : result;
  }
  const Bits quiet = target_infinity | Bits{1} << (mantissa - 1) | (size >> cut & ((Bits{1} << mantissa) - 1));
  result = size > infinity ? quiet : result;
  return static_cast<std::uint16_t>(result | (all >> (width - 1) << 15));
}

constexpr float float_of_half(std::uint16_t bits) {
  const std::uint32_t size = (bits & 0x7fffu) << 13, sign = (bits & 0x8000u) << 16;
  constexpr std::uint32_t least = 113u << 23;  // the bits of 2^-14, the least normal number
  const std::uint32_t normal = size + (112u << 23);
  const float subnormal = std::bit_cast<float>(size + least) - std::bit_cast<float>(least);
  std::uint32_t result = size < 1u << 23 ? std::bit_cast<std::uint32_t>(subnormal) : normal;
  result = size >= 31u << 23 ? size + (224u << 23) : result;
  result = size > 31u << 23 ? result | 1u << 22 : result;
  return std::bit_cast<float>(result | sign);
}

/// A double that rounds to any format of fewer than 40 bits as the integer does: bits that it cannot hold are joined in
/// one that is never a tie.
template <std::integral T> constexpr double rounding_double(T value) {
  if constexpr (sizeof(T) < 8) {
    return static_cast<double>(value);
  } else {
    constexpr T low = 0x7ff, exact = T{1} << 53;
    const T joined = static_cast<T>((value & ~low) | ((value & low) != 0 ? low + 1 : 0));
    bool is_exact = value <= exact;
    if constexpr (std::is_signed_v<T>) is_exact = is_exact && value >= -exact;
    return static_cast<double>(is_exact ? value : joined);
  }
}

}  // namespace detail

/// C++ numbers.
template <class T>
concept Arithmetic = std::is_arithmetic_v<T>;

/// The element type of f16.
struct half {
  std::uint16_t bits = 0;  // binary16 in memory

  constexpr half() = default;
  template <Arithmetic T> constexpr explicit half(T value) {
    // Integers that a float cannot hold are too large for this type.
    if constexpr (std::is_same_v<T, double>) bits = detail::rounded_bits<5, 10>(value);
    else bits = detail::rounded_bits<5, 10>(static_cast<float>(value));
  }
  /// The number as a T: exact as a float, then converted as C++ does it.
  template <Arithmetic T> constexpr explicit operator T() const { return static_cast<T>(detail::float_of_half(bits)); }
  /// The number with the other sign.
  constexpr half operator-() const { return from_bits(static_cast<std::uint16_t>(bits ^ 0x8000u)); }
  /// The number with these bits.
  static constexpr half from_bits(std::uint16_t bits) {
    half made;
    made.bits = bits;
    return made;
  }
  friend constexpr bool operator==(half a, half b) { return static_cast<float>(a) == static_cast<float>(b); }
  friend constexpr std::partial_ordering operator<=>(half a, half b) {
    return static_cast<float>(a) <=> static_cast<float>(b);
  }
};

/// The element type of bf16.
struct bfloat16 {
  std::uint16_t bits = 0;  // bfloat16 in memory

  constexpr bfloat16() = default;
  template <Arithmetic T> constexpr explicit bfloat16(T value) {
    if constexpr (std::integral<T> && sizeof(T) >= 4) bits = detail::rounded_bits<8, 7>(detail::rounding_double(value));
    else if constexpr (std::is_same_v<T, double>) bits = detail::rounded_bits<8, 7>(value);
    else bits = detail::rounded_bits<8, 7>(static_cast<float>(value));
  }
  /// The number as a T: exact as a float, then converted as C++ does it.
  template <Arithmetic T> constexpr explicit operator T() const {
    return static_cast<T>(std::bit_cast<float>(std::uint32_t{bits} << 16));
  }
  /// The number with the other sign.
  constexpr bfloat16 operator-() const { return from_bits(static_cast<std::uint16_t>(bits ^ 0x8000u)); }
  /// The number with these bits.
  static constexpr bfloat16 from_bits(std::uint16_t bits) {
    bfloat16 made;
    made.bits = bits;
    return made;
  }
  friend constexpr bool operator==(bfloat16 a, bfloat16 b) { return static_cast<float>(a) == static_cast<float>(b); }
  friend constexpr std::partial_ordering operator<=>(bfloat16 a, bfloat16 b) {
    return static_cast<float>(a) <=> static_cast<float>(b);
  }
};

}  // namespace gradus

/// The properties of element types that kernels ask for.
template <> struct std::numeric_limits<gradus::half> {
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, has_infinity = true;
  static constexpr int digits = 11;
  static constexpr gradus::half min() { return gradus::half::from_bits(0x0400); }
  static constexpr gradus::half max() { return gradus::half::from_bits(0x7bff); }
  static constexpr gradus::half lowest() { return gradus::half::from_bits(0xfbff); }
  static constexpr gradus::half epsilon() { return gradus::half::from_bits(0x1400); }
  static constexpr gradus::half infinity() { return gradus::half::from_bits(0x7c00); }
  static constexpr gradus::half quiet_NaN() { return gradus::half::from_bits(0x7e00); }
};
template <> struct std::numeric_limits<gradus::bfloat16> {
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, has_infinity = true;
  static constexpr int digits = 8;
  static constexpr gradus::bfloat16 min() { return gradus::bfloat16::from_bits(0x0080); }
  static constexpr gradus::bfloat16 max() { return gradus::bfloat16::from_bits(0x7f7f); }
  static constexpr gradus::bfloat16 lowest() { return gradus::bfloat16::from_bits(0xff7f); }
  static constexpr gradus::bfloat16 epsilon() { return gradus::bfloat16::from_bits(0x3c00); }
  static constexpr gradus::bfloat16 infinity() { return gradus::bfloat16::from_bits(0x7f80); }
  static constexpr gradus::bfloat16 quiet_NaN() { return gradus::bfloat16::from_bits(0x7fc0); }
};
