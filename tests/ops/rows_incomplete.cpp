/// Rows of incomplete gamma and beta functions and of Hurwitz's zeta; the oracle integrates and sums.
#include <cmath>
#include <limits>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/incomplete.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_incomplete {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

Row of_floats(std::string name, std::function<Tensor(In)> apply, std::vector<Operand> operands,
              std::vector<std::vector<double>> specials, std::function<double(Scalars)> reference = {}) {
  const std::size_t count = operands.size();
  Row row = elementwise(std::move(name), std::move(apply), std::move(operands), std::move(reference));
  row.shapes = count == 2 ? std::vector<std::vector<Shape>>{{{3, 1}, {1, 4}}, {{}, {5}}, {{0, 3}, {3}}, {{17}, {17}}}
                          : std::vector<std::vector<Shape>>{{{3, 1}, {4}, {}}, {{5}, {5}, {5}}, {{0}, {1}, {0}}};
  row.specials = std::move(specials);
  row.tolerance = 64;
  row.slack = 10;
  return row;
}

/// At halves and whole numbers P is elementary.
double lower_gamma(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return nan;
  double p = a == std::floor(a) ? -std::expm1(-x) : std::erf(std::sqrt(x));
  for (double at = a == std::floor(a) ? 1 : 0.5; at < a; ++at)
    p -= std::exp(at * std::log(x) - x - std::lgamma(at + 1));
  return p;
}

std::vector<Row> gamma() {
  const std::vector<std::vector<double>> edges{{1, 0},   {0.5, 0}, {2, inf}, {0, 1},     {-1, 1}, {1, -1},
                                               {inf, 1}, {nan, 1}, {1, nan}, {0.5, 1e4}, {3, 2.5}};
  Row lower = of_floats("igamma", [](In in) { return igamma(in[0], in[1]); }, {{0.4, 5}, {0.3, 8}}, edges);
  lower.slopes = {{{1, 0}, {0, 1}}, {{1, 0.5}, {-0.48945757610237842, std::exp(-0.5)}}, {{-1, 1}, {0, 0}, 0}};
  lower.mistakes = {{[] { igamma(ones({2}), ones({2}, f64)); }, "dtypes differ"}};
  Row upper = of_floats("igammac", [](In in) { return igammac(in[0], in[1]); }, {{0.4, 5}, {0.3, 8}}, edges);
  upper.covers = {"igamma"};
  upper.slopes = {{{1, 0}, {0, -1}}, {{-1, 1}, {0, 0}, 0}};
  // Through the elementary values, on a grid of shapes.
  Row whole = of_floats(
      "igamma at halves", [](In in) { return igamma(ceil(in[0] * 2) / 2, in[1]); }, {{0.1, 4}, {0.3, 12}}, {},
      [](Scalars x) { return lower_gamma(std::ceil(x[0] * 2) / 2, x[1]); });
  whole.covers = {"igamma"}, whole.skip_specials = true, whole.differentiable = true, whole.magnitude = 1;
  whole.smooth = false, whole.elementwise = false;
  return {std::move(lower), std::move(upper), std::move(whole)};
}

std::vector<Row> beta() {
  Row row = of_floats("betainc", [](In in) { return betainc(in[0], in[1], in[2]); }, {{0.5, 4}, {0.5, 4}, {0.1, 0.9}},
                      {{1, 1, 0},
                       {1, 1, 1},
                       {2, 3, 0.5},
                       {0, 1, 0.5},
                       {1, -1, 0.5},
                       {1, 1, 1.5},
                       {1, 1, -0.5},
                       {nan, 1, 0.5},
                       {1, nan, 0.5},
                       {1, 1, nan},
                       {inf, 1, 0.5},
                       {1, inf, 0.5},
                       {0.5, 0.5, 0.25}});
  row.slopes = {{{1, 1, 0.25}, {0.25 * std::log(0.25), -0.75 * std::log(0.75), 1}}, {{1, 1, 2}, {0, 0, 0}, 0}};
  row.mistakes = {{[] { betainc(ones({2}), ones({2}), ones({3})); }, "betainc"},
                  {[] { betainc(ones({2}), ones({2}, f64), ones({2})); }, "dtypes differ"}};
  return {std::move(row)};
}

std::vector<Row> zeta_and_polygamma() {
  Row row = of_floats("zeta", [](In in) { return zeta(in[0], in[1]); }, {{1.5, 5}, {0.4, 6}},
                      {{2, 1},
                       {1, 2},
                       {0.5, 2},
                       {3, inf},
                       {2, -1},
                       {3, -1},
                       {2, -0.5},
                       {3, -2.5},
                       {2.5, -0.5},
                       {nan, 1},
                       {2, nan},
                       {inf, 2},
                       {inf, 1},
                       {50, 3}});
  const double pi = std::acos(-1.0);
  row.slopes = {{{2, 1}, {-0.93754825431584376, -2 * 1.2020569031595942}}, {{0.5, 1}, {0, 0}, 0}};
  row.magnitude = pi;
  Row order = of_floats("polygamma of a tensor", [](In in) { return polygamma(in[0], in[1]); },
                        {{.low = 2, .high = 2, .has_gradient = false}, {0.6, 4}},
                        {{0, 1}, {1, 1}, {2, 0.5}, {1, -0.5}, {3, -1}, {2, -1}, {0.5, 1}, {-1, 1}, {1, nan}}, {});
  order.covers = {"zeta"}, order.magnitude = 8;
  order.called = "polygamma";
  return {std::move(row), std::move(order)};
}

const bool registered = add_rows(gamma()) && add_rows(beta()) && add_rows(zeta_and_polygamma());

}  // namespace
}  // namespace gradus::rows::rows_incomplete
