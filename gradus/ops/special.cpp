/// Circular, hyperbolic, gamma and error functions, and products and quotients that give 0 instead of NaN.
#include "gradus/ops/special.h"
#include <algorithm>
#include <numbers>
#include "gradus/scalar/formulas_special.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/elementwise_parts.h"
#include "gradus/ops/reduce.h"

namespace gradus {
namespace {

/// sqrt(1 - x^2)
Tensor cathetus(const Tensor& x) {
  const Tensor one = ones_like(x);
  return sqrt((one - x) * (one + x));
}

struct Acos {
  static constexpr auto name = "acos";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return acos(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {-cotangent_over(dy, cathetus(in[0]))}; }
};

struct Asin {
  static constexpr auto name = "asin";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return asin(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {cotangent_over(dy, cathetus(in[0]))}; }
};

struct Atan {
  static constexpr auto name = "atan";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return atan(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {dy / (square(in[0]) + ones_like(dy))}; }
};

struct Atan2 {
  static constexpr auto name = "atan2";
  static constexpr auto takes = Takes::floats;
  auto emit(auto y, auto x) const { return atan2(y, x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    const Tensor norm = square(in[0]) + square(in[1]), zero = zeros_like(dy);
    const Tensor origin = logical_and(equal(in[0], zero), equal(in[1], zero));
    const Tensor length = where(origin, ones_like(dy), norm);
    const auto over_norm = [&](const Tensor& x) { return where(origin, zero, cotangent_times(dy, x) / length); };
    return {over_norm(in[1]), -over_norm(in[0])};
  }
};

struct Sinh {
  static constexpr auto name = "sinh";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return sinh(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {dy * cosh(in[0])}; }
};

struct Cosh {
  static constexpr auto name = "cosh";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return cosh(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {dy * sinh(in[0])}; }
};

struct Asinh {
  static constexpr auto name = "asinh";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return asinh(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {dy / sqrt(square(in[0]) + ones_like(dy))}; }
};

struct Acosh {
  static constexpr auto name = "acosh";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return acosh(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    const Tensor one = ones_like(dy);
    return {cotangent_over(dy, sqrt((in[0] - one) * (in[0] + one)))};
  }
};

struct Atanh {
  static constexpr auto name = "atanh";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return atanh(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    const Tensor one = ones_like(dy);
    return {cotangent_over(dy, (one - in[0]) * (one + in[0]))};
  }
};

struct Exp2 {
  static constexpr auto name = "exp2";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return exp2(x); }
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const { return {dy * (y * fill_like(y, std::numbers::ln2))}; }
};

struct Log2 {
  static constexpr auto name = "log2";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return log2(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    return {cotangent_over(dy, in[0] * fill_like(dy, std::numbers::ln2))};
  }
};

struct Log10 {
  static constexpr auto name = "log10";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return log10(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    return {cotangent_over(dy, in[0] * fill_like(dy, std::numbers::ln10))};
  }
};

/// A step of Newton's from exp(log(|x|) / 3).
struct Cbrt {
  static constexpr auto name = "cbrt";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const {
    const auto a = abs(x), y = exp(log(a) / 3.0), root = y - (y - a / (y * y)) / 3.0;
    return select((a > 0) & (a < std::numeric_limits<double>::infinity()), select(x < 0, -root, root), x);
  }
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const { return {cotangent_over(dy, square(y) * fill_like(y, 3))}; }
};

struct Logaddexp {
  static constexpr auto name = "logaddexp";
  static constexpr auto takes = Takes::floats;
  auto emit(auto a, auto b) const {
    const auto difference = a - b;  // NaN of equal infinities
    return select(difference == difference, max(a, b) + log1p(exp(-abs(difference))), a + b);
  }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    const Tensor &a = in[0], &b = in[1];
    const Tensor same = logical_and(equal(a, b), logical_not(is_finite(a)));
    const Tensor difference = where(same, zeros_like(a), a - b);
    return {dy * sigmoid(difference), dy * sigmoid(-difference)};
  }
};

struct Erfc {
  static constexpr auto name = "erfc";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return erfc(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    return {dy * (exp(-square(in[0])) * fill_like(dy, -2 * std::numbers::inv_sqrtpi))};
  }
};

struct Erfinv {
  static constexpr auto name = "erfinv";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return erfinv(x); }
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const {
    return {cotangent_times(dy, exp(square(y)) * fill_like(y, 0.5 / std::numbers::inv_sqrtpi))};
  }
};

