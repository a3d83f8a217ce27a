/// Gradients of incomplete functions. For a parameter the kernel has the next derivative. For the end of the integral
/// it is the integrand, whose derivatives by the parameters follow from those of its logarithm.
#include "gradus/ops/incomplete.h"
#include "gradus/ops/incomplete_ops.h"
#include <algorithm>
#include <limits>
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise_parts.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/special.h"

namespace gradus {
namespace {

constexpr int highest_order = 5;

Spec same_floats(std::string_view name, std::size_t arity, Specs in, int least_order, int greatest_order) {
  require(in.size() == arity, name, ": expected ", arity, " operands, got ", in.size());
  for (const Spec& operand : in) {
    require(is_floating(operand.dtype), name, ": expected floats, got ", operand, "; cast it first");
    require(operand == in[0], name, ": operands are ", in[0], " and ", operand, "; they must agree");
  }
  require(least_order >= 0 && greatest_order <= highest_order, name, ": orders of derivatives are 0 ... ",
          highest_order);
  return in[0];
}

template <class Op> Tensor with_rows(const Op& op, In in, std::uint32_t mask, std::int64_t n) {
  Tensors rows(in.begin(), in.end());
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!has_rows(mask, i)) rows[i] = repeat_rows(rows[i], n);
  return apply(op, In(rows));
}

void require_order(std::string_view name, int order) {
  require(order < highest_order, name, ": derivatives by a parameter are known up to order ", highest_order,
          "; stop_gradient the parameter if its gradient is not needed");
}

double binomial(int n, int k) {
  double product = 1;
  for (int i = 1; i <= k; ++i) product = product * (n - k + i) / i;
  return product;
}

Tensor derivative_of_digamma(int order, const Tensor& x) { return order == 0 ? digamma(x) : polygamma(order, x); }

/// The cotangent times the derivative, in f64 and rounded once.
Tensor gradient(const Tensor& dy, const Tensor& derivative) {
  return cast(cotangent_times(cast(dy, f64), derivative), dy.dtype());
}

/// x^(a-1) exp(-x) / gamma(a), differentiated `order` times by a.
Tensor gamma_integrand(const Tensor& a, const Tensor& x, int order) {
  const Tensor infinite = equal(x, fill_like(x, std::numeric_limits<double>::infinity()));
  const Tensor exponent = xlogy(a - 1, x) - x - lgamma(a);
  Tensors f{where(infinite, zeros_like(x), exp(exponent))};
  const Tensor slope = log(x) - digamma(a);  // of the logarithm
  for (int n = 0; n < order; ++n) {
    Tensor next = cotangent_times(f.back(), slope);
    for (int k = 0; k < n; ++k)
      next = next - cotangent_times(f[static_cast<std::size_t>(k)], polygamma(n - k, a)) * binomial(n, k);
    f.push_back(next);
  }
  return f.back();
}

/// x^(a-1) (1-x)^(b-1) / beta(a, b) and its derivatives by a and b.
struct BetaIntegrand {
  Tensor a, b, x;

  Tensor derivative(int i, int j) const {
    if (i == 0 && j == 0) {
      const Tensor powers = xlogy(a - 1, x) + xlog1py(b - 1, -x);
      return exp(powers + (lgamma(a + b) - lgamma(a) - lgamma(b)));
    }
    // By Leibniz of f' = f slope, along the parameter that there is.
    const bool by_a = i > 0;
    const int rows = by_a ? i - 1 : i, columns = by_a ? j : j - 1;
    Tensor sum = zeros_like(x);
    for (int k = 0; k <= rows; ++k)
      for (int l = 0; l <= columns; ++l)
        sum = sum + cotangent_times(derivative(k, l), slope(by_a, rows - k, columns - l)) *
                        (binomial(rows, k) * binomial(columns, l));
    return sum;
  }
  /// The derivative of the logarithm by a or b, differentiated by both.
  Tensor slope(bool by_a, int i, int j) const {
    const Tensor both = derivative_of_digamma(i + j, a + b);
    if ((by_a ? j : i) > 0) return both;
    const Tensor rest = both - derivative_of_digamma(i + j, by_a ? a : b);
    return i + j > 0 ? rest : rest + (by_a ? log(x) : log1p(-x));
  }
};

}  // namespace

