/// Element types, and the C++ types that hold them.
#pragma once
#include <concepts>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <type_traits>
#include "gradus/base/error.h"

namespace gradus {

enum class DType : std::uint8_t { f64, f32, i64, i32, u8, boolean };
inline constexpr DType f64 = DType::f64, f32 = DType::f32, i64 = DType::i64, i32 = DType::i32, u8 = DType::u8,
                       boolean = DType::boolean;
inline constexpr DType all_dtypes[] = {f64, f32, i64, i32, u8, boolean};

/// Bytes of one element in memory.
constexpr std::int64_t size_of(DType t) { return t == f64 || t == i64 ? 8 : t == f32 || t == i32 ? 4 : 1; }
constexpr bool is_floating(DType t) { return t == f64 || t == f32; }
constexpr bool is_integer(DType t) { return t == i64 || t == i32 || t == u8; }

constexpr std::string_view name_of(DType t) {
  constexpr std::string_view names[] = {"f64", "f32", "i64", "i32", "u8", "bool"};
  return names[static_cast<int>(t)];
}
inline std::ostream& operator<<(std::ostream& out, DType t) { return out << name_of(t); }

template <class T, class... U>
concept OneOf = (std::same_as<T, U> || ...);
/// The C++ types of elements.
template <class T>
concept Element = OneOf<T, double, float, long, long long, std::int32_t, std::uint8_t, bool>;

template <Element T> constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, double>) return f64;
  else if constexpr (std::is_same_v<T, float>) return f32;
  else if constexpr (std::is_same_v<T, bool>) return boolean;
  else if constexpr (sizeof(T) == 8) return i64;
  else if constexpr (sizeof(T) == 4) return i32;
  else return u8;
}

/// Calls visit(T{}) with the C++ type of `t`.
template <class Visit> decltype(auto) with_type(DType t, Visit&& visit) {
  switch (t) {
    case f64: return visit(double{});
    case f32: return visit(float{});
    case i64: return visit(std::int64_t{});
    case i32: return visit(std::int32_t{});
    case u8: return visit(std::uint8_t{});
    case boolean: return visit(bool{});
  }
  throw InternalError("an element type that does not exist");
}

}  // namespace gradus
