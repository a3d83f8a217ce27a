/// Rows of sums, products, quotients, powers, extrema, signs, of the products that keep zero cotangents zero, and of
/// the gradients of tanh and sigmoid.
#include <cmath>
#include <limits>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/elementwise_parts.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_arithmetic {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();
const std::vector<DType> numbers{f32, f64, i64, i32, u8};

Row with(Row row, auto&& change) {
  change(row);
  return row;
}

double truncated_division(Scalars x) { return x[1] == 0 ? 0 : std::trunc(x[0] / x[1]); }
double floored_division(Scalars x) { return x[1] == 0 ? 0 : std::floor(x[0] / x[1]); }

void split(Row& row, std::string op, std::vector<DType> dtypes) {
  row.covers = {op};
  row.called = std::move(op);
  row.dtypes = std::move(dtypes);
  row.refuses = {boolean};
}
void of_integers(Row& row, std::string op) { split(row, std::move(op), {i64, i32, u8}); }
void of_floats(Row& row) { split(row, row.name, {f32, f64}); }

/// Division differs between floats and integers, so a row each.
std::vector<Row> quotients() {
  const auto divide = [](In in) { return in[0] / in[1]; };
  const auto floor = [](In in) { return floor_divide(in[0], in[1]); };
  const auto modulo = [](In in) { return mod(in[0], in[1]); };
  return {
      with(elementwise("divide", divide, {{}, {-3, 3, 0.5}}, [](Scalars x) { return x[0] / x[1]; }),
           [](Row& row) {
             of_floats(row);
             row.slopes = {{{1, 0}, {0, 0}, 0}, {{0, 0}, {0, 0}, 0}, {{1, 2}, {0.5, -0.25}}};
           }),
      with(elementwise("divide integers", divide, {{-50, 50}, {-5, 5}}, truncated_division),
           [](Row& row) { of_integers(row, "divide"); }),
      with(elementwise("floor_divide", floor, {{-20, 20}, {-3, 3, 0.5}},
                       [](Scalars x) { return std::floor(x[0] / x[1]); }),
           [](Row& row) {
             of_floats(row);
             row.differentiable = false;
             // The quotient is rounded to the dtype before its floor is taken.
             row.reference = {};
             row.dtypes = {f64};
             row.skip_specials = true;
           }),
      with(elementwise("floor_divide integers", floor, {{-50, 50}, {-5, 5}}, floored_division),
           [](Row& row) { of_integers(row, "floor_divide"); }),
      with(elementwise("mod", modulo, {{-20, 20}, {1, 3}},
                       [](Scalars x) {
                         const double r = std::fmod(x[0], x[1]);
                         return r != 0 && (r < 0) != (x[1] < 0) ? r + x[1] : r;
                       }),
           [](Row& row) {
             of_floats(row);
             row.magnitude = 20;
             row.slack = 10;
             row.skip_specials = true;
             row.slopes = {{{7, 2}, {1, -3}}, {{-7, 2}, {1, 4}}};
           }),
      with(elementwise("mod integers", modulo, {{-50, 50}, {-5, 5}},
                       [](Scalars x) { return x[0] - x[1] * floored_division(x); }),
           [](Row& row) { of_integers(row, "mod"); }),
  };
}

