/// The quantile of the normal distribution, and the inverse error function: Wichura 1988, algorithm AS 241 (PPND16), in
/// f64.
#include <numbers>
#include "gradus/scalar/formulas_parts.h"
#include "gradus/scalar/formulas_special.h"

namespace gradus::scalar {
namespace {

struct Fraction {
  Value numerator, denominator;
};

/// q = p - 1/2 within 0.425 of 0: the quantile over q.
Fraction central(const Value& q) {
  const Value r = 0.180625 - q * q;
  return {polynomial(r, {2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
                         13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608}),
          polynomial(r, {5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
                         5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0})};
}

/// r = sqrt(-log(tail)) up to 5, and beyond.
Fraction shoulder(const Value& root) {
  const Value r = root - 1.6;
  return {
      polynomial(r, {7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
                     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734}),
      polynomial(r,
                 {1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
                  0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0})};
}
Fraction far(const Value& root) {
  const Value r = root - 5.0;
  return {polynomial(r, {2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
                         0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699,
                         6.6579046435011037772}),
          polynomial(r, {2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
                         7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531,
                         0.59983220655588793769, 1.0})};
}

/// The quantile of p, of which q = p - 1/2, the smaller of p and 1 - p, and its logarithm are given. The size of `tail`
/// does not matter, unless it is 0.
Value quantile(const Value& q, const Value& tail, const Value& log_tail) {
  const Value inner = abs(q) <= 0.425;
  const Value root = sqrt(-log_tail);
  const Fraction a = central(q), b = shoulder(root), c = far(root);
  const Value outer = root > 5.0;
  const Value numerator = select(inner, a.numerator * abs(q), select(outer, c.numerator, b.numerator));
  const Value denominator = select(inner, a.denominator, select(outer, c.denominator, b.denominator));
  const Value y = select(tail == 0.0, infinity, numerator / denominator);
  return select(tail < 0.0, nan, copy_sign(y, q));
}

Value quantile(const Value& q, const Value& tail) { return quantile(q, tail, log(tail)); }

/// The y at which the falling function f of y > 0 is `value`, by halving [0, 40].
double inverse_of(long double (*f)(long double), long double value) {
  long double low = 0, high = 40;
  for (int step = 0; step < 90; ++step) {
    const long double middle = (low + high) / 2;
    (f(middle) > value ? low : high) = middle;
  }
  return static_cast<double>(low);
}

}  // namespace

Value erfinv(const Value& given) {
  const Value x = convert(given, f64);
  const Value y = quantile(x * 0.5, (1.0 - abs(x)) * 0.5) * 0.70710678118654752440;
  const Value tiny = x * 0.88622692545275801365;  // sqrt(pi) / 2 for an x whose half may be subnormal
  return select(given == 0.0, given, convert(select(abs(x) < 1e-300, tiny, y), given.type()));
}

Value ndtri(const Value& given) {
  const Value p = convert(given, f64);
  const Value q = p - 0.5;
  return convert(quantile(q, select(q > 0.0, 1.0 - p, p)), given.type());
}

Value erfcinv(const Value& given) {
  const Value x = convert(given, f64), p = x * 0.5, q = p - 0.5;
  const Value halves = x > 1e-300;  // smaller ones may have a subnormal half
  const Value tail = select(halves, select(q > 0.0, 1.0 - p, p), x), log_tail = log(tail);
  const Value y = quantile(q, tail, select(halves, log_tail, log_tail - std::numbers::ln2));
  return convert(y * -0.70710678118654752440, given.type());
}

Real erfinv(Real x) {
  const double a = std::abs(x.v);
  if (!(a < 1)) return {a == 1 ? x.v * infinity : nan, x.type};
  if (a < 1e-5) return {x.v * 0.88622692545275801365 * (1 + 0.26179938779914943654 * x.v * x.v), x.type};
  const double y = a < 0.5 ? inverse_of([](long double t) { return -std::erf(t); }, -a)
                           : inverse_of([](long double t) { return std::erfc(t); }, 1 - static_cast<long double>(a));
  return {std::copysign(y, x.v), x.type};
}

Real erfcinv(Real x) {
  if (x.v > 0.5) return erfinv(Real{1 - x.v, x.type});
  if (!(x.v > 0)) return {x.v == 0 ? infinity : nan, x.type};
  return {inverse_of([](long double t) { return std::erfc(t); }, x.v), x.type};
}

Real ndtri(Real p) {
  if (!(p.v > 0 && p.v < 1)) return {p.v == 0 ? -infinity : p.v == 1 ? infinity : nan, p.type};
  const auto above = [](long double t) { return 0.5L * std::erfc(t * 0.70710678118654752440084436L); };
  const double y = inverse_of(above, std::min<long double>(p.v, 1 - static_cast<long double>(p.v)));
  return {p.v < 0.5 ? -y : y, p.type};
}

}  // namespace gradus::scalar
