/// Bitwise logic and shifts of integers.
#include "gradus/ops/bits.h"
#include <bit>
#include "gradus/ops/elementwise_parts.h"

namespace gradus {
namespace {

using scalar::Opcode;
using scalar::Real;

int width_of(DType t) { return static_cast<int>(8 * size_of(t)); }
/// True if x cannot be shifted by `by`.
auto is_out_of_width(auto by, int width) { return (by < 0) | (by >= width); }

scalar::Value shifted_left(const scalar::Value& x, const scalar::Value& by) {
  const scalar::Value out = is_out_of_width(by, width_of(x.type()));
  return select(out, 0, record(Opcode::shift_left, x, select(out, 0, by)));
}
Real shifted_left(Real x, Real by) {
  if (by.v < 0 || by.v >= width_of(x.type)) return {0, x.type};
  return scalar::wrapped(x.v * std::ldexp(1, static_cast<int>(by.v)), x.type);
}

scalar::Value shifted_right(const scalar::Value& x, const scalar::Value& by) {
  const int width = width_of(x.type());
  const scalar::Value out = is_out_of_width(by, width);
  if (is_signed(x.type())) return record(Opcode::shift_right, x, select(out, width - 1, by));
  return select(out, 0, record(Opcode::shift_right_logical, x, select(out, 0, by)));
}
Real shifted_right(Real x, Real by) {
  if (by.v < 0 || by.v >= width_of(x.type)) return {x.v < 0 ? -1.0 : 0.0, x.type};
  return {std::floor(std::ldexp(x.v, -static_cast<int>(by.v))), x.type};
}

/// Sums of neighbouring bits, pairs, groups of four, bytes.
scalar::Value bits_set(const scalar::Value& x) {
  scalar::Value v = convert(x, i64);
  const int width = width_of(x.type());
  if (width < 64) v = v & ((std::int64_t{1} << width) - 1);
  v = v - (shift_right_logical(v, 1) & std::int64_t{0x5555555555555555});
  v = (v & std::int64_t{0x3333333333333333}) + (shift_right_logical(v, 2) & std::int64_t{0x3333333333333333});
  v = (v + shift_right_logical(v, 4)) & std::int64_t{0x0f0f0f0f0f0f0f0f};
  return convert(shift_right_logical(v * std::int64_t{0x0101010101010101}, 56), u8);
}
Real bits_set(Real x) {
  std::uint64_t bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(x.v));
  const int width = width_of(x.type);
  if (width < 64) bits &= (std::uint64_t{1} << width) - 1;
  return {static_cast<double>(std::popcount(bits)), u8};
}

struct BitwiseAnd {
  static constexpr auto name = "bitwise_and";
  static constexpr auto takes = Takes::integers;
  auto emit(auto a, auto b) const { return a & b; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }
};

struct BitwiseOr {
  static constexpr auto name = "bitwise_or";
  static constexpr auto takes = Takes::integers;
  auto emit(auto a, auto b) const { return a | b; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }
};

struct BitwiseXor {
  static constexpr auto name = "bitwise_xor";
  static constexpr auto takes = Takes::integers;
  auto emit(auto a, auto b) const { return a ^ b; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }
};

struct Invert {
  static constexpr auto name = "invert";
  static constexpr auto takes = Takes::integers;
  auto emit(auto x) const { return x ^ decltype(x)(-1); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(1); }
};

struct LeftShift {
  static constexpr auto name = "left_shift";
  static constexpr auto takes = Takes::integers;
  auto emit(auto x, auto by) const { return shifted_left(x, by); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }
};

struct RightShift {
  static constexpr auto name = "right_shift";
  static constexpr auto takes = Takes::integers;
  auto emit(auto x, auto by) const { return shifted_right(x, by); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }
};

struct PopulationCount {
  static constexpr auto name = "population_count";
  static constexpr auto takes = Takes::integers;
  static constexpr auto result = u8;
  auto emit(auto x) const { return bits_set(x); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(1); }
};

}  // namespace

Tensor bitwise_and(const NumberOrTensor& a, const NumberOrTensor& b) { return broadcasting(BitwiseAnd{}, a, b); }
Tensor bitwise_or(const NumberOrTensor& a, const NumberOrTensor& b) { return broadcasting(BitwiseOr{}, a, b); }
Tensor bitwise_xor(const NumberOrTensor& a, const NumberOrTensor& b) { return broadcasting(BitwiseXor{}, a, b); }
Tensor invert(const Tensor& x) { return apply(Invert{}, x); }
Tensor left_shift(const NumberOrTensor& x, const NumberOrTensor& by) { return broadcasting(LeftShift{}, x, by); }
Tensor right_shift(const NumberOrTensor& x, const NumberOrTensor& by) { return broadcasting(RightShift{}, x, by); }
Tensor population_count(const Tensor& x) { return apply(PopulationCount{}, x); }

namespace {
bool is_logic(const Tensor& a) { return a.dtype() == boolean; }
}  // namespace

Tensor operator&(const Tensor& a, const Tensor& b) { return is_logic(a) ? logical_and(a, b) : bitwise_and(a, b); }
Tensor operator|(const Tensor& a, const Tensor& b) { return is_logic(a) ? logical_or(a, b) : bitwise_or(a, b); }
Tensor operator^(const Tensor& a, const Tensor& b) { return is_logic(a) ? logical_xor(a, b) : bitwise_xor(a, b); }
Tensor operator~(const Tensor& x) { return is_logic(x) ? logical_not(x) : invert(x); }

}  // namespace gradus
