/// Dtypes, and the C++ types that hold their elements.
#pragma once
#include <concepts>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <type_traits>
#include "gradus/base/error.h"
#include "gradus/tensor/half.h"

namespace gradus {

/// The type of an element.
enum class DType : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, u16, u32, u64, boolean };
/// The dtypes by their short names.
inline constexpr DType f64 = DType::f64, f32 = DType::f32, f16 = DType::f16, bf16 = DType::bf16, i64 = DType::i64,
                       i32 = DType::i32, i16 = DType::i16, i8 = DType::i8, u8 = DType::u8, u16 = DType::u16,
                       u32 = DType::u32, u64 = DType::u64, boolean = DType::boolean;
/// All dtypes.
inline constexpr DType all_dtypes[] = {f64, f32, f16, bf16, i64, i32, i16, i8, u8, u16, u32, u64, boolean};

/// True for f64, f32, f16 and bf16.
constexpr bool is_floating(DType t) { return t <= bf16; }
/// True for signed and unsigned integers, not for bool.
constexpr bool is_integer(DType t) { return t >= i64 && t <= u64; }
/// For integers: true if it has negative numbers.
constexpr bool is_signed(DType t) { return t <= i8; }
/// True for f16 and bf16. Formulas of them are computed in f32 and rounded; sums and products accumulate in f32.
constexpr bool is_narrow(DType t) { return t == f16 || t == bf16; }
/// The dtype in which a formula, sum or product of `t` is computed.
constexpr DType computed_in(DType t) { return is_narrow(t) ? f32 : t; }

/// Bytes of one element in memory.
constexpr std::int64_t size_of(DType t) {
  constexpr std::int64_t sizes[] = {8, 4, 2, 2, 8, 4, 2, 1, 1, 2, 4, 8, 1};
  return sizes[static_cast<int>(t)];
}

/// The name, such as "f32"; "bool" for boolean.
constexpr std::string_view name_of(DType t) {
  constexpr std::string_view names[] = {"f64", "f32", "f16", "bf16", "i64", "i32", "i16",
                                        "i8",  "u8",  "u16", "u32",  "u64", "bool"};
  return names[static_cast<int>(t)];
}
/// Prints the name.
inline std::ostream& operator<<(std::ostream& out, DType t) { return out << name_of(t); }

/// T is one of these types.
template <class T, class... U>
concept OneOf = (std::same_as<T, U> || ...);
/// C++ types of the narrow floats.
template <class T>
concept NarrowElement = OneOf<T, half, bfloat16>;
/// C++ types of floats.
template <class T>
concept FloatingElement = OneOf<T, double, float, half, bfloat16>;
/// C++ types of elements.
template <class T>
concept Element = FloatingElement<T> || OneOf<T, long, long long, std::int32_t, std::int16_t, std::int8_t, std::uint8_t,
                                              std::uint16_t, std::uint32_t, unsigned long, unsigned long long, bool>;
/// The C++ type in which kernels compute with elements of type T.
template <Element T> using ComputedIn = std::conditional_t<NarrowElement<T>, float, T>;

/// The dtype of a C++ type.
template <Element T> constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, double>) return f64;
  else if constexpr (std::is_same_v<T, float>) return f32;
  else if constexpr (std::is_same_v<T, half>) return f16;
  else if constexpr (std::is_same_v<T, bfloat16>) return bf16;
  else if constexpr (std::is_same_v<T, bool>) return boolean;
  else if constexpr (sizeof(T) == 8) return std::is_signed_v<T> ? i64 : u64;
  else if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? i32 : u32;
  else if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? i16 : u16;
  else return std::is_signed_v<T> ? i8 : u8;
}

/// Calls visit(T{}) with the C++ type of `t`.
template <class Visit> decltype(auto) with_type(DType t, Visit&& visit) {
  switch (t) {
    case f64: return visit(double{});
    case f32: return visit(float{});
    case f16: return visit(half{});
    case bf16: return visit(bfloat16{});
    case i64: return visit(std::int64_t{});
    case i32: return visit(std::int32_t{});
    case i16: return visit(std::int16_t{});
    case i8: return visit(std::int8_t{});
    case u8: return visit(std::uint8_t{});
    case u16: return visit(std::uint16_t{});
    case u32: return visit(std::uint32_t{});
    case u64: return visit(std::uint64_t{});
    case boolean: return visit(bool{});
  }
  throw InternalError("an element type that does not exist");
}

/// with_type for kernels that compute with elements. None computes with narrow floats: their operands are cast first.
template <class Visit> decltype(auto) with_computing_type(DType t, Visit&& visit) {
  if (is_narrow(t)) throw InternalError("internal fault: a kernel computes with elements of 16 bits");
  return with_type(t, [&]<class T>(T) { return visit(ComputedIn<T>{}); });
}

}  // namespace gradus