std::vector<Row> powers() {
  std::vector<Row> rows{
      with(elementwise(
               "pow", [](In in) { return pow(in[0], in[1]); }, {{0.3, 3}, {-3, 3}},
               [](Scalars x) { return std::pow(x[0], x[1]); }),
           [](Row& row) {
             row.refuses = std::vector<DType>{boolean};  // integers have a row of their own
             row.slopes = {{{0, 0}, {0, 0}},
                           {{0, 0.5}, {0, 0}, 0},
                           {{0, -1}, {0, 0}, 0},
                           {{0, 1}, {1, 0}},
                           {{0, 2}, {0, 0}},
                           {{-2, 3}, {12, 0}},
                           {{4, 0.5}, {0.25, 2 * std::log(4)}},
                           {{0, 0.5}, {inf, 0}, 1.0}};
           }),
      with(elementwise(
               "sum of a tensor to a number and a number to a tensor",
               [](In in) { return pow(in[0], 2.5) + pow(3, in[0]) + pow(in[0], 0.5f); }, {{0.3, 3}},
               [](Scalars x) { return std::pow(x[0], 2.5) + std::pow(3, x[0]) + std::sqrt(x[0]); }),
           [](Row& row) {
             row.covers = {}, row.name = "pow with numbers", row.called = "pow", row.tolerance = 8;
             row.skip_specials = true;
           }),
  };
  for (int exponent : {-3, -1, 0, 1, 2, 3, 7})
    rows.push_back(with(elementwise(
                            text("integer_power ", exponent), [=](In in) { return pow(in[0], exponent); },
                            {{-2, 2, 0.4}}, [=](Scalars x) { return std::pow(x[0], exponent); }),
                        [=](Row& row) {
                          row.covers = {"integer_power"};
                          row.called = "pow";
                          row.tolerance = 8;
                          row.slack = 10;
                          if (exponent >= 0) row.dtypes = numbers;
                          if (exponent >= 0) row.slopes = {{{0}, {exponent == 1 ? 1.0 : 0.0}}};
                          else row.slopes = {{{0}, {0}, 0}};
                          if (exponent == 7) row.specials = {{0}, {1}, {-1}, {10}, {inf}, {-inf}, {nan}};
                        }));
  return rows;
}

std::vector<Row> extrema() {
  const auto larger = [](Scalars x) { return std::isnan(x[0]) ? x[0] : x[0] > x[1] ? x[0] : x[1]; };
  const auto smaller = [](Scalars x) { return std::isnan(x[0]) ? x[0] : x[0] < x[1] ? x[0] : x[1]; };
  return {
      with(elementwise(
               "maximum", [](In in) { return maximum(in[0], in[1]); }, {{-9, 9}, {-9, 9}}, larger),
           [](Row& row) {
             row.dtypes = numbers;
             row.slopes = {
                 {{1, 1}, {1, 0}}, {{0, 0}, {1, 0}}, {{nan, 1}, {0, 1}}, {{1, nan}, {0, 1}}, {{2, 1}, {1, 0}}};
           }),
      with(elementwise(
               "minimum", [](In in) { return minimum(in[0], in[1]); }, {{-9, 9}, {-9, 9}}, smaller),
           [](Row& row) {
             row.dtypes = numbers;
             row.slopes = {
                 {{1, 1}, {1, 0}}, {{0, 0}, {1, 0}}, {{nan, 1}, {0, 1}}, {{1, nan}, {0, 1}}, {{2, 1}, {0, 1}}};
           }),
      with(elementwise(
               "clip_by_value", [](In in) { return clip_by_value(in[0], 1, 3); }, {{-4, 6}},
               [](Scalars x) { return x[0] < 1   ? 1
                                      : x[0] > 3 ? 3
                                                 : x[0]; }),
           [](Row& row) {
             row.dtypes = numbers;
             row.slopes = {{{1}, {1}}, {{3}, {1}}, {{0.5}, {0}}, {{3.5}, {0}}, {{2}, {1}}};
             row.mistakes = {{[] { clip_by_value(ones({2}), 3, 1); }, "low <= high"},
                             {[] { clip_by_value(ones({2}, i32), 0, 1.5); }, "cast"}};
           }),
      {.name = "clip_by_norm",
       .covers = {"clip_by_norm"},
       .apply = [](In in) { return clip_by_norm(in[0], 1.5); },
       .operands = {{}},
       .shapes = {{Shape{7}}, {Shape{3, 5}}, {Shape{}}, {Shape{0}}, {Shape{1000}}},
       .reference =
           [](Arrays in) {
             double square = 0;
             for (double x : in[0].values) square += x * x;
             return by_element(in, [=](Scalars x) { return x[0] * 1.5 / std::max(1.5, std::sqrt(square)); });
           },
       .tolerance = 16,
       .mistakes = {{[] { clip_by_norm(ones({2}), -1); }, "clip_by_norm"},
                    {[] { clip_by_norm(ones({2}, i32), 1); }, "clip_by_norm"}}},
  };
}

