/// Rows of what runs along an axis, and of the norms, counts and indices made of reductions.
#include <algorithm>
#include <cmath>
#include <limits>
#include "gradus/ops/constant.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/cumulative_ops.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_cumulative {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// The elements of every line along `axis`, as places in the array, in order.
std::vector<std::vector<std::size_t>> lines_of(const Shape& shape, int axis) {
  const int at = shape.normalized(axis);
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < at; ++i) outer *= shape[i];
  for (int i = at + 1; i < shape.rank(); ++i) inner *= shape[i];
  std::vector<std::vector<std::size_t>> lines;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      std::vector<std::size_t> line;
      for (std::int64_t k = 0; k < shape[at]; ++k)
        line.push_back(static_cast<std::size_t>((o * shape[at] + k) * inner + i));
      lines.push_back(std::move(line));
    }
  return lines;
}

using Combine = double (*)(double, double);

Array running(const Array& x, const CumulativeOptions& options, Combine combine, double start) {
  Array out = x;
  for (std::vector<std::size_t> line : lines_of(x.shape, options.axis)) {
    if (options.reverse) std::ranges::reverse(line);
    double state = start;
    for (std::size_t place : line) {
      const double with = combine(state, x.values[place]);
      out.values[place] = options.exclusive ? state : with;
      state = with;
    }
  }
  return out;
}

struct Family {
  std::string name;
  Tensor (*op)(const Tensor&, CumulativeOptions);
  Combine combine;
  double start;
  std::vector<DType> dtypes;
  std::vector<std::string> covers;
};

double log_sum(double a, double b) { return a == -inf ? b : std::max(a, b) + std::log1p(std::exp(-std::abs(a - b))); }

std::vector<Row> running_rows() {
  const Family families[] = {
      {"cumsum", cumsum, [](double a, double b) { return a + b; }, 0, {f32, f64, i32}, {"cumsum"}},
      {"cumprod", cumprod, [](double a, double b) { return a * b; }, 1, {f32, f64, i64, i32}, {"linear_recurrence"}},
      {"cumulative_logsumexp", cumulative_logsumexp, log_sum, -inf, {f32, f64}, {"logaddexp"}},
  };
  const std::pair<const char*, CumulativeOptions> ways[] = {
      {" in order", {.axis = -1}},
      {" in reverse along the first axis", {.axis = 0, .reverse = true}},
      {", exclusive", {.axis = 1, .exclusive = true}},
      {", exclusive in reverse", {.axis = -1, .exclusive = true, .reverse = true}}};
  std::vector<Row> rows;
  for (const Family& family : families)
    for (const auto& [what, options] : ways) {
      Row row{.name = family.name + what, .covers = family.covers};
      row.apply = [op = family.op, options](In in) { return op(in[0], options); };
      row.operands = {{}};
      row.shapes = {{{3, 7}}, {{2, 3, 4}}, {{0, 3}}, {{3, 1}}, {{2, 200}}};
      if (family.name == "cumprod") row.shapes.back() = {{2, 30}};  // of integers: within what a double holds
      if (family.start == -inf) row.shapes.pop_back();
      row.dtypes = family.dtypes;
      row.reference = [family, options](Arrays in) { return running(in[0], options, family.combine, family.start); };
      row.smooth = family.start != -inf || !options.exclusive;  // else there are elements of -inf
      row.tolerance = 64;
      row.magnitude = 8;
      row.slack = 4;
      row.mistakes = {{[=] { family.op(ones({}), options); }, family.name},
                      {[=] { family.op(ones({2, 2}, boolean), options); }, family.name},
                      {[=] { family.op(ones({2, 2}), {.axis = 5}); }, "axis"}};
      rows.push_back(std::move(row));
    }
  for (bool largest : {true, false}) {
    Row row{.name = largest ? "cummax" : "cummin", .covers = {largest ? "maximum" : "minimum"}};
    row.apply = [=](In in) { return largest ? cummax(in[0], 1) : cummin(in[0], 1); };
    row.operands = {{}};
    row.shapes = {{{3, 7}}, {{2, 3, 4}}, {{3, 0}}};
    row.dtypes = {f32, f64, i32};
    row.reference = [=](Arrays in) {
      return largest ? running(
                           in[0], {.axis = 1}, [](double a, double b) { return std::max(a, b); }, -inf)
                     : running(in[0], {.axis = 1}, [](double a, double b) { return std::min(a, b); }, inf);
    };
    rows.push_back(std::move(row));
  }
  return rows;
}

