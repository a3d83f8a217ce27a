/// Rows of what NumPy and keras.ops have beyond TensorFlow's names; their values are also checked against TensorFlow's
/// in tensorflow_values_test.cpp.
#include <cmath>
#include <limits>
#include <numbers>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/numeric.h"
#include "gradus/ops/special.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_numeric {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

Row few(Row row) {
  row.shapes = row.operands.size() == 1
                   ? std::vector<std::vector<Shape>>{{Shape{}}, {Shape{17}}, {Shape{3, 5}}, {Shape{0}}}
                   : std::vector<std::vector<Shape>>{{{3, 1}, {1, 4}}, {{}, {5}}, {{0, 3}, {3}}, {{17}, {17}}};
  return row;
}

Row composite(std::string name, std::function<Tensor(In)> apply, std::vector<Operand> operands,
              std::function<double(Scalars)> reference, std::vector<Slope> slopes = {}) {
  Row row = few(elementwise(std::move(name), std::move(apply), std::move(operands), std::move(reference)));
  row.covers = {};
  row.slopes = std::move(slopes);
  row.tolerance = 16;
  row.refuses.emplace();
  return row;
}

std::vector<Row> functions() {
  Row distance = composite(
      "hypot", [](In in) { return hypot(in[0], in[1]); }, {{-3, 3, 0.2}, {-3, 3, 0.2}},
      [](Scalars x) { return std::hypot(x[0], x[1]); }, {{{0, 0}, {0, 0}}, {{3, 4}, {0.6, 0.8}}, {{0, -2}, {0, -1}}});
  distance.specials = {{0, 0}, {3, -4}, {inf, 1}, {-inf, inf}, {1, nan}, {1e30, 1e30}};
  Row sum = composite(
      "logaddexp2", [](In in) { return logaddexp2(in[0], in[1]); }, {{-3, 3}, {-3, 3}},
      [](Scalars x) { return std::log2(std::exp2(x[0]) + std::exp2(x[1])); }, {{{0, 0}, {0.5, 0.5}}});
  sum.magnitude = 8, sum.specials = {{0, 0}, {1, -1}, {100, 90}, {nan, 0}};
  Row wave = composite(
      "sinc", [](In in) { return sinc(in[0]); }, {{-3, 3}},
      [](Scalars x) {
        const double y = std::numbers::pi * x[0];
        return y == 0 ? 1 : std::sin(y) / y;
      },
      {{{0}, {0}}, {{1}, {-1}}});
  wave.magnitude = 2, wave.specials = {{0.0}, {-0.0}, {0.1}, {-0.16}, {0.5}, {nan}}, wave.slack = 16;
  Row step = composite(
      "heaviside", [](In in) { return heaviside(in[0], in[1]); },
      {{.low = -3, .high = 3, .gap = 0.3, .has_gradient = false}, {}},
      [](Scalars x) {
        return x[0] == 0 ? x[1] : x[0] > 0 ? 1 : x[0] < 0 ? 0 : x[0];
      },
      {{{0, 5}, {0, 1}}, {{1, 5}, {0, 0}}});
  Row larger = composite(
      "fmax", [](In in) { return fmax(in[0], in[1]); }, {{-3, 3}, {-3, 3}},
      [](Scalars x) { return std::fmax(x[0], x[1]); }, {{{1, 1}, {1, 0}}, {{nan, 1}, {0, 1}}, {{1, nan}, {1, 0}}});
  Row smaller = composite(
      "fmin", [](In in) { return fmin(in[0], in[1]); }, {{-3, 3}, {-3, 3}},
      [](Scalars x) { return std::fmin(x[0], x[1]); }, {{{1, 1}, {1, 0}}, {{nan, 1}, {0, 1}}, {{1, nan}, {1, 0}}});
  Row numbers = composite(
      "nan_to_num", [](In in) { return nan_to_num(in[0], {.nan = 3, .posinf = 7, .neginf = -7}); }, {{}},
      [](Scalars x) { return std::isnan(x[0])   ? 3
                             : std::isinf(x[0]) ? std::copysign(7, x[0])
                                                : x[0]; },
      {{{nan}, {0}}, {{inf}, {0}}, {{2}, {1}}});
  Row scaled = composite(
      "ldexp", [](In in) { return ldexp(in[0], in[1]); }, {{-3, 3}, {.low = -9, .high = 9, .dtype = i32}},
      [](Scalars x) { return std::ldexp(x[0], static_cast<int>(x[1])); },
      {{{3, -2}, {0.25, 0}}, {{0, 1000}, {0, 0}, 0}});
  scaled.specials = {{0, 9000}, {-0.0, 3}, {1.5, 7}, {-1.25, -9}, {3, 9000}, {3, -9000}, {inf, -9000}, {nan, 2}};
  scaled.called = "ldexp";
  Row radians = composite(
      "deg2rad", [](In in) { return deg2rad(rad2deg(deg2rad(in[0]))); }, {{-180, 180}},
      [](Scalars x) { return x[0] * std::numbers::pi / 180; });
  radians.tolerance = 8;
  return {
      distance, sum, wave, step, larger, smaller, numbers, radians, scaled,
  };
}

Row plain(std::string name, std::function<Tensor(In)> apply, std::vector<Operand> operands,
          std::vector<std::vector<Shape>> shapes) {
  Row row{.name = std::move(name), .apply = std::move(apply), .operands = std::move(operands)};
  row.shapes = std::move(shapes);
  row.tolerance = 64, row.magnitude = 16;
  return row;
}