struct Ndtri {
  static constexpr auto name = "ndtri";
  static constexpr auto takes = Takes::floats;
  auto emit(auto p) const { return ndtri(p); }
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const {
    const Tensor density = exp(square(y) * fill_like(y, 0.5));
    return {cotangent_times(dy, density * fill_like(y, std::numbers::sqrt2 / std::numbers::inv_sqrtpi))};
  }
};

struct Erfcinv {
  static constexpr auto name = "erfcinv";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return erfcinv(x); }
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const {
    return {cotangent_times(dy, exp(square(y)) * fill_like(y, -0.5 / std::numbers::inv_sqrtpi))};
  }
};

struct Lgamma {
  static constexpr auto name = "lgamma";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return lgamma(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {cotangent_times(dy, digamma(in[0]))}; }
};

struct Digamma {
  static constexpr auto name = "digamma";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return digamma(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {cotangent_times(dy, polygamma(1, in[0]))}; }
};

constexpr int highest_polygamma = 60;

struct Polygamma {
  static constexpr auto name = "polygamma";
  static constexpr auto takes = Takes::floats;
  int order = 1;
  auto emit(auto x) const { return polygamma(order, x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    return {cotangent_times(dy, polygamma(order + 1, in[0]))};
  }
};

constexpr int highest_bessel = 60;

/// I_n' = (I_(n-1) + I_(n+1)) / 2, so the orders of derivatives are orders of the function.
struct BesselI {
  static constexpr auto name = "bessel_i";
  static constexpr auto takes = Takes::floats;
  int order = 0;
  bool scaled = false;
  auto emit(auto x) const { return bessel_i(order, scaled, x); }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    require(order < highest_bessel, "bessel_i: derivatives up to order ", highest_bessel, " are known");
    const Tensor after = apply(BesselI{order + 1, scaled}, in[0]);
    const Tensor mean = order == 0 ? after : (apply(BesselI{order - 1, scaled}, in[0]) + after) * fill_like(y, 0.5);
    return {dy * (scaled ? mean - sign(in[0]) * y : mean)};
  }
};

/// Forward recurrence of J loses a digit or two at each further order.
constexpr int highest_bessel_j = 24;

/// J_n' = (J_(n-1) - J_(n+1)) / 2
struct BesselJ {
  static constexpr auto name = "bessel_j";
  static constexpr auto takes = Takes::floats;
  int order = 0;
  auto emit(auto x) const { return bessel_j(order, x); }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    require(order < highest_bessel_j, "bessel_j: derivatives up to order ", highest_bessel_j, " are known");
    const Tensor after = apply(BesselJ{order + 1}, in[0]);
    if (order == 0) return {-(dy * after)};
    return {dy * ((apply(BesselJ{order - 1}, in[0]) - after) * fill_like(y, 0.5))};
  }
};

/// `y` where the next order is finite; at the pole that outweighs y, whose infinity would make NaN of the difference.
Tensor outweighed(const Tensor& y, const Tensor& next) { return where(is_finite(next), y, zeros_like(y)); }

/// Y_n' = (Y_(n-1) - Y_(n+1)) / 2
struct BesselY {
  static constexpr auto name = "bessel_y";
  static constexpr auto takes = Takes::floats;
  int order = 0;
  auto emit(auto x) const { return bessel_y(order, x); }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    require(order < highest_bessel, "bessel_y: derivatives up to order ", highest_bessel, " are known");
    const Tensor after = apply(BesselY{order + 1}, in[0]);
    if (order == 0) return {-cotangent_times(dy, after)};
    const Tensor before = outweighed(apply(BesselY{order - 1}, in[0]), after);
    return {cotangent_times(dy, (before - after) * fill_like(y, 0.5))};
  }
};

/// K_n' = -(K_(n-1) + K_(n+1)) / 2
struct BesselK {
  static constexpr auto name = "bessel_k";
  static constexpr auto takes = Takes::floats;
  int order = 0;
  bool scaled = false;
  auto emit(auto x) const { return bessel_k(order, scaled, x); }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    require(order < highest_bessel, "bessel_k: derivatives up to order ", highest_bessel, " are known");
    const Tensor after = apply(BesselK{order + 1, scaled}, in[0]);
    const Tensor mean = order == 0 ? after : (apply(BesselK{order - 1, scaled}, in[0]) + after) * fill_like(y, 0.5);
    return {cotangent_times(dy, scaled ? outweighed(y, after) - mean : -mean)};
  }
};