Row recurrence_row() {
  Row row{.name = "linear_recurrence", .covers = {"linear_recurrence"}};
  row.apply = [](In in) { return apply(LinearRecurrence{.axis = -2, .reverse = true}, in[0], in[1]); };
  row.operands = {{-1, 1}, {}};
  row.shapes = {{{2, 5, 3}, {2, 5, 3}}, {{7, 1}, {7, 1}}, {{0, 2}, {0, 2}}, {{4, 70}, {4, 70}}};
  row.dtypes = {f32, f64, i32};
  row.reference = [](Arrays in) {
    Array out = in[1];
    for (std::vector<std::size_t> line : lines_of(in[1].shape, -2)) {
      std::ranges::reverse(line);
      for (std::size_t k = 1; k < line.size(); ++k)
        out.values[line[k]] += in[0].values[line[k]] * out.values[line[k - 1]];
    }
    return out;
  };
  row.tolerance = 16, row.magnitude = 4;
  row.mistakes = {{[] { apply(LinearRecurrence{}, ones({3}), ones({4})); }, "linear_recurrence"},
                  {[] { apply(LinearRecurrence{.axis = -2}, ones({3}), ones({3})); }, "axis"}};
  return row;
}

/// Of the elements along the last axis.
Row of_lines(std::string name, std::function<Tensor(const Tensor&)> op, double (*fold)(const std::vector<double>&),
             Operand operand = {}) {
  Row row{.name = std::move(name), .apply = [op](In in) { return op(in[0]); }, .operands = {operand}};
  row.shapes = {{{3, 5}}, {{2, 3, 4}}, {{17}}};
  row.reference = [fold](Arrays in) {
    Array out{in[0].shape, {}};
    out.shape.erase(-1);
    for (const auto& line : lines_of(in[0].shape, -1)) {
      std::vector<double> values;
      for (std::size_t place : line) values.push_back(in[0].values[place]);
      out.values.push_back(fold(values));
    }
    return out;
  };
  row.tolerance = 16, row.magnitude = 8;
  return row;
}

double p_norm(const std::vector<double>& values, double p) {
  double sum = 0;
  for (double x : values) sum += std::pow(std::abs(x), p);
  return std::pow(sum, 1 / p);
}

std::vector<Row> folds() {
  const ReduceOptions last{.axis = {-1}};
  std::vector<Row> rows{
      of_lines(
          "norm of order 1", [=](const Tensor& x) { return norm(x, 1, last); },
          [](const auto& v) { return p_norm(v, 1); }, {-2, 2, 0.1}),
      of_lines(
          "norm of order 2", [=](const Tensor& x) { return norm(x, 2, last); },
          [](const auto& v) { return p_norm(v, 2); }),
      of_lines(
          "norm of order 3", [=](const Tensor& x) { return norm(x, 3, last); },
          [](const auto& v) { return p_norm(v, 3); }, {-2, 2, 0.1}),
      of_lines(
          "norm of order 1.5", [=](const Tensor& x) { return norm(x, 1.5, last); },
          [](const auto& v) { return p_norm(v, 1.5); }, {-2, 2, 0.1}),
      of_lines(
          "norm of infinite order", [=](const Tensor& x) { return norm(x, inf, last); },
          [](const auto& v) {
            double most = 0;
            for (double x : v) most = std::max(most, std::abs(x));
            return most;
          }),
      of_lines(
          "reduce_euclidean_norm", [=](const Tensor& x) { return reduce_euclidean_norm(x, last); },
          [](const auto& v) { return p_norm(v, 2); }),
      of_lines(
          "count_nonzero", [=](const Tensor& x) { return count_nonzero(x, last); },
          [](const auto& v) { return static_cast<double>(std::ranges::count_if(v, [](double x) { return x != 0; })); }),
      of_lines(
          "argmax, the last index",
          [](const Tensor& x) { return argmax(x, {.select_last_index = true, .output_type = i64}); },
          [](const auto& v) {
            std::size_t best = 0;
            for (std::size_t k = 1; k < v.size(); ++k)
              if (v[k] >= v[best]) best = k;
            return static_cast<double>(best);
          }),
      of_lines(
          "argmin, the last index", [](const Tensor& x) { return argmin(x, {.select_last_index = true}); },
          [](const auto& v) {
            std::size_t best = 0;
            for (std::size_t k = 1; k < v.size(); ++k)
              if (v[k] <= v[best]) best = k;
            return static_cast<double>(best);
          }),
  };
  for (Row& row : rows) {
    const bool counts = row.name == "count_nonzero", index = row.name.starts_with("arg");
    if (counts || index) row.dtypes = {f32, i32, u8}, row.differentiable = false;
    if (counts) row.dtypes.push_back(boolean);
  }
  rows[0].mistakes = {{[] { norm(ones({2}), 0.0); }, "ord"},
                      {[] { norm(ones({2}, i32), 1.0); }, "norm"},
                      {[] { argmax(ones({2}), {.output_type = f32}); }, "output_type"}};
  return rows;
}

