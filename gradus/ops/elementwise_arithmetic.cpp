/// Sums, products, quotients, powers, extrema and signs.
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_set>
#include "gradus/base/ranges.h"
#include "gradus/graph/scope.h"
#include "gradus/scalar/formulas_special.h"
#include "gradus/ops/elementwise_parts.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/special.h"
#include "gradus/ops/summands.h"

namespace gradus {
namespace {

struct Add {
  static constexpr auto name = "add";
  auto emit(auto a, auto b) const { return a + b; }
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const { return has_gradient(y) ? Tensors{dy, dy} : none(2); }
};

struct Subtract {
  static constexpr auto name = "subtract";
  auto emit(auto a, auto b) const { return a - b; }
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const { return has_gradient(y) ? Tensors{dy, -dy} : none(2); }
};

struct Multiply {
  static constexpr auto name = "multiply";
  auto emit(auto a, auto b) const { return a * b; }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    return has_gradient(y) ? Tensors{dy * in[1], dy * in[0]} : none(2);
  }
};

struct Divide {
  static constexpr auto name = "divide";
  auto emit(auto a, auto b) const { return a / b; }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    if (!has_gradient(y)) return none(2);
    const Tensor da = cotangent_over(dy, in[1]);
    return {da, -cotangent_times(da, y)};
  }
};

struct CotangentTimes {
  static constexpr auto name = "cotangent_times";
  static constexpr auto takes = Takes::floats;
  auto emit(auto cotangent, auto factor) const { return select(cotangent == 0.0, 0.0, cotangent * factor); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    return {cotangent_times(dy, in[1]), product_of_cotangents(in[0], dy)};
  }
};

struct ProductOfCotangents {
  static constexpr auto name = "product_of_cotangents";
  static constexpr auto takes = Takes::floats;
  auto emit(auto a, auto b) const { return select((a == 0.0) | (b == 0.0), 0.0, a * b); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    return {product_of_cotangents(dy, in[1]), product_of_cotangents(in[0], dy)};
  }
};

struct CotangentOver {
  static constexpr auto name = "cotangent_over";
  static constexpr auto takes = Takes::floats;
  auto emit(auto cotangent, auto divisor) const { return select(cotangent == 0.0, 0.0, cotangent / divisor); }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    const Tensor d = cotangent_over(dy, in[1]);
    return {d, -product_of_cotangents(y, d)};
  }
};

struct GuardedCotangent {
  static constexpr auto name = "guarded_cotangent";
  static constexpr auto takes = Takes::floats;
  auto emit(auto cotangent, auto weight) const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return select((weight == 0.0) & !(abs(cotangent) < infinity), 0.0, cotangent);
  }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    const Tensor cut = logical_and(equal(in[1], zeros_like(in[1])), logical_not(is_finite(in[0])));
    return {where(cut, zeros_like(dy), dy), {}};
  }
};

/// Takes x and the weight. For weight 0 the gradient is 0 as a product: finite values stay as they are, so that
/// derivatives by the weight go through it.
struct GuardZeroWeight {
  static constexpr auto name = "guard_zero_weight";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x, auto) const { return x; }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {guarded_cotangent(dy, in[1]), {}}; }
};

struct MinusLargest {
  static constexpr auto name = "minus_largest";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x, auto largest) const { return select(x == largest, 0.0, x - largest); }
  Tensors vjp(In, const Tensor&, const Tensor& dy) const { return {dy, -dy}; }
};

struct Negative {
  static constexpr auto name = "negative";
  auto emit(auto x) const { return -x; }
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const { return has_gradient(y) ? Tensors{-dy} : none(1); }
};

bool is_real(const scalar::Value& x) { return is_floating(x.type()); }
bool is_real(const scalar::Real& x) { return is_floating(x.type); }

/// True if the remainder r of a truncating division by b lies on the other side of zero.
auto is_wrong_side(auto r, auto b) { return ((r < 0) ^ (b < 0)) & (!(r == 0)); }

struct FloorDivide {
  static constexpr auto name = "floor_divide";
  auto emit(auto a, auto b) const {
    if (is_real(a)) return floor(a / b);
    const auto q = a / b;
    return select(is_wrong_side(a - q * b, b) & (!(b == 0)), q - 1, q);
  }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }
};

struct Mod {
  static constexpr auto name = "mod";
  auto emit(auto a, auto b) const {
    if (is_real(a)) return floor_mod(a, b);
    const auto r = a - (a / b) * b;
    return select(is_wrong_side(r, b), r + b, r);
  }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    return has_gradient(y) ? Tensors{dy, -cotangent_times(dy, floor_divide(in[0], in[1]))} : none(2);
  }
};