bool is_float(const scalar::Value& x) { return is_floating(x.type()); }
bool is_float(const scalar::Real& x) { return is_floating(x.type); }

struct Trunc {
  static constexpr auto name = "trunc";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return truncate(x); }
  Tensors vjp(In, const Tensor&, const Tensor& dy) const { return {zeros_like(dy)}; }
};

struct TruncateMod {
  static constexpr auto name = "truncatemod";
  auto emit(auto a, auto b) const {
    if (is_float(a)) return fmod(a, b);
    return a - (a / b) * b;
  }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    return has_gradient(y) ? Tensors{dy, -cotangent_times(dy, trunc(in[0] / in[1]))} : none(2);
  }
};

struct SquaredDifference {
  static constexpr auto name = "squared_difference";
  auto emit(auto a, auto b) const {
    const auto difference = a - b;
    return difference * difference;
  }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    if (!has_gradient(y)) return none(2);
    const Tensor difference = in[0] - in[1], slope = dy * (difference + difference);
    return {slope, -slope};
  }
};

int bits_of(const auto& x) { return static_cast<int>(8 * size_of(type_of(x))); }
scalar::Value bit_of(const scalar::Value& x, int k) { return (shift_right_logical(x, k) & 1) == 1; }
scalar::Real bit_of(const scalar::Real& x, int k) {
  const double shifted = std::floor(std::ldexp(x.v, -k));
  return scalar::truth(shifted != 2 * std::floor(shifted / 2));
}

/// By squaring, a bit of the exponent after the other.
struct IntegerPow {
  static constexpr auto name = "integer_pow";
  static constexpr auto takes = Takes::integers;
  auto emit(auto a, auto b) const {
    auto one = b - b + 1, result = one, square = a;
    for (int k = 0; k < bits_of(a); ++k) {
      if (k > 0) square = square * square;
      result = select(bit_of(b, k), result * square, result);
    }
    // For negative exponents only 1 and -1 have another power than 0.
    const auto odd = select(bit_of(b, 0), a, one);
    return select(b < 0, select(a == 1, one, select(a == one - 2, odd, one - one)), result);
  }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }
};

/// By Euclid's division with remainder, as often as the slowest pair of this width needs.
struct Gcd {
  static constexpr auto name = "gcd";
  static constexpr auto takes = Takes::integers;
  auto emit(auto a, auto b) const { return bits_of(a) < 64 ? by_floats(a, b) : by_integers(a, b); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }

 private:
  /// In a float that is exact for all quotients and remainders, since vectors have no division of integers. A remainder
  /// or its difference from the divisor is at most half of the divisor, so neighbours among Pell's numbers are slowest.
  template <class V> static V by_floats(const V& left, const V& right) {
    const DType type = type_of(left), exact = bits_of(left) > 16 ? f64 : f32;
    V a = abs(convert(left, exact)), b = abs(convert(right, exact));
    for (int step = 0; step < bits_of(left) * 4 / 5 + 3; ++step) {
      const V divisor = max(b, 1), rest = a - truncate(a / divisor) * divisor;  // 0 after the end, where b is 0
      a = select(b == 0, a, b);
      b = min(rest, divisor - rest);
    }
    if (!is_signed(type)) return convert(a, type);
    const V wraps = a == std::ldexp(1.0, bits_of(left) - 1);  // |MIN|
    return convert(select(wraps, -a, a), type);
  }

  /// Neighbours among Fibonacci's numbers are slowest.
  template <class V> static V by_integers(V a, V b) {
    const V zero = a - a;
    for (int step = 0; step < bits_of(zero) * 3 / 2 + 2; ++step) {
      const auto done = b == 0, rest = select(done, zero, a - a / b * b);
      a = select(done, a, b);
      b = rest;
    }
    return select(a < 0, -a, a);
  }
};

scalar::Real copy_sign(scalar::Real x, scalar::Real sign) { return {std::copysign(x.v, sign.v), x.type}; }

struct Copysign {
  static constexpr auto name = "copysign";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x, auto sign) const { return copy_sign(x, sign); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    const Tensor one = ones_like(dy);
    return {dy * (apply(Copysign{}, one, in[0]) * apply(Copysign{}, one, in[1])), zeros_like(dy)};
  }
};

struct IsInf {
  static constexpr auto name = "is_inf";
  static constexpr auto result = boolean;
  static constexpr auto takes = Takes::floats;
  bool detect_negative = true, detect_positive = true;
  auto emit(auto x) const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (detect_negative && detect_positive) return abs(x) == infinity;
    if (detect_negative) return x == -infinity;
    if (detect_positive) return x == infinity;
    return x < x;
  }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(1); }
};