/// These are applied to operands of one shape alone.
Row unbroadcast(Row row) {
  std::erase_if(row.shapes, [](const auto& shapes) { return shapes.front() != shapes.back(); });
  return row;
}

std::vector<Row> simple() {
  const auto any = [](Row& row) { row.dtypes = numbers; };
  return {
      with(elementwise(
               "add", [](In in) { return in[0] + in[1]; }, {{-9, 9}, {-9, 9}}, [](Scalars x) { return x[0] + x[1]; }),
           any),
      with(elementwise(
               "subtract", [](In in) { return in[0] - in[1]; }, {{5, 9}, {-5, 5}},
               [](Scalars x) { return x[0] - x[1]; }),
           any),
      with(elementwise(
               "multiply", [](In in) { return in[0] * in[1]; }, {{-9, 9}, {-9, 9}},
               [](Scalars x) { return x[0] * x[1]; }),
           any),
      with(elementwise(
               "negative", [](In in) { return -in[0]; }, {{-9, 9}}, [](Scalars x) { return -x[0]; }),
           [](Row& row) { split(row, row.name, {f32, f64, i64, i32}); }),
      with(elementwise(
               "square", [](In in) { return square(in[0]); }, {{-9, 9}}, [](Scalars x) { return x[0] * x[0]; }),
           any),
      with(elementwise(
               "abs", [](In in) { return abs(in[0]); }, {{-9, 9, 0.1}}, [](Scalars x) { return std::abs(x[0]); }),
           [](Row& row) {
             row.dtypes = numbers;
             row.slopes = {{{0}, {0}}, {{-0.0}, {0}}, {{nan}, {nan}}, {{-3}, {-1}}};
           }),
      with(elementwise(
               "sign", [](In in) { return sign(in[0]); }, {{-9, 9, 0.1}},
               [](Scalars x) { return x[0] > 0   ? 1
                                      : x[0] < 0 ? -1
                                                 : x[0]; }),
           [](Row& row) {
             row.dtypes = numbers;
             row.slopes = {{{0}, {0}}, {{2}, {0}}};
           }),
      with(elementwise(
               "numbers beside tensors",
               [](In in) { return 1 - (2 * in[0] + 3) * 0.5 / 4 - (in[0] - 1) + 6 / (in[0] + 9); }, {{-2, 2}},
               [](Scalars x) { return 1 - (2 * x[0] + 3) * 0.5 / 4 - (x[0] - 1) + 6 / (x[0] + 9); }),
           [](Row& row) {
             row.covers = {};
             row.refuses.emplace();
             row.magnitude = 4;
             row.skip_specials = true;
             row.dtypes = {f32, f64};
             row.mistakes = {{[] { ones({2}, i32) + 0.5; }, "cast"},
                             {[] { ones({2}, u8) * 300; }, "300"},
                             {[] { ones({2}, i32) - 5000000000; }, "5000000000"},
                             {[] { ones({2}) / 1e300; }, "1e+300"}};
           }),
      with(unbroadcast(elementwise(
               "cotangent_times", [](In in) { return cotangent_times(in[0], in[1]); }, {{}, {}},
               [](Scalars x) { return x[0] == 0 ? 0 : x[0] * x[1]; })),
           [](Row& row) { row.slopes = {{{0, inf}, {inf, 0}}, {{0, inf}, {0, 0}, 0}}; }),
      with(unbroadcast(elementwise(
               "cotangent_over", [](In in) { return cotangent_over(in[0], in[1]); }, {{}, {-3, 3, 0.5}},
               [](Scalars x) { return x[0] == 0 ? 0 : x[0] / x[1]; })),
           [](Row& row) { row.slopes = {{{0, 0}, {inf, 0}}, {{0, 0}, {0, 0}, 0}, {{0, 2}, {0.5, 0}}}; }),
      with(unbroadcast(elementwise(
               "product_of_cotangents", [](In in) { return product_of_cotangents(in[0], in[1]); }, {{}, {}},
               [](Scalars x) { return x[0] == 0 || x[1] == 0 ? 0 : x[0] * x[1]; })),
           [](Row& row) { row.slopes = {{{0, inf}, {inf, 0}}, {{0, inf}, {0, 0}, 0}, {{inf, 0}, {0, inf}}}; }),
      with(unbroadcast(elementwise(
               "guard_zero_weight", [](In in) { return guard_zero_weight(in[0], in[1]); },
               {{}, {.has_gradient = false}}, [](Scalars x) { return x[0]; })),
           [](Row& row) { row.slopes = {{{inf, 0}, {0, 0}, nan}, {{2, 0}, {3, 0}, 3}, {{2, 1}, {nan, 0}, nan}}; }),
      with(unbroadcast(elementwise(
               "guarded_cotangent", [](In in) { return guarded_cotangent(in[0], in[1]); },
               {{}, {.has_gradient = false}}, [](Scalars x) { return x[1] == 0 && !std::isfinite(x[0]) ? 0 : x[0]; })),
           [](Row& row) { row.slopes = {{{inf, 0}, {0, 0}}, {{2, 0}, {1, 0}}, {{nan, 1}, {1, 0}}}; }),
      with(unbroadcast(elementwise(
               "minus_largest", [](In in) { return minus_largest(in[0], in[1]); }, {{-3, 0}, {1, 3}},
               [](Scalars x) { return x[0] == x[1] ? 0 : x[0] - x[1]; })),
           [](Row& row) { row.slopes = {{{inf, inf}, {1, -1}}, {{-inf, inf}, {1, -1}}, {{2, 2}, {1, -1}}}; }),
      with(unbroadcast(elementwise(
               "tanh_grad", [](In in) { return tanh_grad(in[0], in[1]); }, {{-0.8, 0.8}, {}},
               [](Scalars x) { return x[1] * (1 - x[0] * x[0]); })),
           [](Row& row) { row.slopes = {{{1, 2}, {-4, 0}}, {{-1, 2}, {4, 0}}, {{0, 2}, {0, 1}}}; }),
      with(elementwise(
               "sigmoid_crossentropy", [](In in) { return sigmoid_crossentropy(in[0], in[1]); }, {{-4, 4}, {0, 1}},
               [](Scalars x) {
                 const double disagrees = x[0] > 0 ? 1 - x[1] : x[1];
                 if (std::isinf(x[0])) return disagrees == 0 ? 0 : inf * disagrees;
                 return std::max(0.0, x[0]) + std::log1p(std::exp(-std::abs(x[0]))) - x[0] * x[1];
               }),
           [](Row& row) {
             row.tolerance = 8, row.magnitude = 8;
             row.slopes = {{{inf, 1}, {0, -inf}},  {{inf, 0}, {1, -inf}}, {{-inf, 0}, {0, inf}},
                           {{-inf, 1}, {-1, inf}}, {{0, 0.5}, {0, 0}},    {{nan, 0}, {nan, nan}}};
           }),
      with(unbroadcast(elementwise(
               "sigmoid_grad", [](In in) { return sigmoid_grad(in[0], in[1]); }, {{0.1, 0.9}, {}},
               [](Scalars x) { return x[1] * x[0] * (1 - x[0]); })),
           [](Row& row) { row.slopes = {{{0, 2}, {2, 0}}, {{1, 2}, {-2, 0}}, {{0.5, 2}, {0, 0.25}}}; }),
  };
}

const bool registered = add_rows(simple()) && add_rows(quotients()) && add_rows(powers()) && add_rows(extrema());

}  // namespace
}  // namespace gradus::rows::rows_arithmetic