struct Pow {
  static constexpr auto name = "pow";
  static constexpr auto takes = Takes::floats;
  auto emit(auto a, auto b) const { return pow(a, b); }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    const Tensor &a = in[0], &b = in[1];
    const Tensor zero = zeros_like(a), one = ones_like(a);
    const Tensor corner = logical_and(equal(a, zero), equal(b, zero));  // b a^(b-1) would be 0 * inf
    const Tensor slope = b * pow(a, where(corner, one, b - one));
    return {cotangent_times(dy, slope), cotangent_times(dy, y * log(where(zero < a, a, one)))};
  }
};

/// The exponent is structure: x is multiplied with itself.
struct IntegerPower {
  static constexpr auto name = "integer_power";
  scalar::Literal exponent;  // integral; not an integer field, whose negative values would be symbolic dimensions
  std::int64_t power() const { return std::bit_cast<std::int64_t>(exponent.bits_as(i64)); }
  auto emit(auto x) const {
    auto result = max(min(x, 1), 1);  // 1, whatever x is
    auto square = x;
    bool empty = true;
    for (std::int64_t rest = std::abs(power()); rest; rest >>= 1) {
      if (rest & 1) {
        result = empty ? square : result * square;
        empty = false;
      }
      if (rest > 1) square = square * square;
    }
    return power() < 0 ? 1 / result : result;
  }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    if (!has_gradient(y)) return none(1);
    if (power() == 0) return {zeros_like(dy)};
    if (power() == 1) return {dy};
    const Tensor slope = apply(IntegerPower{scalar::Literal(power() - 1)}, in[0]) * fill_like(y, power());
    return {power() < 0 ? cotangent_times(dy, slope) : dy * slope};
  }
};

struct Maximum {
  static constexpr auto name = "maximum";
  auto emit(auto a, auto b) const { return select(a == a, max(a, b), a); }  // NaN of either
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    if (!has_gradient(y)) return none(2);
    const Tensor first = in[1] <= in[0], zero = zeros_like(dy);
    return {where(first, dy, zero), where(first, zero, dy)};
  }
};

struct Minimum {
  static constexpr auto name = "minimum";
  auto emit(auto a, auto b) const { return select(a == a, min(a, b), a); }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    if (!has_gradient(y)) return none(2);
    const Tensor first = in[0] <= in[1], zero = zeros_like(dy);
    return {where(first, dy, zero), where(first, zero, dy)};
  }
};

struct ClipByValue {
  static constexpr auto name = "clip_by_value";
  auto emit(auto x, auto low, auto high) const { return min(high, max(low, x)); }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    if (!has_gradient(y)) return none(3);
    const Tensor inside = logical_and(in[1] <= in[0], in[0] <= in[2]);
    return {where(inside, dy, zeros_like(dy)), {}, {}};
  }
};

/// Takes x and a scalar bound.
struct ClipByNorm {
  static constexpr auto name = "clip_by_norm";
  Tensor expand(In in) const {
    const Tensor length = norm(in[0]);
    return in[0] * (in[1] / maximum(in[1], length));
  }
};

struct Square {
  static constexpr auto name = "square";
  auto emit(auto x) const { return x * x; }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    return has_gradient(y) ? Tensors{dy * (in[0] + in[0])} : none(1);
  }
};

struct Abs {
  static constexpr auto name = "abs";
  auto emit(auto x) const { return abs(x); }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    return has_gradient(y) ? Tensors{dy * sign(in[0])} : none(1);
  }
};

struct Sign {
  static constexpr auto name = "sign";
  auto emit(auto x) const { return select(x > 0, 1, select(x < 0, -1, x)); }
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const {
    return has_gradient(y) ? Tensors{zeros_like(dy)} : none(1);
  }
};

Tensor beside(const Tensor& x, Scalar value, std::string_view op) { return scalar_like(x, value, op); }

}  // namespace

