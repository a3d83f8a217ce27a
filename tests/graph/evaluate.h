/// Runs recorded scalar code on plain numbers, one instruction at a time, for tests of formulas alone.
#pragma once
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>
#include "gradus/graph/scalar.h"

namespace gradus::scalar {

template <class T> T as(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T> std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T> T float_operation(Opcode op, T a, T b, T c) {
  switch (op) {
    case Opcode::add: return a + b;
    case Opcode::subtract: return a - b;
    case Opcode::multiply: return a * b;
    case Opcode::divide: return a / b;
    case Opcode::negate: return -a;
    case Opcode::absolute: return std::abs(a);
    case Opcode::square_root: return std::sqrt(a);
    case Opcode::round_even: return std::nearbyint(a);
    case Opcode::floor: return std::floor(a);
    case Opcode::ceil: return std::ceil(a);
    case Opcode::truncate: return std::trunc(a);
    case Opcode::fma: return std::fma(a, b, c);
    case Opcode::minimum: return a < b ? a : b;
    case Opcode::maximum: return a > b ? a : b;
    default: throw InternalError("not an operation of floats");
  }
}

template <class T> T integer_operation(Opcode op, T a, T b) {
  using U = std::make_unsigned_t<T>;
  const U x = static_cast<U>(a), y = static_cast<U>(b);
  switch (op) {
    case Opcode::add: return static_cast<T>(x + y);
    case Opcode::subtract: return static_cast<T>(x - y);
    case Opcode::multiply: return static_cast<T>(x * y);
    case Opcode::divide: return b == 0 ? T{0} : std::is_signed_v<T> && b == T(-1) ? T(U{0} - x) : static_cast<T>(a / b);
    case Opcode::negate: return static_cast<T>(U{0} - x);
    case Opcode::absolute: return a < 0 ? static_cast<T>(U{0} - x) : a;
    case Opcode::minimum: return a < b ? a : b;
    case Opcode::maximum: return a > b ? a : b;
    case Opcode::bit_and: return a & b;
    case Opcode::bit_or: return a | b;
    case Opcode::bit_xor: return a ^ b;
    case Opcode::shift_left: return static_cast<T>(x << y);
    case Opcode::shift_right: return a >> b;
    case Opcode::shift_right_logical: return static_cast<T>(x >> y);
    default: throw InternalError("not an operation of integers");
  }
}

inline std::uint64_t converted(std::uint64_t bits, DType from, DType to) {
  return with_type(from, [&]<class From>(From) {
    return with_type(to, [&]<class To>(To) {
      const From x = as<From>(bits);
      if constexpr (std::is_same_v<To, bool>) return bits_of<bool>(x != From{});
      else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
        return bits_of(static_cast<To>(convert(Real(static_cast<double>(x), from), to).v));
      else return bits_of(static_cast<To>(x));
    });
  });
}

/// The bits of the result, for inputs given as bits.
inline std::uint64_t evaluate(const Code& code, std::span<const std::uint64_t> inputs) {
  thread_local std::vector<std::uint64_t> v;
  v.resize(code.instructions.size());
  for (std::size_t k = 0; k < v.size(); ++k) {
    const Instruction& i = code.instructions[k];
    const auto operand = [&](int index) { return index < 0 ? 0 : v[static_cast<std::size_t>(index)]; };
    const std::uint64_t a = i.op == Opcode::input ? 0 : operand(i.a), b = operand(i.b), c = operand(i.c);
    const DType from =
        i.op == Opcode::input || i.a < 0 ? i.type : code.instructions[static_cast<std::size_t>(i.a)].type;
    switch (i.op) {
      case Opcode::input: v[k] = inputs[static_cast<std::size_t>(i.a)]; break;
      case Opcode::constant: v[k] = i.bits; break;
      case Opcode::bitcast: v[k] = a; break;
      case Opcode::select: v[k] = (a & 1) != 0 ? b : c; break;
      case Opcode::convert: v[k] = converted(a, from, i.type); break;
      case Opcode::less:
      case Opcode::less_equal:
      case Opcode::equal:
        v[k] = with_type(from, [&]<class T>(T) {
          const T x = as<T>(a), y = as<T>(b);
          return bits_of<bool>(i.op == Opcode::less ? x < y : i.op == Opcode::less_equal ? x <= y : x == y);
        });
        break;
      default:
        v[k] = with_type(i.type, [&]<class T>(T) {
          if constexpr (std::is_same_v<T, bool>)
            return static_cast<std::uint64_t>(
                integer_operation<std::uint8_t>(i.op, as<std::uint8_t>(a), as<std::uint8_t>(b)));
          else if constexpr (std::is_integral_v<T>) return bits_of(integer_operation<T>(i.op, as<T>(a), as<T>(b)));
          else return bits_of(float_operation<T>(i.op, as<T>(a), as<T>(b), as<T>(c)));
        });
    }
  }
  return v[static_cast<std::size_t>(code.result)];
}

/// A formula recorded for inputs of one type, callable on numbers of that type.
template <class T> class Recorded {
 public:
  template <class... X> explicit Recorded(Value (*formula)(X...)) {
    std::vector<Value> in;
    for (int i = 0; i < static_cast<int>(sizeof...(X)); ++i)
      in.emplace_back(&code_, code_.add({.op = Opcode::input, .type = dtype_of<T>(), .a = i}));
    if constexpr (sizeof...(X) == 1) code_.result = formula(in[0]).id();
    else code_.result = formula(in[0], in[1]).id();
  }
  T operator()(std::convertible_to<T> auto... x) const {
    const std::uint64_t bits[] = {bits_of(static_cast<T>(x))...};
    return as<T>(evaluate(code_, bits));
  }
  const Code& code() const { return code_; }

 private:
  Code code_;
};

}  // namespace gradus::scalar
