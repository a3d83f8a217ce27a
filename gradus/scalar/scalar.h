/// Scalar formulas. A formula is a template over its value type, so one text serves two readers:
///   scalar::Real   the oracle: float64 and the standard library's functions,
///   scalar::Value  records the formula as a short typed program, which each code generator translates and the
///                  interpreter runs, bit for bit alike.
/// A new code generator has to know only the instruction set below.
///
/// f16 and bf16 are types of inputs, constants and results alone. A formula on them is recorded in f32, and its result
/// is converted once.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>
#include "gradus/tensor/dtype.h"

namespace gradus::scalar {

/// The scalar instruction set.
enum class Opcode : std::uint8_t {
  input,     // a: its number
  constant,  // bits
  extent,    // i64: the extent of the dimension `bits`
  add,       // integers wrap around; arithmetic does not take booleans
  subtract,
  multiply,
  divide,  // floats: IEEE. Integers: towards zero, x / 0 = 0, MIN / -1 = MIN; never traps
  negate,
  absolute,  // integers: wraps at MIN
  square_root,
  round_even,  // the next five: floats only
  floor,
  ceil,
  truncate,
  fma,      // one rounding: the only instruction that fuses
  minimum,  // a < b ? a : b
  maximum,  // a > b ? a : b
  less,     // result: boolean, false if an operand is NaN
  less_equal,
  equal,
  bit_and,  // integers and booleans
  bit_or,
  bit_xor,
  shift_left,           // by b, 0 <= b < width
  shift_right,          // arithmetic of signed types
  shift_right_logical,  // zeros enter from the left
  select,               // a ? b : c. bits 1: a is rarely true (rare_parts.h)
  convert,  // to a float: one rounding to nearest even; float to integer: towards zero, saturating, NaN gives 0;
            // integer to narrower: wraps; to boolean: != 0
  bitcast,  // between types of one width
};

/// One instruction of a formula.
struct Instruction {
  Opcode op = Opcode::input;   // the operation
  DType type = f32;            // of the result
  int a = -1, b = -1, c = -1;  // operands: numbers of earlier instructions; -1: none
  std::uint64_t bits = 0;      // of a constant, as its type lies in memory; dimension of an extent; 1: rare select
  bool operator==(const Instruction&) const = default;
};

/// Straight-line code in single-assignment form: instruction i gives value i.
struct Code {
  std::vector<Instruction> instructions;    // in order
  int result = -1;                          // number of the instruction that gives the result
  int add(const Instruction& instruction);  // appends an instruction; returns its number
};

/// A number without a type: it takes the type of its partner. Exact for every i64, u64 and f64.
class Literal {
 public:
  constexpr Literal() = default;
  constexpr Literal(double value) : real_(value), integer_(0), integral_(false) {}
  constexpr Literal(float value) : Literal(static_cast<double>(value)) {}
  template <NarrowElement T> constexpr Literal(T value) : Literal(static_cast<double>(value)) {}
  template <std::integral T>
  constexpr Literal(T value)
      : real_(static_cast<double>(value)),
        integer_(static_cast<std::int64_t>(value)),
        integral_(true),
        huge_(value > 0 && integer_ < 0) {}
  /// The number as f64.
  constexpr double real() const { return real_; }
  /// True if it was made from an integer.
  constexpr bool is_integral() const { return integral_; }
  /// True for an integer of 2^63 or more, which only u64 holds.
  constexpr bool is_huge() const { return huge_; }
  /// True if `t` has this number; for floats, if it stays finite. No integer type has fractions.
  bool fits(DType t) const;
  /// The bits of this number as type `t`. A fraction is truncated: callers that care check first.
  std::uint64_t bits_as(DType t) const;
  /// Compares bits: NaN equals itself, and -0 differs from 0.
  constexpr bool operator==(const Literal& other) const {
    return std::bit_cast<std::uint64_t>(real_) == std::bit_cast<std::uint64_t>(other.real_) &&
           integer_ == other.integer_ && integral_ == other.integral_ && huge_ == other.huge_;
  }