Tensor cotangent_times(const Tensor& cotangent, const Tensor& factor) {
  return apply(CotangentTimes{}, cotangent, factor);
}
Tensor cotangent_over(const Tensor& cotangent, const Tensor& divisor) {
  return apply(CotangentOver{}, cotangent, divisor);
}
Tensor minus_largest(const Tensor& x, const Tensor& largest) { return broadcasting(MinusLargest{}, x, largest); }
Tensor guarded_cotangent(const Tensor& cotangent, const Tensor& weight) {
  return apply(GuardedCotangent{}, cotangent, weight);
}
Tensor guard_zero_weight(const Tensor& x, const Tensor& weight) { return broadcasting(GuardZeroWeight{}, x, weight); }
Tensor nan_of_nan(const Tensor& y, const Tensor& dy) {
  const Tensor zero = zeros_like(dy);
  if (!has_gradient(dy)) return zero;
  const Tensor is_nan = logical_and(not_equal(y, y), not_equal(dy, zero));
  return where(is_nan, fill_like(dy, std::numeric_limits<double>::quiet_NaN()), zero);
}
Tensor product_of_cotangents(const Tensor& a, const Tensor& b) { return apply(ProductOfCotangents{}, a, b); }

Tensor operator+(const Tensor& a, const Tensor& b) { return broadcasting(Add{}, a, b); }
Tensor operator+(const Tensor& a, Scalar b) { return a + beside(a, b, Add::name); }
Tensor operator+(Scalar a, const Tensor& b) { return beside(b, a, Add::name) + b; }
Tensor operator-(const Tensor& a, const Tensor& b) { return broadcasting(Subtract{}, a, b); }
Tensor operator-(const Tensor& a, Scalar b) { return a - beside(a, b, Subtract::name); }
Tensor operator-(Scalar a, const Tensor& b) { return beside(b, a, Subtract::name) - b; }
/// Products that are summed, since a factor is broadcast, are summed in the type in which they are computed.
Tensor operator*(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() ? broadcasting(Multiply{}, a, b) : broadcasting_wide(Multiply{}, a, b);
}
Tensor operator*(const Tensor& a, Scalar b) { return broadcasting(Multiply{}, a, beside(a, b, Multiply::name)); }
Tensor operator*(Scalar a, const Tensor& b) { return broadcasting(Multiply{}, beside(b, a, Multiply::name), b); }
Tensor operator/(const Tensor& a, const Tensor& b) { return broadcasting_wide(Divide{}, a, b); }
Tensor operator/(const Tensor& a, Scalar b) { return broadcasting(Divide{}, a, beside(a, b, Divide::name)); }
Tensor operator/(Scalar a, const Tensor& b) { return beside(b, a, Divide::name) / b; }
Tensor operator-(const Tensor& x) { return apply(Negative{}, x); }
Tensor mod(const Tensor& a, const Tensor& b) { return broadcasting_wide(Mod{}, a, b); }
Tensor mod(const Tensor& a, Scalar b) { return broadcasting(Mod{}, a, beside(a, b, Mod::name)); }
Tensor mod(Scalar a, const Tensor& b) { return mod(beside(b, a, Mod::name), b); }
Tensor floor_divide(const Tensor& a, const Tensor& b) { return broadcasting(FloorDivide{}, a, b); }
Tensor floor_divide(const Tensor& a, Scalar b) { return floor_divide(a, beside(a, b, FloorDivide::name)); }
Tensor floor_divide(Scalar a, const Tensor& b) { return floor_divide(beside(b, a, FloorDivide::name), b); }

Tensor pow(const Tensor& a, const Tensor& b) {
  if (!is_integer(a.dtype()) || a.dtype() != b.dtype()) return broadcasting_wide(Pow{}, a, b);
  if (!is_signed(b.dtype())) return integer_pow(a, b);
  const NameScope scope("pow of integers, whose exponents must not be negative (cast to a float for fractions)");
  return integer_pow(a, check_range(b, std::numeric_limits<std::int64_t>::max(), false));
}
Tensor pow(Scalar a, const Tensor& b) { return pow(beside(b, a, Pow::name), b); }
Tensor pow(const Tensor& a, Scalar b) {
  const double exponent = b.literal().real();
  const bool floating = is_floating(a.dtype());
  require(a.dtype() != boolean, "pow: expected a number type, got ", a.spec(), "; cast it first");
  require(floating || b.literal().is_integral(), "pow: the floating number ", exponent, " stands beside a tensor ",
          a.spec(), "; write an integer, or cast the tensor to a floating type first: cast(x, f32)");
  const bool integral = std::trunc(exponent) == exponent && std::abs(exponent) <= (floating ? 64 : 0x1p53);
  if (!integral) return pow(a, beside(a, b, Pow::name));
  require(floating || exponent >= 0, "pow: the exponent ", exponent, " of a tensor ", a.spec(),
          " is negative; cast the tensor to a floating type first");
  return apply_wide(IntegerPower{scalar::Literal(static_cast<std::int64_t>(exponent))}, a);
}

