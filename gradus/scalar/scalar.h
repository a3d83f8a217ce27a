/// Scalar formulas. A formula is a template over its value type, so one text serves two readers:
///   scalar::Real   the oracle: float64 and the standard library's functions,
///   scalar::Value  records the formula as a short typed program, which each code generator translates and the
///                  interpreter runs, bit for bit alike.
/// The instruction set below is all that a new code generator has to know.
///
/// f16 and bf16 are types of inputs, constants and results alone: a formula on them is recorded in f32, and its result
/// converted once.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>
#include "gradus/tensor/dtype.h"

namespace gradus::scalar {

enum class Opcode : std::uint8_t {
  input,     // a: which one
  constant,  // bits
  extent,    // i64: the extent of the dimension `bits`
  add,       // integers wrap around; of booleans: none of the arithmetic
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
  select,               // a ? b : c
  convert,  // to a float: one rounding to nearest even; float to integer: towards zero, saturating, NaN gives 0;
            // integer to narrower: wraps; to boolean: != 0
  bitcast,  // between types of one width
};

struct Instruction {
  Opcode op = Opcode::input;
  DType type = f32;  // of the result
  int a = -1, b = -1, c = -1;
  std::uint64_t bits = 0;  // of a constant, as its type lies in memory; or the dimension of an extent
  bool operator==(const Instruction&) const = default;
};

/// Straight-line code in single-assignment form: instruction i gives value i.
struct Code {
  std::vector<Instruction> instructions;
  int result = -1;
  int add(const Instruction& instruction);
};

/// A number that has no type yet: takes that of what it meets. Exact for every i64, u64 and f64.
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
  constexpr double real() const { return real_; }
  constexpr bool is_integral() const { return integral_; }
  /// Whether it is an integer of 2^63 or more, which only u64 holds.
  constexpr bool is_huge() const { return huge_; }
  /// Whether `t` has this number; of floats: whether it stays finite. Fractions are numbers of no integer type.
  bool fits(DType t) const;
  /// The bits of this number as type `t`. A fraction is cut off: callers who care check first.
  std::uint64_t bits_as(DType t) const;
  /// By bits: NaN is the same as itself, and -0 is not 0.
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

/// A value within a Code that is being recorded, or a literal not yet placed in any.
class Value {
 public:
  Value(Literal literal) : literal_(literal) {}
  Value(double literal) : literal_(literal) {}
  Value(int literal) : literal_(literal) {}
  Value(std::int64_t literal) : literal_(literal) {}
  Value(Code* code, int id) : code_(code), id_(id) {}
  bool is_literal() const { return !code_; }
  Code* code() const { return code_; }
  int id() const { return id_; }
  const Literal& literal() const { return literal_; }
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

inline Value operator+(const Value& a, const Value& b) { return record(Opcode::add, a, b); }
inline Value operator-(const Value& a, const Value& b) { return record(Opcode::subtract, a, b); }
inline Value operator*(const Value& a, const Value& b) { return record(Opcode::multiply, a, b); }
inline Value operator/(const Value& a, const Value& b) { return record(Opcode::divide, a, b); }
inline Value operator-(const Value& a) { return record(Opcode::negate, a); }
inline Value operator<(const Value& a, const Value& b) { return record(Opcode::less, a, b); }
inline Value operator<=(const Value& a, const Value& b) { return record(Opcode::less_equal, a, b); }
inline Value operator>(const Value& a, const Value& b) { return record(Opcode::less, b, a); }
inline Value operator>=(const Value& a, const Value& b) { return record(Opcode::less_equal, b, a); }
inline Value operator==(const Value& a, const Value& b) { return record(Opcode::equal, a, b); }
inline Value operator&(const Value& a, const Value& b) { return record(Opcode::bit_and, a, b); }
inline Value operator|(const Value& a, const Value& b) { return record(Opcode::bit_or, a, b); }
inline Value operator^(const Value& a, const Value& b) { return record(Opcode::bit_xor, a, b); }
Value operator!(const Value& a);  // of a boolean
inline Value shift_left(const Value& a, int by) { return record(Opcode::shift_left, a, by); }
inline Value shift_right(const Value& a, int by) { return record(Opcode::shift_right, a, by); }
inline Value shift_right_logical(const Value& a, int by) { return record(Opcode::shift_right_logical, a, by); }
inline Value abs(const Value& a) { return record(Opcode::absolute, a); }
inline Value sqrt(const Value& a) { return record(Opcode::square_root, a); }
inline Value round_even(const Value& a) { return record(Opcode::round_even, a); }
inline Value floor(const Value& a) { return record(Opcode::floor, a); }
inline Value ceil(const Value& a) { return record(Opcode::ceil, a); }
inline Value truncate(const Value& a) { return record(Opcode::truncate, a); }
inline Value min(const Value& a, const Value& b) { return record(Opcode::minimum, a, b); }
inline Value max(const Value& a, const Value& b) { return record(Opcode::maximum, a, b); }
inline Value fma(const Value& a, const Value& b, const Value& c) { return record(Opcode::fma, a, b, c); }
inline Value select(const Value& which, const Value& a, const Value& b) { return record(Opcode::select, which, a, b); }
Value convert(const Value& a, DType to);
Value bitcast(const Value& a, DType to);
/// The extent of a dimension, symbolic or not, as i64.
Value extent(Code* code, std::int64_t dimension);

// ---------------------------------------------------------------- the oracle

/// A float64 that remembers which type it stands for: integers truncate, wrap and saturate as the instructions do;
/// floats are not rounded.
struct Real {
  double v = 0;
  DType type = f64;
  bool literal = false;  // takes the type of its partner
  Real() = default;
  Real(double value, DType t) : v(value), type(t) {}
  Real(double value) : v(value), literal(true) {}
  Real(int value) : v(value), literal(true) {}
  Real(std::int64_t value) : v(static_cast<double>(value)), literal(true) {}
  Real(Literal value) : v(value.real()), literal(true) {}
};

/// `v` as a number of type t: truncated and wrapped if an integer, 0 or 1 if a boolean.
Real wrapped(double v, DType t);
inline DType joint_type(const Real& a, const Real& b) { return a.literal ? b.type : a.type; }
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
inline std::int64_t integer_bits(double v) {
  return v < 0x1p63 ? static_cast<std::int64_t>(v) : static_cast<std::int64_t>(static_cast<std::uint64_t>(v));
}
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