/// `y` where x is not 0, else `instead`.
Tensor where_counted(const Tensor& x, const Tensor& y, double instead) {
  return where(equal(x, fill_like(x, 0)), fill_like(y, instead), y);
}

}  // namespace

Tensor acos(const Tensor& x) { return apply_wide(Acos{}, x); }
Tensor asin(const Tensor& x) { return apply_wide(Asin{}, x); }
Tensor atan(const Tensor& x) { return apply_wide(Atan{}, x); }
Tensor atan2(const NumberOrTensor& y, const NumberOrTensor& x) { return broadcasting_wide(Atan2{}, y, x); }
Tensor sinh(const Tensor& x) { return apply_wide(Sinh{}, x); }
Tensor cosh(const Tensor& x) { return apply_wide(Cosh{}, x); }
Tensor asinh(const Tensor& x) { return apply_wide(Asinh{}, x); }
Tensor acosh(const Tensor& x) { return apply_wide(Acosh{}, x); }
Tensor atanh(const Tensor& x) { return apply_wide(Atanh{}, x); }
Tensor exp2(const Tensor& x) { return apply_wide(Exp2{}, x); }
Tensor log2(const Tensor& x) { return apply_wide(Log2{}, x); }
Tensor log10(const Tensor& x) { return apply_wide(Log10{}, x); }
Tensor cbrt(const Tensor& x) { return apply_wide(Cbrt{}, x); }
Tensor logaddexp(const NumberOrTensor& a, const NumberOrTensor& b) { return broadcasting_wide(Logaddexp{}, a, b); }
Tensor erfc(const Tensor& x) { return apply_wide(Erfc{}, x); }
Tensor erfinv(const Tensor& x) { return apply_wide(Erfinv{}, x); }
Tensor erfcinv(const Tensor& x) { return apply_wide(Erfcinv{}, x); }
Tensor ndtri(const Tensor& p) { return apply_wide(Ndtri{}, p); }
Tensor lgamma(const Tensor& x) { return apply_wide(Lgamma{}, x); }
Tensor digamma(const Tensor& x) { return apply_wide(Digamma{}, x); }

Tensor polygamma(int order, const Tensor& x) {
  require(order >= 0 && order <= highest_polygamma, "polygamma: expected an order of 0 to ", highest_polygamma,
          ", got ", order);
  return order == 0 ? digamma(x) : apply_wide(Polygamma{order}, x);
}

namespace {

/// lgamma(x), and at the poles 0, -1 ... its part that stays finite, log(1 / (-x)!); and 1 at the poles, else 0.
std::pair<Tensor, Tensor> finite_lgamma(const Tensor& x) {
  const Tensor is_pole = logical_and(logical_and(x <= 0, equal(x, floor(x))), is_finite(x));
  const Tensor size = lgamma(where(is_pole, 1 - x, x));
  return {where(is_pole, -size, size), cast(is_pole, x.dtype())};
}

}  // namespace

Tensor lbeta(const Tensor& x) {
  require_floating(x, "lbeta");
  checked_axis(x, -1, "lbeta");
  return in_computed_dtype(x, [](const Tensor& wide) {
    const auto [parts, part_poles] = finite_lgamma(wide);
    const auto [whole, whole_poles] = finite_lgamma(reduce_sum(wide, {.axis = {-1}}));
    const Tensor poles = reduce_sum(part_poles, {.axis = {-1}}) - whole_poles;
    return reduce_sum(parts, {.axis = {-1}}) - whole + multiply_no_nan(std::numeric_limits<double>::infinity(), poles);
  });
}

Tensor bessel_i0(const Tensor& x) { return apply_wide(BesselI{0, false}, x); }
Tensor bessel_i0e(const Tensor& x) { return apply_wide(BesselI{0, true}, x); }
Tensor bessel_i1(const Tensor& x) { return apply_wide(BesselI{1, false}, x); }
Tensor bessel_i1e(const Tensor& x) { return apply_wide(BesselI{1, true}, x); }
Tensor bessel_j0(const Tensor& x) { return apply_wide(BesselJ{0}, x); }
Tensor bessel_j1(const Tensor& x) { return apply_wide(BesselJ{1}, x); }
Tensor bessel_y0(const Tensor& x) { return apply_wide(BesselY{0}, x); }
Tensor bessel_y1(const Tensor& x) { return apply_wide(BesselY{1}, x); }
Tensor bessel_k0(const Tensor& x) { return apply_wide(BesselK{0, false}, x); }
Tensor bessel_k0e(const Tensor& x) { return apply_wide(BesselK{0, true}, x); }
Tensor bessel_k1(const Tensor& x) { return apply_wide(BesselK{1, false}, x); }
Tensor bessel_k1e(const Tensor& x) { return apply_wide(BesselK{1, true}, x); }