Tensor maximum(const Tensor& a, const Tensor& b) { return broadcasting(Maximum{}, a, b); }
Tensor maximum(const Tensor& a, Scalar b) { return maximum(a, beside(a, b, Maximum::name)); }
Tensor maximum(Scalar a, const Tensor& b) { return maximum(beside(b, a, Maximum::name), b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return broadcasting(Minimum{}, a, b); }
Tensor minimum(const Tensor& a, Scalar b) { return minimum(a, beside(a, b, Minimum::name)); }
Tensor minimum(Scalar a, const Tensor& b) { return minimum(beside(b, a, Minimum::name), b); }

namespace {

/// Exactly; false of NaN.
bool is_at_most(const scalar::Literal& a, const scalar::Literal& b) {
  if (!a.is_integral() || !b.is_integral()) return a.real() <= b.real();
  if (a.is_huge() != b.is_huge()) return b.is_huge();
  const std::uint64_t x = a.bits_as(u64), y = b.bits_as(u64);
  return a.is_huge() ? x <= y : static_cast<std::int64_t>(x) <= static_cast<std::int64_t>(y);
}

}  // namespace

Tensor clip_by_value(const Tensor& x, Scalar low, Scalar high) {
  const Tensor least = beside(x, low, ClipByValue::name), most = beside(x, high, ClipByValue::name);
  require(is_at_most(low.literal(), high.literal()), "clip_by_value: expected low <= high, got low ",
          low.literal().real(), " and high ", high.literal().real());
  return apply(ClipByValue{}, x, broadcast_to(least, x.shape()), broadcast_to(most, x.shape()));
}

Tensor clip_by_norm(const Tensor& x, double norm) {
  require(is_floating(x.dtype()), "clip_by_norm: expected a floating type, got ", x.spec(), "; cast it first");
  check_number("clip_by_norm", "the norm", Allowed::not_negative("norm"), norm);
  return in_computed_dtype(
      x, [&](const Tensor& wide) { return apply(ClipByNorm{}, wide, beside(wide, norm, ClipByNorm::name)); });
}

Tensor square(const Tensor& x) { return apply(Square{}, x); }
Tensor abs(const Tensor& x) { return apply(Abs{}, x); }
Tensor sign(const Tensor& x) { return apply(Sign{}, x); }

Tensor& Tensor::operator+=(const Tensor& y) { return *this = *this + y; }
Tensor& Tensor::operator-=(const Tensor& y) { return *this = *this - y; }
Tensor& Tensor::operator*=(const Tensor& y) { return *this = *this * y; }
Tensor& Tensor::operator/=(const Tensor& y) { return *this = *this / y; }
Tensor& Tensor::operator+=(Scalar y) { return *this = *this + y; }
Tensor& Tensor::operator-=(Scalar y) { return *this = *this - y; }
Tensor& Tensor::operator*=(Scalar y) { return *this = *this * y; }
Tensor& Tensor::operator/=(Scalar y) { return *this = *this / y; }

namespace {

/// The operands through which a scalar is a sum.
std::vector<int> places_of_terms(const Node& node, const IsTerm& is_factor) {
  const AnyOp& op = node.op;
  if (node.is_leaf() || node.spec.shape.rank() > 0) return {};
  if (op.as<Add>() || op.as<Subtract>()) return {0, 1};
  if (op.as<Negative>()) return {0};
  const bool is_product = op.as<Multiply>() != nullptr;
  if ((is_product || op.as<Divide>()) && is_factor(Tensor(node.inputs[1]))) return {0};
  if (is_product && is_factor(Tensor(node.inputs[0]))) return {1};
  return {};
}

}  // namespace

/// Iterative, since a loop may have added up thousands of terms.
Tensor find_term(const Tensor& x, const IsTerm& is_wanted) {
  std::vector<Ref<Node>> waiting{x.node()};
  std::unordered_set<const Node*> seen{x.node().get()};
  while (!waiting.empty()) {
    const Ref<Node> node = std::move(waiting.back());
    waiting.pop_back();
    if (is_wanted(Tensor(node))) return Tensor(node);
    for (const int place : places_of_terms(*node, is_wanted))
      if (seen.insert(node->inputs[place].get()).second) waiting.push_back(node->inputs[place]);
  }
  return {};
}

}  // namespace gradus
