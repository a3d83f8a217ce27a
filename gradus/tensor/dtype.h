/// Element types, and the C++ types that hold them.
#pragma once
#include <concepts>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <type_traits>
#include "gradus/base/error.h"
#include "gradus/tensor/half.h"

namespace gradus {

enum class DType : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, u16, u32, u64, boolean };
inline constexpr DType f64 = DType::f64, f32 = DType::f32, f16 = DType::f16, bf16 = DType::bf16, i64 = DType::i64,
                       i32 = DType::i32, i16 = DType::i16, i8 = DType::i8, u8 = DType::u8, u16 = DType::u16,
                       u32 = DType::u32, u64 = DType::u64, boolean = DType::boolean;
inline constexpr DType all_dtypes[] = {f64, f32, f16, bf16, i64, i32, i16, i8, u8, u16, u32, u64, boolean};

constexpr bool is_floating(DType t) { return t <= bf16; }
constexpr bool is_integer(DType t) { return t >= i64 && t <= u64; }
/// Of integers: whether it has negative numbers.
constexpr bool is_signed(DType t) { return t <= i8; }
/// f16 and bf16: formulas of them compute in f32 and round their result, sums and products accumulate in f32.
constexpr bool is_narrow(DType t) { return t == f16 || t == bf16; }
/// In which a formula, sum or product of `t` is computed.
constexpr DType computed_in(DType t) { return is_narrow(t) ? f32 : t; }

/// Bytes of one element in memory.
constexpr std::int64_t size_of(DType t) {
  constexpr std::int64_t sizes[] = {8, 4, 2, 2, 8, 4, 2, 1, 1, 2, 4, 8, 1};
  return sizes[static_cast<int>(t)];
}

constexpr std::string_view name_of(DType t) {
  constexpr std::string_view names[] = {"f64", "f32", "f16", "bf16", "i64", "i32", "i16",
                                        "i8",  "u8",  "u16", "u32",  "u64", "bool"};
  return names[static_cast<int>(t)];
}
inline std::ostream& operator<<(std::ostream& out, DType t) { return out << name_of(t); }

template <class T, class... U>
concept OneOf = (std::same_as<T, U> || ...);
template <class T>
concept NarrowElement = OneOf<T, half, bfloat16>;
template <class T>
concept FloatingElement = OneOf<T, double, float, half, bfloat16>;
/// The C++ types of elements.
template <class T>
concept Element = FloatingElement<T> || OneOf<T, long, long long, std::int32_t, std::int16_t, std::int8_t, std::uint8_t,
                                              std::uint16_t, std::uint32_t, unsigned long, unsigned long long, bool>;
/// In which kernels compute with elements of type T.
template <Element T> using ComputedIn = std::conditional_t<NarrowElement<T>, float, T>;

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

/// The same for kernels that compute with elements, as nothing does with narrow floats: their operands are cast first.
template <class Visit> decltype(auto) with_computing_type(DType t, Visit&& visit) {
  if (is_narrow(t)) throw InternalError("internal fault: a kernel computes with elements of 16 bits");
  return with_type(t, [&]<class T>(T) { return visit(ComputedIn<T>{}); });
}

}  // namespace gradus