 private:
  double real_ = 0;
  std::int64_t integer_ = 0;  // of a huge one its bits
  bool integral_ = true, huge_ = false;
};

// ---------------------------------------------------------------- recording

/// A value within a Code under construction, or a literal that is not in any Code yet.
class Value {
 public:
  Value(Literal literal) : literal_(literal) {}
  Value(double literal) : literal_(literal) {}
  Value(int literal) : literal_(literal) {}
  Value(std::int64_t literal) : literal_(literal) {}
  Value(Code* code, int id) : code_(code), id_(id) {}
  /// True if it is in no Code.
  bool is_literal() const { return !code_; }
  /// The Code that it is in; null for a literal.
  Code* code() const { return code_; }
  /// Its number in the Code.
  int id() const { return id_; }
  /// The literal.
  const Literal& literal() const { return literal_; }
  /// The type; not for a literal.
  DType type() const { return code_->instructions[static_cast<std::size_t>(id_)].type; }

 private:
  Code* code_ = nullptr;
  int id_ = -1;
  Literal literal_;
};

/// Records an instruction; literals take the type of their partner. Defined in scalar.cpp.
Value record(Opcode op, const Value& a);
Value record(Opcode op, const Value& a, const Value& b);
Value record(Opcode op, const Value& a, const Value& b, const Value& c);

/// a + b.
inline Value operator+(const Value& a, const Value& b) { return record(Opcode::add, a, b); }
/// a - b.
inline Value operator-(const Value& a, const Value& b) { return record(Opcode::subtract, a, b); }
/// a * b.
inline Value operator*(const Value& a, const Value& b) { return record(Opcode::multiply, a, b); }
/// a / b; see Opcode::divide.
inline Value operator/(const Value& a, const Value& b) { return record(Opcode::divide, a, b); }
/// -a.
inline Value operator-(const Value& a) { return record(Opcode::negate, a); }
/// a < b: a boolean.
inline Value operator<(const Value& a, const Value& b) { return record(Opcode::less, a, b); }
/// a <= b: a boolean.
inline Value operator<=(const Value& a, const Value& b) { return record(Opcode::less_equal, a, b); }
/// a > b: a boolean.
inline Value operator>(const Value& a, const Value& b) { return record(Opcode::less, b, a); }
/// a >= b: a boolean.
inline Value operator>=(const Value& a, const Value& b) { return record(Opcode::less_equal, b, a); }
/// a == b: a boolean.
inline Value operator==(const Value& a, const Value& b) { return record(Opcode::equal, a, b); }
/// Bitwise or logical and.
inline Value operator&(const Value& a, const Value& b) { return record(Opcode::bit_and, a, b); }
/// Bitwise or logical or.
inline Value operator|(const Value& a, const Value& b) { return record(Opcode::bit_or, a, b); }
/// Bitwise or logical xor.
inline Value operator^(const Value& a, const Value& b) { return record(Opcode::bit_xor, a, b); }
Value operator!(const Value& a);  // of a boolean
/// a << by; 0 <= by < width.
inline Value shift_left(const Value& a, int by) { return record(Opcode::shift_left, a, by); }
/// a >> by, arithmetic for signed types.
inline Value shift_right(const Value& a, int by) { return record(Opcode::shift_right, a, by); }
/// a >> by, with zeros from the left.
inline Value shift_right_logical(const Value& a, int by) { return record(Opcode::shift_right_logical, a, by); }
/// |a|.
inline Value abs(const Value& a) { return record(Opcode::absolute, a); }
/// The square root.
inline Value sqrt(const Value& a) { return record(Opcode::square_root, a); }
/// a rounded to the nearest integer, half to even; floats.
inline Value round_even(const Value& a) { return record(Opcode::round_even, a); }
/// a rounded down; floats.
inline Value floor(const Value& a) { return record(Opcode::floor, a); }
/// a rounded up; floats.
inline Value ceil(const Value& a) { return record(Opcode::ceil, a); }
/// a rounded towards zero; floats.
inline Value truncate(const Value& a) { return record(Opcode::truncate, a); }
/// a < b ? a : b.
inline Value min(const Value& a, const Value& b) { return record(Opcode::minimum, a, b); }
/// a > b ? a : b.
inline Value max(const Value& a, const Value& b) { return record(Opcode::maximum, a, b); }
/// a * b + c, rounded once.
inline Value fma(const Value& a, const Value& b, const Value& c) { return record(Opcode::fma, a, b, c); }
/// which ? a : b.
inline Value select(const Value& which, const Value& a, const Value& b) { return record(Opcode::select, which, a, b); }
/// a as another type; see Opcode::convert.
Value convert(const Value& a, DType to);
/// The bits of a as another type of the same width.
Value bitcast(const Value& a, DType to);
/// The extent of a dimension, symbolic or not, as i64.
Value extent(Code* code, std::int64_t dimension);

// ---------------------------------------------------------------- the oracle

/// A float64 that stands for a value of another type. Integers truncate, wrap and saturate as the instructions do;
/// floats are not rounded.
struct Real {
  double v = 0;          // the number
  DType type = f64;      // the type that it stands for
  bool literal = false;  // takes the type of its partner
  Real() = default;
  Real(double value, DType t) : v(value), type(t) {}
  Real(double value) : v(value), literal(true) {}
  Real(int value) : v(value), literal(true) {}
  Real(std::int64_t value) : v(static_cast<double>(value)), literal(true) {}
  Real(Literal value) : v(value.real()), literal(true) {}
};

/// `v` as a number of type t: truncated and wrapped for an integer, 0 or 1 for a boolean.
Real wrapped(double v, DType t);
/// The type of two operands, of which one may be a literal.
inline DType joint_type(const Real& a, const Real& b) { return a.literal ? b.type : a.type; }
/// A boolean.
inline Real truth(bool v) { return {v ? 1.0 : 0.0, boolean}; }

inline Real operator+(Real a, Real b) { return wrapped(a.v + b.v, joint_type(a, b)); }
inline Real operator-(Real a, Real b) { return wrapped(a.v - b.v, joint_type(a, b)); }
inline Real operator*(Real a, Real b) { return wrapped(a.v * b.v, joint_type(a, b)); }
inline Real operator/(Real a, Real b) {
  const DType t = joint_type(a, b);
  if (is_floating(t)) return {a.v / b.v, t};
  return wrapped(b.v == 0 ? 0 : std::trunc(a.v / b.v), t);
}
inline Real operator-(Real a) { return wrapped(-a.v, a.type); }
inline Real operator<(Real a, Real b) { return truth(a.v < b.v); }
inline Real operator<=(Real a, Real b) { return truth(a.v <= b.v); }
inline Real operator>(Real a, Real b) { return truth(a.v > b.v); }
inline Real operator>=(Real a, Real b) { return truth(a.v >= b.v); }
inline Real operator==(Real a, Real b) { return truth(a.v == b.v); }
inline Real operator!(Real a) { return truth(a.v == 0); }
/// The bits of an integer of 64 bits, signed or not.
inline std::int64_t integer_bits(double v) {
  return v < 0x1p63 ? static_cast<std::int64_t>(v) : static_cast<std::int64_t>(static_cast<std::uint64_t>(v));
}
/// f of the bits of two integers.
inline Real bitwise(Real a, Real b, auto f) {
  return wrapped(static_cast<double>(f(integer_bits(a.v), integer_bits(b.v))), joint_type(a, b));
}
inline Real operator&(Real a, Real b) {
  return bitwise(a, b, [](auto x, auto y) { return x & y; });
}
inline Real operator|(Real a, Real b) {
  return bitwise(a, b, [](auto x, auto y) { return x | y; });
}
inline Real operator^(Real a, Real b) {
  return bitwise(a, b, [](auto x, auto y) { return x ^ y; });
}
inline Real abs(Real a) { return wrapped(std::abs(a.v), a.type); }
inline Real sqrt(Real a) { return {std::sqrt(a.v), a.type}; }
inline Real round_even(Real a) { return {std::nearbyint(a.v), a.type}; }
inline Real floor(Real a) { return {std::floor(a.v), a.type}; }
inline Real ceil(Real a) { return {std::ceil(a.v), a.type}; }
inline Real truncate(Real a) { return {std::trunc(a.v), a.type}; }
inline Real min(Real a, Real b) { return {a.v < b.v ? a.v : b.v, joint_type(a, b)}; }
inline Real max(Real a, Real b) { return {a.v > b.v ? a.v : b.v, joint_type(a, b)}; }
inline Real fma(Real a, Real b, Real c) { return {std::fma(a.v, b.v, c.v), a.literal ? joint_type(b, c) : a.type}; }
inline Real select(Real which, Real a, Real b) { return {which.v != 0 ? a.v : b.v, joint_type(a, b)}; }
Real convert(Real a, DType to);

}  // namespace gradus::scalar
