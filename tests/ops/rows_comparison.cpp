/// Rows of comparisons, logic, choice, casts and constants.
#include <cmath>
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_comparison {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

Row with(Row row, auto&& change) {
  change(row);
  return row;
}

/// Operands from few values, so that there are ties.
Row comparison(std::string name, std::function<Tensor(In)> apply, std::function<bool(double, double)> f,
               std::string covers, bool of_booleans = false) {
  Row row = elementwise(std::move(name), std::move(apply), {{-3, 3}, {-3, 3}},
                        [f](Scalars x) { return static_cast<double>(f(x[0], x[1])); });
  row.covers = {std::move(covers)};
  row.differentiable = false;
  row.dtypes = {f32, f64, i64, i32, u8};
  if (of_booleans) row.dtypes.push_back(boolean);
  return row;
}

std::vector<Row> comparisons() {
  return {
      comparison(
          "less", [](In in) { return in[0] < in[1]; }, std::less<>(), "less"),
      comparison(
          "greater", [](In in) { return in[0] > in[1]; }, std::greater<>(), "less"),
      comparison(
          "less_equal", [](In in) { return in[0] <= in[1]; }, std::less_equal<>(), "less_equal"),
      comparison(
          "greater_equal", [](In in) { return in[0] >= in[1]; }, std::greater_equal<>(), "less_equal"),
      comparison(
          "equal", [](In in) { return equal(in[0], in[1]); }, std::equal_to<>(), "equal", true),
      comparison(
          "not_equal", [](In in) { return not_equal(in[0], in[1]); }, std::not_equal_to<>(), "not_equal", true),
  };
}

Row logical(std::string name, std::function<Tensor(In)> apply, std::size_t operands, std::function<double(Scalars)> f) {
  return with(elementwise(std::move(name), std::move(apply), std::vector<Operand>(operands, {-1, 1}), std::move(f)),
              [](Row& row) { row.dtypes = {boolean}, row.differentiable = false; });
}

std::vector<Row> logic() {
  return {
      logical(
          "logical_and", [](In in) { return logical_and(in[0], in[1]); }, 2, [](Scalars x) { return x[0] * x[1]; }),
      logical(
          "logical_or", [](In in) { return logical_or(in[0], in[1]); }, 2,
          [](Scalars x) { return std::max(x[0], x[1]); }),
      logical(
          "logical_xor", [](In in) { return logical_xor(in[0], in[1]); }, 2,
          [](Scalars x) { return static_cast<double>(x[0] != x[1]); }),
      logical(
          "logical_not", [](In in) { return logical_not(in[0]); }, 1, [](Scalars x) { return 1 - x[0]; }),
  };
}

std::vector<Row> tests_of_floats() {
  const auto discrete = [](Row& row) { row.differentiable = false; };
  return {
      with(elementwise(
               "is_finite", [](In in) { return is_finite(in[0]); }, {{}},
               [](Scalars x) { return static_cast<double>(std::isfinite(x[0])); }),
           discrete),
      with(elementwise(
               "is_nan", [](In in) { return is_nan(in[0]); }, {{}},
               [](Scalars x) { return static_cast<double>(std::isnan(x[0])); }),
           discrete),
      {.name = "all_finite",
       .covers = {"all_finite"},
       .apply =
           [](In in) { return logical_and(all_finite(in[0]), logical_not(all_finite(in[0] / zeros_like(in[0])))); },
       .operands = {{.gap = 0.5}},
       .shapes = {{Shape{7}}, {Shape{3, 5}}, {Shape{}}},
       .reference = [](Arrays) { return Array{{}, {1}}; },
       .differentiable = false},
  };
}

/// x -> dtype -> f64, so that one reference serves.
Row cast_row(DType to, std::vector<DType> from, std::function<double(double)> f) {
  Row row = elementwise(
      text("cast to ", to), [=](In in) { return cast(in[0], to); }, {{-300, 300}}, [f](Scalars x) { return f(x[0]); });
  row.covers = {"cast"};
  row.dtypes = std::move(from);
  row.differentiable = is_floating(to);
  row.smooth = to == f64;
  row.refuses.emplace();
  if (row.differentiable) row.slopes = {{{2}, {1}}, {{inf}, {1}}};
  row.skip_specials = !is_floating(to);
  return row;
}

std::vector<Row> choices() {
  const Operand condition{.low = -1, .high = 1, .dtype = boolean, .has_gradient = false};
  std::vector<Row> rows{
      with(elementwise(
               "where", [](In in) { return where(in[0], in[1], in[2]); }, {condition, {}, {}},
               [](Scalars x) { return x[0] != 0 ? x[1] : x[2]; }),
           [](Row& row) {
             row.dtypes = {f32, f64, i64, i32, u8, boolean};
             row.slopes = {{{1, inf, 2}, {0, 1, 0}}, {{0, nan, 2}, {0, 0, 1}}};
             row.mistakes = {{[] { where(ones({2}), ones({2}), ones({2})); }, "condition must be bool"},
                             {[] { where(ones({2}, boolean), ones({2}, i32), 0.5); }, "cast"}};
           }),
      with(elementwise(
               "where with numbers", [](In in) { return where(in[0], in[1], 3) + where(in[0], 4, in[1]); },
               {condition, {}}, [](Scalars x) { return x[0] != 0 ? x[1] + 4 : 3 + x[1]; }),
           [](Row& row) { row.covers = {"where"}, row.called = "where", row.magnitude = 6, row.refuses.emplace(); }),
      with(elementwise(
               "stop_gradient", [](In in) { return stop_gradient(in[0]); }, {{}}, [](Scalars x) { return x[0]; }),
           [](Row& row) {
             row.dtypes = {f32, f64, i64, i32, u8, boolean};
             row.differentiable = false;
           }),
      {.name = "fill",
       .covers = {"fill"},
       .apply = [](In in) { return in[0] + fill(in[0].shape(), 3, in[0].dtype()); },
       .operands = {{}},
       .shapes = {{Shape{7}}, {Shape{3, 5}}, {Shape{}}, {Shape{0}}},
       .dtypes = {f32, f64, i64, i32, u8},
       .reference = [](Arrays in) { return by_element(in, [](Scalars x) { return x[0] + 3; }); },
       .magnitude = 5},
      cast_row(f32, {f64, i32, u8, boolean}, [](double x) { return static_cast<float>(x); }),
      cast_row(f64, {f32, i64, i32, u8, boolean}, [](double x) { return x; }),
      cast_row(i32, {f32, f64, i64, u8, boolean}, [](double x) { return std::trunc(x); }),
      cast_row(i64, {f32, f64, i32, u8, boolean}, [](double x) { return std::trunc(x); }),
      cast_row(boolean, {f32, f64, i64, i32, u8}, [](double x) { return x != 0 ? 1.0 : 0.0; }),
      cast_row(u8, {f32, f64}, [](double x) { return std::clamp(std::trunc(x), 0.0, 255.0); }),
  };
  rows.push_back(with(cast_row(u8, {i64, i32}, [](double x) { return static_cast<std::uint8_t>(static_cast<int>(x)); }),
                      [](Row& row) { row.name = "cast integers to u8", row.takes_other_integers = false; }));
  return rows;
}

const bool registered =
    add_rows(comparisons()) && add_rows(logic()) && add_rows(tests_of_floats()) && add_rows(choices());

}  // namespace
}  // namespace gradus::rows::rows_comparison
