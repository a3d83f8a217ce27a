/// Rows of circular, hyperbolic, gamma and error functions, and of products and quotients with 0 for NaN.
#include <math.h>  // j0 and its like, of POSIX
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include "gradus/scalar/formulas_special.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/special.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_special {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

/// Floats alone, of few shapes: all rows of this file are formulas, which the shapes of other rows test.
Row few(Row row, std::vector<Slope> slopes = {}) {
  row.shapes = row.operands.size() == 1
                   ? std::vector<std::vector<Shape>>{{Shape{}}, {Shape{17}}, {Shape{3, 5}}, {Shape{0}}}
                   : std::vector<std::vector<Shape>>{{{3, 1}, {1, 4}}, {{}, {5}}, {{0, 3}, {3}}, {{17}, {17}}};
  row.slopes = std::move(slopes);
  return row;
}

Row unary(std::string name, Tensor (*op)(const Tensor&), Operand domain, double (*reference)(double),
          std::vector<Slope> slopes = {}) {
  std::function<double(Scalars)> f;
  if (reference) f = [reference](Scalars x) { return reference(x[0]); };
  return few(elementwise(std::move(name), [op](In in) { return op(in[0]); }, {domain}, f), std::move(slopes));
}

template <class In2>
Row binary(std::string name, Tensor (*op)(const In2&, const In2&), std::vector<Operand> domains,
           double (*reference)(double, double), std::vector<Slope> slopes = {}) {
  return few(elementwise(
                 std::move(name), [op](In in) { return op(in[0], in[1]); }, std::move(domains),
                 [reference](Scalars x) { return reference(x[0], x[1]); }),
             std::move(slopes));
}

/// The reference is off by `magnitude` epsilons where terms cancel.
Row cancelling(Row row, double magnitude) {
  row.magnitude = magnitude;
  return row;
}

/// Of a function that is made of other ops.
Row composite(Row row) {
  row.covers = {};
  return row;
}

std::vector<Row> circular() {
  return {
      unary("acos", acos, {-0.9, 0.9}, std::acos,
            {{{1}, {0}, 0}, {{-1}, {-inf}}, {{1.5}, {0}, 0}, {{0}, {-1}}, {{1.5}, {nan}}}),
      unary("asin", asin, {-0.9, 0.9}, std::asin, {{{1}, {0}, 0}, {{-1}, {inf}}, {{-1.5}, {0}, 0}, {{0}, {1}}}),
      unary("atan", atan, {-3, 3}, std::atan, {{{0}, {1}}, {{inf}, {0}}, {{-inf}, {0}}, {{1}, {0.5}}}),
      binary("atan2", atan2, {{-3, 3, 0.3}, {-3, 3, 0.3}}, std::atan2,
             {{{0, 0}, {0, 0}}, {{0, 2}, {0.5, 0}}, {{2, 0}, {0, -0.5}}, {{0, -2}, {-0.5, 0}}}),
      unary("sinh", sinh, {-3, 3}, std::sinh, {{{0}, {1}}, {{1000}, {inf}}}),
      unary("cosh", cosh, {-3, 3}, std::cosh, {{{0}, {0}}, {{-1000}, {-inf}}}),
      unary("asinh", asinh, {-3, 3}, std::asinh, {{{0}, {1}}, {{-inf}, {0}}}),
      unary("acosh", acosh, {1.2, 5}, std::acosh, {{{1}, {0}, 0}, {{1}, {inf}}, {{0.5}, {0}, 0}}),
      unary("atanh", atanh, {-0.9, 0.9}, std::atanh, {{{1}, {0}, 0}, {{-1}, {inf}}, {{0}, {1}}}),
  };
}

