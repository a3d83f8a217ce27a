/// Rows of exponentials, logarithms, roots, circular functions, rounding and activations.
#include <cmath>
#include <limits>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_functions {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

/// A row of one operand.
Row unary(std::string name, Tensor (*op)(const Tensor&), Operand domain, double (*reference)(double),
          std::vector<Slope> slopes = {}) {
  Row row = elementwise(
      std::move(name), [op](In in) { return op(in[0]); }, {domain}, [reference](Scalars x) { return reference(x[0]); });
  row.slopes = std::move(slopes);
  return row;
}

/// The reference is off by `magnitude` epsilons where terms cancel.
Row cancelling(Row row, double magnitude) {
  row.magnitude = magnitude;
  return row;
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::sqrt(2)); }

std::vector<Row> functions() {
  return {
      unary("exp", exp, {-3, 3}, std::exp),
      unary("expm1", expm1, {-3, 3}, std::expm1),
      unary("log", log, {0.2, 5}, std::log, {{{0}, {0}, 0}, {{0}, {inf}}, {{-1}, {0}, 0}, {{4}, {0.25}}}),
      unary("log1p", log1p, {-0.5, 5}, std::log1p, {{{-1}, {0}, 0}, {{1}, {0.5}}}),
      unary("sqrt", sqrt, {0.2, 5}, std::sqrt, {{{0}, {0}, 0}, {{0}, {inf}}, {{-1}, {0}, 0}, {{4}, {0.25}}}),
      unary("rsqrt", rsqrt, {0.2, 5}, [](double x) { return 1 / std::sqrt(x); },
            {{{0}, {0}, 0}, {{-1}, {0}, 0}, {{4}, {-1.0 / 16}}}),
      unary("sin", sin, {-10, 10}, std::sin, {{{0}, {1}}}),
      unary("cos", cos, {-10, 10}, std::cos, {{{0}, {0}}}),
      unary("tan", tan, {-1.2, 1.2}, std::tan, {{{0}, {1}}}),
      unary("erf", erf, {-3, 3}, std::erf, {{{100}, {0}}, {{-inf}, {0}}}),
      unary("floor", floor, {-9, 9}, std::floor, {{{0.25}, {0}}}),
      unary("ceil", ceil, {-9, 9}, std::ceil, {{{0.25}, {0}}}),
      unary("round", round, {-9, 9}, std::nearbyint, {{{0.25}, {0}}}),
  };
}

std::vector<Row> activations() {
  const double scale = 1.0507009873554805, alpha = 1.6732632423543772;
  Row leaky = elementwise(
      "leaky_relu", [](In in) { return leaky_relu(in[0], 0.25); }, {{-3, 3, 0.1}},
      [](Scalars x) { return x[0] > 0 ? x[0] : 0.25 * x[0]; });
  leaky.slopes = {{{0}, {0.25}}, {{-1}, {0.25}}, {{2}, {1}}};
  Row gelu_row = cancelling(unary("gelu", gelu, {-4, 4}, [](double x) { return x * normal_distribution(x); },
                                  {{{0}, {0.5}}, {{-100}, {0}}, {{100}, {1}}}),
                            4);
  gelu_row.specials = {{0}, {-0.0}, {1}, {-1}, {100}, {-100}, {1e30}, {inf}, {nan}};
  Row silu_row = unary("silu", silu, {-4, 4}, [](double x) { return x * sigmoid_of(x); },
                       {{{0}, {0.5}}, {{-1000}, {0}}, {{1000}, {1}}});
  silu_row.specials = {{0}, {-0.0}, {1}, {-1}, {100}, {-1000}, {1e30}, {inf}, {nan}};
  return {
      unary("tanh", tanh, {-3, 3}, std::tanh, {{{0}, {1}}, {{1000}, {0}}, {{-inf}, {0}}}),
      unary("sigmoid", sigmoid, {-5, 5}, sigmoid_of, {{{0}, {0.25}}, {{-1000}, {0}}, {{1000}, {0}}}),
      unary("relu", relu, {-3, 3, 0.1}, [](double x) { return x < 0 ? 0 : x; },
            {{{0}, {0}}, {{-0.0}, {0}}, {{nan}, {0}}, {{2}, {1}}, {{-2}, {0}}}),
      unary("softplus", softplus, {-5, 5},
            [](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); },
            {{{0}, {0.5}}, {{1000}, {1}}, {{-1000}, {0}}}),
      unary("elu", elu, {-3, 3, 0.1}, [](double x) { return x > 0 ? x : std::expm1(x); },
            {{{0}, {1}}, {{1000}, {1}}, {{-1000}, {0}}}),
      unary("selu", selu, {-3, 3, 0.1},
            [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); },
            {{{0}, {scale}}, {{1000}, {scale}}, {{-1000}, {0}}, {{-1}, {scale * alpha * std::exp(-1)}}}),
      std::move(leaky),
      std::move(gelu_row),
      std::move(silu_row),
  };
}

const bool registered = add_rows(functions()) && add_rows(activations());

}  // namespace
}  // namespace gradus::rows::rows_functions