std::vector<Row> others() {
  Row first{
      .name = "hardmax", .apply = [](In in) { return hardmax(in[0], 1); }, .operands = {{-2, 2}}, .smooth = false};
  first.shapes = {{{3, 5}}, {{2, 3, 4}}, {{3, 0}}};
  first.reference = [](Arrays in) {
    Array out = in[0];
    for (const auto& line : lines_of(out.shape, 1)) {
      const auto largest = std::ranges::max_element(line, {}, [&](std::size_t place) { return in[0].values[place]; });
      for (std::size_t place : line) out.values[place] = largest != line.end() && place == *largest;
    }
    return out;
  };
  first.differentiable = false;
  Row ordered{.name = "is_non_decreasing", .apply = [](In in) { return is_non_decreasing(in[0]); }, .operands = {{}}};
  ordered.shapes = {{{2}}, {{2, 2}}, {{1}}, {{0}}, {Shape{}}};
  ordered.reference = [](Arrays in) { return Array{{}, {std::ranges::is_sorted(in[0].values) ? 1.0 : 0.0}}; };
  ordered.dtypes = {f32, i32}, ordered.differentiable = false;
  Row strictly = ordered;
  strictly.name = "is_strictly_increasing";
  strictly.apply = [](In in) { return is_strictly_increasing(in[0]); };
  strictly.reference = [](Arrays in) {
    return Array{{}, {std::ranges::is_sorted(in[0].values, std::ranges::less_equal()) ? 1.0 : 0.0}};
  };
  Row top{.name = "in_top_k", .apply = [](In in) { return in_top_k(in[0], in[1], 2); }};
  top.operands = {{.low = -1, .high = 5, .dtype = i32, .has_gradient = false}, {}};
  top.shapes = {{{4}, {4, 5}}, {{2, 3}, {2, 3, 4}}};
  top.differentiable = false;
  top.reference = [](Arrays in) {
    Array out = in[0];
    const std::int64_t n = in[1].shape.back();
    for (std::size_t r = 0; r < out.values.size(); ++r) {
      const auto row = std::span(in[1].values).subspan(r * static_cast<std::size_t>(n), static_cast<std::size_t>(n));
      const double target = in[0].values[r];
      const bool is_class = target >= 0 && target < static_cast<double>(n);
      out.values[r] = is_class && std::ranges::count_if(
                                      row, [&](double x) { return x > row[static_cast<std::size_t>(target)]; }) < 2;
    }
    return out;
  };
  top.mistakes = {{[] { in_top_k(ones({3}, i32), ones({4, 5}), 1); }, "in_top_k"},
                  {[] { in_top_k(ones({4}), ones({4, 5}), 1); }, "one integer"}};
  Row zeros_in{.name = "zero_fraction", .apply = [](In in) { return zero_fraction(in[0]); }, .operands = {{-1, 1}}};
  zeros_in.shapes = {{{3, 5}}, {{40}}};
  zeros_in.dtypes = {i32, u8}, zeros_in.differentiable = false;
  zeros_in.reference = [](Arrays in) {
    const double zeros = static_cast<double>(std::ranges::count(in[0].values, 0.0));
    return Array{{}, {static_cast<double>(static_cast<float>(zeros / static_cast<double>(in[0].values.size())))}};
  };
  zeros_in.tolerance = 1 << 30;  // i32 and u8 have the epsilon of f64, the result is f32
  return {std::move(first), std::move(ordered), std::move(strictly), std::move(top), std::move(zeros_in)};
}

const bool registered =
    add_rows(running_rows()) && add_rows({recurrence_row()}) && add_rows(folds()) && add_rows(others());

}  // namespace
}  // namespace gradus::rows::rows_cumulative