double logaddexp_of(double a, double b) {
  if (a == b) return a + std::numbers::ln2;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

std::vector<Row> exponential() {
  Row sum = cancelling(binary("logaddexp", logaddexp, {{-3, 3}, {-3, 3}}, logaddexp_of,
                              {{{0, 0}, {0.5, 0.5}},
                               {{-inf, 0}, {0, 1}},
                               {{-inf, -inf}, {0.5, 0.5}},
                               {{inf, inf}, {0.5, 0.5}},
                               {{1000, -1000}, {1, 0}}}),
                       2);
  sum.specials = {{0, 0},     {1, -1},      {100, -100}, {inf, 0}, {-inf, 1},
                  {inf, inf}, {-inf, -inf}, {inf, -inf}, {nan, 0}, {0, nan}};
  return {
      unary("exp2", exp2, {-3, 3}, std::exp2, {{{1}, {2 * std::numbers::ln2}}, {{-inf}, {0}}}),
      unary("log2", log2, {0.2, 5}, std::log2, {{{0}, {0}, 0}, {{0}, {inf}}, {{-1}, {0}, 0}}),
      unary("log10", log10, {0.2, 5}, std::log10, {{{0}, {0}, 0}, {{0}, {inf}}, {{-1}, {0}, 0}}),
      unary("cbrt", cbrt, {-5, 5, 0.3}, std::cbrt, {{{0}, {0}, 0}, {{0}, {inf}}, {{-8}, {1.0 / 12}}}),
      std::move(sum),
  };
}

std::vector<Row> gamma_and_error() {
  std::vector<Row> rows{
      unary("erfc", erfc, {-3, 3}, std::erfc, {{{0}, {-2 * std::numbers::inv_sqrtpi}}, {{inf}, {0}}, {{-100}, {0}}}),
      unary("erfinv", erfinv, {-0.9, 0.9}, nullptr, {{{1}, {0}, 0}, {{-1}, {inf}}, {{2}, {0}, 0}}),
      unary("ndtri", ndtri, {0.05, 0.95}, nullptr,
            {{{0}, {0}, 0}, {{1}, {inf}}, {{0.5}, {std::sqrt(2 * std::numbers::pi)}}}),
      unary("erfcinv", erfcinv, {0.1, 1.9}, nullptr, {{{0}, {0}, 0}, {{2}, {-inf}}}),
      cancelling(unary("lgamma", lgamma, {0.3, 6}, std::lgamma, {{{0}, {0}, 0}, {{-1}, {0}, 0}}), 2),
      cancelling(unary("lgamma of negative numbers", lgamma, {-0.8, -0.2}, std::lgamma), 4),
      cancelling(unary("digamma", digamma, {0.3, 6}, nullptr, {{{0}, {0}, 0}, {{-1}, {0}, 0}}), 4),
      cancelling(unary("digamma of negative numbers", digamma, {-0.8, -0.2}, nullptr), 4),
  };
  rows[5].covers = {"lgamma"}, rows[5].called = "lgamma";
  rows[7].covers = {"digamma"}, rows[7].called = "digamma";
  for (Row& row : rows) row.tolerance = 12;
  rows[5].shapes = rows[7].shapes = {{{17}}, {{3, 2}}};
  for (int order : {1, 2}) {
    Row row =
        few(elementwise(
                text("polygamma ", order), [order](In in) { return polygamma(order, in[0]); }, {{0.6, 4}}, nullptr),
            {{{0}, {0}, 0}});
    row.covers = {"polygamma"}, row.called = "polygamma", row.tolerance = 32, row.slack = 40;
    row.specials = {{0}, {1}, {0.5}, {-0.5}, {-2.5}, {100}, {-1}, {inf}, {nan}};
    row.mistakes = {{[] { polygamma(-1, ones({2})); }, "order"}, {[] { polygamma(61, ones({2})); }, "order"}};
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Of one order of a family of Bessel functions, whose values away from 0 are exact to `magnitude` epsilons.
Row bessel(std::string family, Row row, double magnitude) {
  row.covers = {family}, row.called = std::move(family), row.magnitude = magnitude;
  row.tolerance = 24, row.slack = 32;
  return row;
}

double bessel_k_of(int order, bool scaled, double x) {
  if (!(x > 0)) return std::isnan(x) ? x : inf;
  return std::isinf(x) ? 0 : std::cyl_bessel_k(order, x) * (scaled ? std::exp(x) : 1);
}

std::vector<Row> bessel() {
  return {
      bessel("bessel_j", unary("bessel_j0", bessel_j0, {-9, 9}, ::j0, {{{0}, {0}}, {{inf}, {0}}}), 1),
      bessel("bessel_j", unary("bessel_j1", bessel_j1, {-9, 9}, ::j1, {{{0}, {0.5}}, {{-inf}, {0}}}), 1),
      bessel("bessel_y",
             unary("bessel_y0", bessel_y0, {0.4, 9}, [](double x) { return x <= 0 ? -inf : ::y0(x); },
                   {{{0}, {inf}}, {{0}, {0}, 0}, {{inf}, {0}}}),
             1),
      bessel("bessel_y",
             unary("bessel_y1", bessel_y1, {0.4, 9}, [](double x) { return x <= 0 ? -inf : ::y1(x); },
                   {{{0}, {inf}}, {{0}, {0}, 0}, {{inf}, {0}}}),
             1),
      bessel("bessel_k",
             unary("bessel_k0", bessel_k0, {0.4, 6}, [](double x) { return bessel_k_of(0, false, x); },
                   {{{0}, {-inf}}, {{0}, {0}, 0}, {{inf}, {0}}}),
             0),
      bessel("bessel_k",
             unary("bessel_k0e", bessel_k0e, {0.4, 6}, [](double x) { return bessel_k_of(0, true, x); },
                   {{{0}, {-inf}}, {{0}, {0}, 0}, {{inf}, {0}}}),
             0),
      bessel("bessel_k",
             unary("bessel_k1", bessel_k1, {0.4, 6}, [](double x) { return bessel_k_of(1, false, x); },
                   {{{0}, {-inf}}, {{0}, {0}, 0}, {{inf}, {0}}}),
             0),
      bessel("bessel_k",
             unary("bessel_k1e", bessel_k1e, {0.4, 6}, [](double x) { return bessel_k_of(1, true, x); },
                   {{{0}, {-inf}}, {{0}, {0}, 0}, {{inf}, {0}}}),
             0),
  };
}

std::vector<Row> integrals() {
  return {
      cancelling(unary("fresnel_cos", fresnel_cos, {-3, 3}, nullptr, {{{0}, {1}}}), 1),
      cancelling(unary("fresnel_sin", fresnel_sin, {-3, 3}, nullptr, {{{0}, {0}}, {{1}, {1}}}), 1),
      cancelling(unary("expint", expint, {0.3, 9}, nullptr, {{{0}, {inf}}, {{0}, {0}, 0}, {{1}, {std::numbers::e}}}),
                 2),
      cancelling(unary("spence", spence, {0.1, 4}, nullptr,
                       {{{1}, {-1}}, {{0}, {-inf}}, {{0}, {0}, 0}, {{0.5}, {-2 * std::numbers::ln2}}, {{inf}, {0}}}),
                 1),
      unary("dawsn", dawsn, {-6, 6}, nullptr, {{{0}, {1}}, {{inf}, {0}}, {{-inf}, {0}}}),
  };
}

std::vector<Row> without_nan() {
  std::vector<Row> rows{
      binary("xlogy", xlogy, {{-3, 3}, {0.3, 3}}, [](double x, double y) { return x == 0 ? 0 : x * std::log(y); },
             {{{0, 0}, {0, 0}}, {{2, 1}, {0, 2}}, {{0, -1}, {0, 0}}, {{0, 2}, {0, 0}}}),
      binary("xlog1py", xlog1py, {{-3, 3}, {-0.6, 3}},
             [](double x, double y) { return x == 0 ? 0 : x * std::log1p(y); }, {{{0, -1}, {0, 0}}, {{2, 0}, {0, 2}}}),
      binary("xdivy", xdivy, {{-3, 3}, {-3, 3, 0.4}}, [](double x, double y) { return x == 0 ? 0 : x / y; },
             {{{0, 0}, {1, 0}}, {{3, 2}, {0.5, -0.75}}}),
      binary("divide_no_nan", divide_no_nan, {{-3, 3}, {-3, 3, 0.4}},
             [](double x, double y) { return y == 0 ? 0 : x / y; }, {{{5, 0}, {0, 0}}, {{3, 2}, {0.5, -0.75}}}),
      binary("multiply_no_nan", multiply_no_nan, {{-3, 3}, {-3, 3}},
             [](double x, double y) { return y == 0 ? 0 : x * y; },
             {{{inf, 0}, {0, inf}}, {{3, 2}, {2, 3}}, {{nan, 0}, {0, 0}, 0}}),
      unary("reciprocal_no_nan", reciprocal_no_nan, {-3, 3, 0.5}, [](double x) { return x == 0 ? 0 : 1 / x; },
            {{{0}, {0}}, {{2}, {-0.25}}}),
      unary("reciprocal", reciprocal, {-3, 3, 0.5}, [](double x) { return 1 / x; }, {{{0}, {0}, 0}, {{2}, {-0.25}}}),
  };
  for (Row& row : rows) row = composite(std::move(row));
  return rows;
}

const std::vector<DType> numbers{f32, f64, i64, i32, u8};

std::vector<Row> others() {
  Row difference = binary("squared_difference", squared_difference, {{5, 9}, {-5, 5}},
                          [](double a, double b) { return (a - b) * (a - b); }, {{{3, 1}, {4, -4}}});
  difference.dtypes = numbers, difference.refuses = {boolean};
  Row remainder = binary("truncatemod", truncatemod, {{-20, 20}, {1, 3}},
                         [](double a, double b) { return std::fmod(a, b); }, {{{7, 2}, {1, -3}}, {{-7, 2}, {1, 3}}});
  remainder.slack = 10, remainder.refuses = {boolean};
  Row of_integers = binary("truncatemod of integers", truncatemod, {{-50, 50}, {-5, 5}},
                           [](double a, double b) { return b == 0 ? a : std::fmod(a, b); });
  of_integers.dtypes = {i64, i32, u8}, of_integers.refuses = {boolean};
  of_integers.covers = {"truncatemod"}, of_integers.called = "truncatemod";
  Row power = binary("integer_pow", integer_pow, {{-4, 4}, {-3, 7}}, [](double a, double b) {
    return b >= 0 ? std::pow(a, b) : std::abs(a) == 1 ? std::pow(a, b) : 0;
  });
  power.dtypes = {i64, i32}, power.refuses = {f32, f64, boolean};
  Row operator_power = few(elementwise(
      "pow of integers", [](In in) { return pow(in[0], in[1]); }, {{-4, 4}, {0, 7}},
      [](Scalars x) { return std::pow(x[0], x[1]); }));
  operator_power.dtypes = {i64, i32}, operator_power.refuses = {boolean}, operator_power.skip_specials = true;
  operator_power.covers = {"integer_pow"}, operator_power.called = "pow";
  Row divisor = binary("gcd", gcd, {{-99, 99}, {-99, 99}}, [](double a, double b) {
    return static_cast<double>(std::gcd(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
  });
  divisor.dtypes = {i64, i32, u8}, divisor.refuses = {f32, f64, boolean};
  Row multiple = composite(binary("lcm", lcm, {{-11, 11}, {-11, 11}}, [](double a, double b) {
    return static_cast<double>(std::lcm(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
  }));
  multiple.dtypes = {i64, i32, u8}, multiple.refuses = {f32, f64, boolean}, multiple.called = "gcd";
  Row of_sign = binary("copysign", copysign, {{-3, 3, 0.3}, {-3, 3, 0.3}},
                       [](double x, double sign) { return std::copysign(x, sign); },
                       {{{2, -1}, {-1, 0}}, {{-2, -1}, {1, 0}}, {{0, -0.0}, {-1, 0}}, {{3, inf}, {1, 0}}});
  of_sign.specials = {{0, -1}, {1, -0.0}, {-1, 0}, {-2.5, inf}, {inf, -inf}, {100, -100}, {nan, 1}};
  Row infinite = unary(
      "is_inf", [](const Tensor& x) { return is_inf(x); }, {-3, 3}, [](double x) { return std::isinf(x) ? 1.0 : 0.0; });
  infinite.differentiable = false;
  Row one_sign = unary(
      "is_inf of one sign",
      [](const Tensor& x) {
        return logical_or(is_inf(x, {.detect_negative = false}),
                          logical_and(is_inf(x, {.detect_positive = false}),
                                      is_inf(x, {.detect_negative = false, .detect_positive = false})));
      },
      {-3, 3}, [](double x) { return x == inf ? 1.0 : 0.0; });
  one_sign.differentiable = false, one_sign.covers = {"is_inf"}, one_sign.called = "is_inf";
  return {
      std::move(difference),     unary("trunc", trunc, {-9, 9}, std::trunc, {{{0.25}, {0}}}),
      std::move(remainder),      std::move(of_integers),
      std::move(power),          std::move(infinite),
      std::move(operator_power), std::move(one_sign),
      std::move(divisor),        std::move(multiple),
      std::move(of_sign),
  };
}

/// Along an axis, or of a list.
std::vector<Row> of_several() {
  Row beta{.name = "lbeta", .apply = [](In in) { return lbeta(in[0]); }, .operands = {{0.5, 3}}};
  beta.shapes = {{Shape{3}}, {Shape{2, 4}}, {Shape{3, 1}}};
  beta.reference = [](Arrays in) {
    const std::int64_t n = in[0].shape.back();
    Array out{in[0].shape, {}};
    out.shape.erase(-1);
    for (std::int64_t o = 0; o < out.shape.size(); ++o) {
      double sum = 0, logs = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        const double x = in[0].values[static_cast<std::size_t>(o * n + k)];
        sum += x, logs += std::lgamma(x);
      }
      out.values.push_back(logs - std::lgamma(sum));
    }
    return out;
  };
  beta.magnitude = 16;
  beta.mistakes = {{[] { lbeta(ones({})); }, "lbeta"}, {[] { lbeta(ones({2}, i32)); }, "lbeta"}};
  Row polynomial = few(elementwise(
      "polyval", [](In in) { return polyval({in[1], full({}, 2, in[1].dtype()), in[1]}, in[0]); }, {{}, {}},
      [](Scalars x) { return x[1] * x[0] * x[0] + 2 * x[0] + x[1]; }));
  polynomial.covers = {}, polynomial.called = "multiply", polynomial.magnitude = 8, polynomial.skip_specials = true;
  polynomial.refuses.emplace();
  Row sum = few(elementwise(
      "add_n", [](In in) { return add_n({in[0], in[0], in[0]}); }, {{}}, [](Scalars x) { return 3 * x[0]; }));
  sum.covers = {}, sum.refuses.emplace();
  sum.mistakes = {{[] { add_n({}); }, "add_n"}, {[] { add_n({ones({2}), ones({3})}); }, "add_n"}};
  return {std::move(beta), std::move(polynomial), std::move(sum)};
}

const bool registered = add_rows(circular()) && add_rows(exponential()) && add_rows(gamma_and_error()) &&
                        add_rows(bessel()) && add_rows(integrals()) && add_rows(without_nan()) && add_rows(others()) &&
                        add_rows(of_several());

}  // namespace
}  // namespace gradus::rows::rows_special