std::vector<Row> of_several() {
  Row close = plain(
      "isclose",
      [](In in) { return logical_or(isclose(in[0], in[1]), isclose(in[0], in[1], {.atol = 0.5, .equal_nan = true})); },
      {{}, {}}, {{{17}, {17}}, {{2, 1}, {3}}});
  close.differentiable = false;
  std::vector<Row> rows{
      close,
      plain("truediv", [](In in) { return truediv(in[0], in[1]); }, {{}, {1, 3}}, {{{3, 1}, {4}}}),
      plain("cross", [](In in) { return cross(in[0], in[1]); }, {{}, {}},
            {{{4, 3}, {4, 3}}, {{3}, {3}}, {{0, 3}, {0, 3}}}),
      plain("outer", [](In in) { return outer(in[0], in[1]); }, {{}, {}}, {{{4}, {3}}, {{2, 2}, {}}, {{0}, {3}}}),
      plain("kron", [](In in) { return kron(in[0], in[1]); }, {{}, {}},
            {{{2, 3}, {3, 1}}, {{4}, {2}}, {{0, 2}, {1, 2}}}),
      plain("diff", [](In in) { return diff(in[0], 2, 1); }, {{}}, {{{2, 5}}, {{1, 3, 2}}, {{2, 1}}}),
      plain("trapezoid", [](In in) { return trapezoid(in[0], 0.5, 0); }, {{}}, {{{5, 2}}, {{1}}, {{0, 2}}}),
      plain("average", [](In in) { return average(in[0], in[1], 1); }, {{}, {0.5, 2}},
            {{{2, 4}, {4}}, {{3, 2, 2}, {3, 2, 2}}}),
      plain("quantile", [](In in) { return quantile(in[0], 0.3, {.axis = {-1}}); }, {{}}, {{{2, 5}}, {{7}}, {{3, 1}}}),
      plain("quantile over two axes",
            [](In in) {
              return quantile(in[0], 0.7, {.axis = {0, 2}, .method = QuantileMethod::midpoint, .keepdims = true});
            },
            {{}}, {{{2, 3, 2}}}),
      plain("median", [](In in) { return median(in[0]); }, {{}}, {{{2, 4}}, {{5}}}),
      plain("moveaxis", [](In in) { return moveaxis(in[0], 0, -1); }, {{}}, {{{2, 3, 4}}, {{5}}}),
      plain("swapaxes", [](In in) { return swapaxes(in[0], 0, -1); }, {{}}, {{{2, 3, 4}}, {{5}}}),
  };
  for (const bool increasing : {false, true}) {
    rows.push_back(plain(increasing ? "vander, increasing" : "vander",
                         [=](In in) { return increasing ? vander(in[0], 4, true) : vander(in[0]); }, {{}},
                         {{{5}}, {{1}}, {{0}}}));
    rows.back().dtypes = {f32, f64, i32}, rows.back().called = "vander";
    rows.back().mistakes = {{[] { vander(ones({2, 2})); }, "vander"}, {[] { vander(ones({2}), -1); }, "n >= 0"}};
  }
  rows[1].takes_narrow = false;
  rows[8].mistakes = {{[] { quantile(ones({2, 0}), 0.5, {.axis = {1}}); }, "quantile"},
                      {[] { quantile(ones({2}), 1.5); }, "quantile"}};
  return rows;
}

std::vector<Row> of_integers() {
  Row quotient =
      plain("truncatediv", [](In in) { return truncatediv(in[0], in[1]); }, {{-20, 20}, {1, 4}}, {{{17}, {17}}});
  quotient.dtypes = {i32, i64}, quotient.differentiable = false;
  Row cut = plain("saturate_cast", [](In in) { return saturate_cast(in[0], i8); }, {{-300, 300}}, {{{17}}});
  cut.dtypes = {i32, i64, f32, f64}, cut.differentiable = false, cut.takes_other_integers = false;
  cut.reference = [](Arrays in) {
    return by_element(in, [](Scalars x) { return std::clamp(std::trunc(x[0]), -128.0, 127.0); });
  };
  Row places =
      plain("unravel_index", [](In in) { return unravel_index(in[0], {3, 4, 2}); }, {{0, 23}}, {{{17}}, {{2, 2}}});
  places.dtypes = {i32, i64}, places.differentiable = false, places.takes_other_integers = false;
  return {quotient, cut, places};
}

std::vector<Row> bessel() {
  const auto row = [](std::string name, Tensor (*op)(const Tensor&), int order, bool scaled, double slope_at_0) {
    Row made = few(elementwise(
        std::move(name), [op](In in) { return op(in[0]); }, {{-6, 6}},
        [=](Scalars x) {
          const double a = std::abs(x[0]);
          if (std::isnan(a)) return a;
          const double value =
              std::isinf(a) ? (scaled ? 0 : inf) : std::cyl_bessel_i(order, a) * (scaled ? std::exp(-a) : 1);
          return order == 1 ? std::copysign(value, x[0]) : value;
        }));
    made.covers = {"bessel_i"}, made.called = "bessel_i", made.tolerance = 24, made.slack = 32;
    made.slopes = {{{0}, {slope_at_0}}};
    made.specials = {{0.0}, {1}, {-2.5}, {7.9}, {8.1}, {-30}, {inf}, {nan}};
    return made;
  };
  return {row("bessel_i0", bessel_i0, 0, false, 0), row("bessel_i0e", bessel_i0e, 0, true, 0),
          row("bessel_i1", bessel_i1, 1, false, 0.5), row("bessel_i1e", bessel_i1e, 1, true, 0.5)};
}

const bool registered =
    add_rows(functions()) && add_rows(of_several()) && add_rows(of_integers()) && add_rows(bessel());

}  // namespace
}  // namespace gradus::rows::rows_numeric
