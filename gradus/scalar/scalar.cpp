/// Recording of scalar formulas: literals get their types here.
#include "gradus/scalar/scalar.h"
#include <bit>
#include <cstring>
#include <limits>
#include <utility>
#include "gradus/base/floating_point_state.h"

namespace gradus::scalar {
namespace {

const Value& typed(const Value& a, const Value& b) { return a.is_literal() ? b : a; }

int place(Code* code, const Value& v, DType t) {
  if (!v.is_literal()) return v.id();
  return code->add({.op = Opcode::constant, .type = t, .bits = v.literal().bits_as(t)});
}

bool gives_boolean(Opcode op) { return op == Opcode::less || op == Opcode::less_equal || op == Opcode::equal; }

/// The type of what a formula computes with.
DType checked(DType t) {
  internal_check(!is_narrow(t), "a formula computes with ", t, " itself, instead of in f32");
  return t;
}

}  // namespace

int Code::add(const Instruction& instruction) {
  instructions.push_back(instruction);
  return static_cast<int>(instructions.size()) - 1;
}

std::uint64_t Literal::bits_as(DType t) const {
  const HostFloats floats;
  return with_type(t, [&]<class T>(T) {
    T value;
    if constexpr (std::is_same_v<T, bool>) value = integral_ ? integer_ != 0 : real_ != 0;
    else if (huge_) value = static_cast<T>(static_cast<std::uint64_t>(integer_));
    else if constexpr (FloatingElement<T>) value = integral_ ? static_cast<T>(integer_) : static_cast<T>(real_);
    else if (integral_) value = static_cast<T>(integer_);
    else if (real_ >= std::ldexp(1, std::numeric_limits<T>::digits)) value = std::numeric_limits<T>::max();
    else value = static_cast<T>(convert(Real(real_, f64), t).v);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  });
}

bool Literal::fits(DType t) const {
  const HostFloats floats;
  return with_type(t, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, bool>) return real_ == 0 || real_ == 1;
    else if constexpr (FloatingElement<T>)
      return !std::isfinite(real_) || std::isfinite(static_cast<double>(static_cast<T>(real_)));
    else if (integral_)
      return huge_ ? std::in_range<T>(static_cast<std::uint64_t>(integer_)) : std::in_range<T>(integer_);
    else {  // the largest number of a wide type, as a double, is one more
      constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
      const bool below = sizeof(T) == 8 ? real_ < static_cast<double>(high) : real_ <= static_cast<double>(high);
      return std::trunc(real_) == real_ && real_ >= static_cast<double>(low) && below;
    }
  });
}

Value record(Opcode op, const Value& a) {
  internal_check(!a.is_literal(), "a formula has to start from an input");
  return {a.code(), a.code()->add({.op = op, .type = checked(a.type()), .a = a.id()})};
}

Value record(Opcode op, const Value& a, const Value& b) {
  const Value& known = typed(a, b);
  internal_check(!known.is_literal(), "a formula has to start from an input");
  Code* code = known.code();
  const DType t = checked(known.type());
  const int ia = place(code, a, t), ib = place(code, b, t);
  return {code, code->add({.op = op, .type = gives_boolean(op) ? boolean : t, .a = ia, .b = ib})};
}

Value record(Opcode op, const Value& a, const Value& b, const Value& c) {
  const bool choice = op == Opcode::select;
  const Value& known = choice ? typed(b, c) : typed(a, typed(b, c));
  internal_check(!known.is_literal(), "a formula has to know the type of its result");
  Code* code = known.code();
  const DType t = checked(known.type());
  const int ia = place(code, a, choice ? boolean : t), ib = place(code, b, t), ic = place(code, c, t);
  return {code, code->add({.op = op, .type = t, .a = ia, .b = ib, .c = ic})};
}

Value operator!(const Value& a) { return a ^ Value(1); }

Value convert(const Value& a, DType to) {
  internal_check(!a.is_literal(), "a literal takes its type from its partner");
  if (a.type() == to) return a;
  const Instruction& made = a.code()->instructions[static_cast<std::size_t>(a.id())];
  if (made.op == Opcode::convert && made.type == computed_in(to)) {  // from there and back
    const Value source(a.code(), made.a);
    if (source.type() == to) return source;
  }
  return {a.code(), a.code()->add({.op = Opcode::convert, .type = to, .a = a.id()})};
}

Value bitcast(const Value& a, DType to) {
  internal_check(!a.is_literal(), "a literal takes its type from its partner");
  const Instruction& made = a.code()->instructions[static_cast<std::size_t>(a.id())];
  if (made.op == Opcode::convert) {  // the bits of a narrow float are those before it was widened
    const Value source(a.code(), made.a);
    const bool widened = is_narrow(source.type()) && made.type == computed_in(source.type());
    if (widened && size_of(source.type()) == size_of(to)) return bitcast(source, to);
  }
  internal_check(size_of(a.type()) == size_of(to), "bitcast keeps the width");
  return {a.code(), a.code()->add({.op = Opcode::bitcast, .type = to, .a = a.id()})};
}

Value extent(Code* code, std::int64_t dimension) {
  return {code, code->add({.op = Opcode::extent, .type = i64, .bits = std::bit_cast<std::uint64_t>(dimension)})};
}

Real wrapped(double v, DType t) {
  if (is_floating(t)) return {v, t};
  if (t == boolean) return {v != 0 ? 1.0 : 0.0, t};
  if (!std::isfinite(v)) return {0, t};
  const double range = std::ldexp(1, static_cast<int>(8 * size_of(t)));
  double rest = std::fmod(std::trunc(v), range);
  const double low = is_signed(t) ? -range / 2 : 0;
  if (rest < low) rest += range;  // as near as a double comes: the largest u64 is 2^64
  else if (rest >= low + range) rest -= range;
  return {rest, t};
}

Real convert(Real a, DType to) {
  const bool saturates = is_floating(a.type) && is_integer(to);
  if (!saturates) return wrapped(a.v, to);
  if (std::isnan(a.v)) return {0, to};
  const int bits = static_cast<int>(8 * size_of(to)) - (is_signed(to) ? 1 : 0);
  const double low = is_signed(to) ? -std::ldexp(1, bits) : 0, high = std::ldexp(1, bits) - (bits > 53 ? 0 : 1);
  return {std::min(std::max(std::trunc(a.v), low), high), to};
}

}  // namespace gradus::scalar
