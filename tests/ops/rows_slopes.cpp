/// Rows for the parts of the gradients of activations and special functions.
#include <cmath>
#include <limits>
#include <numbers>
#include "gradus/ops/slopes.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_slopes {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

Row part(std::string name, Tensor (*op)(const Tensor&), double (*reference)(double), std::vector<Slope> slopes) {
  Row row = elementwise(
      std::move(name), [op](In in) { return op(in[0]); }, {{-3, 3}},
      [reference](Scalars x) { return reference(x[0]); });
  row.shapes = {{Shape{}}, {Shape{17}}, {Shape{3, 5}}, {Shape{0}}};
  row.slopes = std::move(slopes);
  row.magnitude = 4;
  row.specials = {{0}, {-0.0}, {1}, {-1}, {100}, {-100}, {inf}, {-inf}, {nan}};
  return row;
}

double root_of(double x) { return std::sqrt(x * x + 4); }
double slope_of_cos(double x) { return std::isinf(x) ? nan : std::cos(std::numbers::pi / 2 * std::fmod(x * x, 4.0)); }

std::vector<Row> parts() {
  Row dawson = part("dawsn_slope", dawsn_slope, nullptr, {{{0}, {0}}});
  dawson.reference = {};
  Row gate = elementwise(
      "tanh_gate", [](In in) { return tanh_gate(in[0], in[1]); }, {{-3, 3}, {-3, 3}},
      [](Scalars x) { return x[0] / 2 * (1 + std::tanh(x[1])); });
  std::erase_if(gate.shapes, [](const std::vector<Shape>& shapes) { return shapes[0] != shapes[1]; });
  gate.magnitude = 4;
  gate.specials = {{0, 0}, {1, -1}, {-100, -100}, {100, 100}, {inf, inf}, {nan, 1}, {1, nan}};
  gate.slopes = {{{1, 0}, {0.5, 0.5}}};
  return {
      part("twice_normal_cdf", twice_normal_cdf, [](double x) { return std::erfc(-x / std::numbers::sqrt2); },
           {{{-inf}, {0}}, {{inf}, {0}}}),
      part("erf_slope", erf_slope, [](double x) { return 2 * std::numbers::inv_sqrtpi * std::exp(-x * x / 2); },
           {{{0}, {0}}, {{inf}, {0}}}),
      std::move(gate),
      part("one_plus_tanh", one_plus_tanh, [](double x) { return 1 + std::tanh(x); },
           {{{0}, {1}}, {{inf}, {0}}, {{-inf}, {0}}}),
      part("one_plus_tanh_slope", one_plus_tanh_slope, [](double x) { return std::pow(std::cosh(x), -2); },
           {{{0}, {0}}, {{inf}, {0}}}),
      part("softsign_slope", softsign_slope, [](double x) { return 1 / ((1 + std::abs(x)) * (1 + std::abs(x))); },
           {{{1}, {-0.25}}, {{-1}, {0.25}}}),
      part("root_of_square", [](const Tensor& x) { return root_of_square(x, 4); }, root_of,
           {{{0}, {0}}, {{inf}, {1}}, {{-inf}, {-1}}}),
      part("fresnel_slope", [](const Tensor& x) { return fresnel_slope(x, false); }, slope_of_cos, {{{0}, {0}}}),
      std::move(dawson),
  };
}

const bool registered = add_rows(parts());

}  // namespace
}  // namespace gradus::rows::rows_slopes