Tensor xlogy(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [x, y] = side_by_side("xlogy", left, right);
  return in_computed_dtype(
      "xlogy", x, y, [](const Tensor& a, const Tensor& b) { return cotangent_times(a, log(where_counted(a, b, 1))); });
}

Tensor xlog1py(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [x, y] = side_by_side("xlog1py", left, right);
  return in_computed_dtype("xlog1py", x, y, [](const Tensor& a, const Tensor& b) {
    return cotangent_times(a, log1p(where_counted(a, b, 0)));
  });
}

Tensor xdivy(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [x, y] = side_by_side("xdivy", left, right);
  return in_computed_dtype("xdivy", x, y, [](const Tensor& a, const Tensor& b) { return a / where_counted(a, b, 1); });
}

Tensor divide_no_nan(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [x, y] = side_by_side("divide_no_nan", left, right);
  return in_computed_dtype("divide_no_nan", x, y, [](const Tensor& a, const Tensor& b) {
    const Tensor zero = fill_like(b, 0), is_zero = equal(b, zero);
    return where(is_zero, zero, a / where(is_zero, fill_like(b, 1), b));
  });
}

Tensor reciprocal_no_nan(const Tensor& x) {
  require_floating(x, "reciprocal_no_nan");
  return divide_no_nan(fill_like(x, 1), x);
}

Tensor multiply_no_nan(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [x, y] = side_by_side("multiply_no_nan", left, right);
  return in_computed_dtype("multiply_no_nan", x, y,
                           [](const Tensor& a, const Tensor& b) { return cotangent_times(b, a); });
}

Tensor reciprocal(const Tensor& x) { return fill_like(require_floating(x, "reciprocal"), 1) / x; }
Tensor squared_difference(const NumberOrTensor& a, const NumberOrTensor& b) {
  return broadcasting_wide(SquaredDifference{}, a, b);
}
Tensor trunc(const Tensor& x) { return apply(Trunc{}, x); }
Tensor truncatemod(const NumberOrTensor& a, const NumberOrTensor& b) { return broadcasting_wide(TruncateMod{}, a, b); }

Tensor integer_pow(const NumberOrTensor& a, const NumberOrTensor& b) { return broadcasting(IntegerPow{}, a, b); }
Tensor gcd(const NumberOrTensor& a, const NumberOrTensor& b) { return broadcasting(Gcd{}, a, b); }
Tensor lcm(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("lcm", left, right);
  return abs(a / gcd(a, b) * b);
}
Tensor copysign(const NumberOrTensor& x, const NumberOrTensor& sign) { return broadcasting(Copysign{}, x, sign); }

Tensor polyval(const std::vector<Tensor>& coefficients, const Tensor& x) {
  if (coefficients.empty()) return zeros_like(x);
  const auto agrees = [&](const Tensor& each) { return each.dtype() == x.dtype(); };
  if (is_narrow(x.dtype()) && std::ranges::all_of(coefficients, agrees)) {
    std::vector<Tensor> wide;
    for (const Tensor& each : coefficients) wide.push_back(widened(each));
    return in_f32(x, [&](const Tensor& wide_x) { return polyval(wide, wide_x); });
  }
  Tensor sum = coefficients.front();
  for (std::size_t i = 1; i < coefficients.size(); ++i) sum = sum * x + coefficients[i];
  return coefficients.size() == 1 ? broadcast_together(sum, x, "polyval").first : sum;
}

Tensor add_n(const std::vector<Tensor>& inputs) {
  require(!inputs.empty(), "add_n: expected at least one tensor, got none");
  const Spec& first = inputs.front().spec();
  if (inputs.size() == 1) return inputs.front();
  Tensor sum = widened(inputs.front());
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    require(inputs[i].spec() == first, "add_n: tensor ", i, " is ", inputs[i].spec(), ", the first ", first,
            "; they must agree");
    sum = sum + widened(inputs[i]);
  }
  return cast(sum, first.dtype);
}

Tensor is_inf(const Tensor& x, IsInfOptions options) {
  return apply(IsInf{options.detect_negative, options.detect_positive}, x);
}

}  // namespace gradus
