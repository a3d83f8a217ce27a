/// Recording of scalar formulas: literals find their types here.
#include "gradus/graph/scalar.h"
#include <bit>
#include <cstring>

namespace gradus::scalar {
namespace {

const Value& typed(const Value& a, const Value& b) { return a.is_literal() ? b : a; }

int place(Code* code, const Value& v, DType t) {
  if (!v.is_literal()) return v.id();
  return code->add({.op = Opcode::constant, .type = t, .bits = v.literal().bits_as(t)});
}

bool gives_boolean(Opcode op) { return op == Opcode::less || op == Opcode::less_equal || op == Opcode::equal; }

}  // namespace

int Code::add(const Instruction& instruction) {
  instructions.push_back(instruction);
  return static_cast<int>(instructions.size()) - 1;
}

std::uint64_t Literal::bits_as(DType t) const {
  return with_type(t, [&]<class T>(T) {
    T value;
    if constexpr (std::is_same_v<T, bool>) value = integral_ ? integer_ != 0 : real_ != 0;
    else if constexpr (std::is_floating_point_v<T>)
      value = integral_ ? static_cast<T>(integer_) : static_cast<T>(real_);
    else value = integral_ ? static_cast<T>(integer_) : static_cast<T>(convert(Real(real_, f64), t).v);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  });
}

Value record(Opcode op, const Value& a) {
  internal_check(!a.is_literal(), "a formula has to start from an input");
  return {a.code(), a.code()->add({.op = op, .type = a.type(), .a = a.id()})};
}

Value record(Opcode op, const Value& a, const Value& b) {
  const Value& known = typed(a, b);
  internal_check(!known.is_literal(), "a formula has to start from an input");
  Code* code = known.code();
  const DType t = known.type();
  const int ia = place(code, a, t), ib = place(code, b, t);
  return {code, code->add({.op = op, .type = gives_boolean(op) ? boolean : t, .a = ia, .b = ib})};
}

Value record(Opcode op, const Value& a, const Value& b, const Value& c) {
  const bool choice = op == Opcode::select;
  const Value& known = choice ? typed(b, c) : typed(a, typed(b, c));
  internal_check(!known.is_literal(), "a formula has to know the type of its result");
  Code* code = known.code();
  const DType t = known.type();
  const int ia = place(code, a, choice ? boolean : t), ib = place(code, b, t), ic = place(code, c, t);
  return {code, code->add({.op = op, .type = t, .a = ia, .b = ib, .c = ic})};
}

Value operator!(const Value& a) { return a ^ Value(1); }

Value convert(const Value& a, DType to) {
  internal_check(!a.is_literal(), "a literal takes its type from its partner");
  if (a.type() == to) return a;
  return {a.code(), a.code()->add({.op = Opcode::convert, .type = to, .a = a.id()})};
}

Value bitcast(const Value& a, DType to) {
  internal_check(!a.is_literal() && size_of(a.type()) == size_of(to), "bitcast keeps the width");
  return {a.code(), a.code()->add({.op = Opcode::bitcast, .type = to, .a = a.id()})};
}

Value extent(Code* code, std::int64_t dimension) {
  return {code, code->add({.op = Opcode::extent, .type = i64, .bits = std::bit_cast<std::uint64_t>(dimension)})};
}

Real wrapped(double v, DType t) {
  switch (t) {
    case f64:
    case f32: return {v, t};
    case boolean: return {v != 0 ? 1.0 : 0.0, t};
    case i64:
    case i32:
    case u8: break;
  }
  if (!std::isfinite(v)) return {0, t};
  const double range = std::ldexp(1, t == i64 ? 64 : t == i32 ? 32 : 8);
  double rest = std::fmod(std::trunc(v), range);
  const double low = t == u8 ? 0 : -range / 2;
  if (rest < low) rest += range;
  if (rest >= low + range) rest -= range;
  return {rest, t};
}

Real convert(Real a, DType to) {
  const bool saturates = is_floating(a.type) && is_integer(to);
  if (!saturates) return wrapped(a.v, to);
  if (std::isnan(a.v)) return {0, to};
  const double low = to == u8 ? 0 : -std::ldexp(1, to == i64 ? 63 : 31);
  const double high = to == u8 ? 255 : to == i64 ? std::ldexp(1, 63) : std::ldexp(1, 31) - 1;
  return {std::min(std::max(std::trunc(a.v), low), high), to};
}

}  // namespace gradus::scalar