Spec Igamma::infer(Specs in) const { return same_floats(upper ? "igammac" : name, 2, in, order, order); }
Spec Betainc::infer(Specs in) const {
  return same_floats(name, 3, in, std::min(order_a, order_b), std::max(order_a, order_b));
}
Spec Zeta::infer(Specs in) const { return same_floats(name, 2, in, order, order); }
Tensor Igamma::batch(In in, std::uint32_t mask, std::int64_t n) const { return with_rows(*this, in, mask, n); }
Tensor Betainc::batch(In in, std::uint32_t mask, std::int64_t n) const { return with_rows(*this, in, mask, n); }
Tensor Zeta::batch(In in, std::uint32_t mask, std::int64_t n) const { return with_rows(*this, in, mask, n); }

Tensors Igamma::vjp(In in, const Tensor&, const Tensor& dy) const {
  require_order(upper ? "igammac" : name, order);
  const Tensor a = cast(in[0], f64), x = cast(in[1], f64);
  const Tensor by_x = gamma_integrand(a, x, order);
  return {gradient(dy, gradus::detail::apply(Igamma{order + 1, upper}, a, x)), gradient(dy, upper ? -by_x : by_x)};
}

Tensors Betainc::vjp(In in, const Tensor&, const Tensor& dy) const {
  require_order(name, std::max(order_a, order_b));
  const Tensor a = cast(in[0], f64), b = cast(in[1], f64), x = cast(in[2], f64);
  return {gradient(dy, gradus::detail::apply(Betainc{order_a + 1, order_b}, a, b, x)),
          gradient(dy, gradus::detail::apply(Betainc{order_a, order_b + 1}, a, b, x)),
          gradient(dy, BetaIntegrand{a, b, x}.derivative(order_a, order_b))};
}

/// d/dq zeta(x, q) = -x zeta(x + 1, q), which is differentiated by x.
Tensors Zeta::vjp(In in, const Tensor&, const Tensor& dy) const {
  require_order(name, order);
  const Tensor x = cast(in[0], f64), q = cast(in[1], f64), above = x + 1;
  Tensor by_q = -(x * gradus::detail::apply(Zeta{order}, above, q));
  if (order > 0) by_q = by_q - gradus::detail::apply(Zeta{order - 1}, above, q) * static_cast<double>(order);
  return {gradient(dy, gradus::detail::apply(Zeta{order + 1}, x, q)), gradient(dy, by_q)};
}

Tensor igamma(const NumberOrTensor& a, const NumberOrTensor& x) { return broadcasting_wide(Igamma{}, a, x); }
Tensor igammac(const NumberOrTensor& a, const NumberOrTensor& x) {
  return broadcasting_wide(Igamma{0, true}, a, x, "igammac");
}
Tensor zeta(const NumberOrTensor& x, const NumberOrTensor& q) { return broadcasting_wide(Zeta{}, x, q); }

Tensor betainc(const NumberOrTensor& left, const NumberOrTensor& middle, const NumberOrTensor& right) {
  const auto [a, b, x] = side_by_side("betainc", left, middle, right);
  require_floating(a, b, "betainc");
  require_floating(a, x, "betainc");
  const Shape shape = broadcast_shape(broadcast_shape(a.shape(), b.shape(), "betainc"), x.shape(), "betainc");
  const auto spread = [&](const Tensor& operand) { return broadcast_to(widened(operand), shape); };
  return cast(apply(Betainc{}, spread(a), spread(b), spread(x)), x.dtype());
}

Tensor polygamma(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, x] = side_by_side("polygamma", left, right);
  require_floating(a, x, "polygamma");
  const auto [order, at] = broadcast_together(stop_gradient(a), x, "polygamma");
  const Tensor wide = cast(order, f64), from = cast(at, f64), zero = zeros_like(wide);
  const Tensor is_whole = logical_and(equal(floor(wide), wide), wide >= zero);
  const Tensor is_zero = equal(wide, zero);
  const Tensor safe = where(logical_and(is_whole, logical_not(is_zero)), wide, ones_like(wide));
  const Tensor sign = where(equal(mod(safe, fill_like(safe, 2)), zero), fill_like(safe, -1), ones_like(safe));
  const Tensor exponent = where(is_whole, safe + 1, zero);  // zeta is NaN below 1
  const Tensor derivative = sign * exp(lgamma(safe + 1)) * zeta(exponent, from);
  return cast(where(is_zero, digamma(from), derivative), x.dtype());
}

}  // namespace gradus
