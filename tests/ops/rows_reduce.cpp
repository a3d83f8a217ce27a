/// Rows of the reductions and of what is made of them.
#include <algorithm>
#include <cmath>
#include <numeric>
#include "gradus/base/rooms.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/softmax.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_reduce {
namespace {

using Fold = std::function<double(std::vector<double>)>;
using Reduce = Tensor (*)(const Tensor&, ReduceOptions);

bool is_reduced(const ReduceOptions& options, int axis, int rank) {
  return options.axis.empty() || std::ranges::any_of(options.axis, [&](int a) { return (a + rank) % rank == axis; });
}

/// Gathers what each element of the result is made of, in row-major order, and folds it.
Array folded(const Array& x, const ReduceOptions& options, const Fold& fold) {
  const int rank = x.shape.rank();
  Shape kept = x.shape, shown;
  for (int i = 0; i < rank; ++i) {
    if (is_reduced(options, i, rank)) kept.set(i, 1);
    if (options.keepdims || !is_reduced(options, i, rank)) shown.push_back(kept[i]);
  }
  std::vector<std::vector<double>> groups(static_cast<std::size_t>(kept.size()));
  for_each_index(x.shape, [&](std::span<const std::int64_t> index, std::int64_t flat) {
    groups[static_cast<std::size_t>(broadcast_offset(kept, index))].push_back(x.values[static_cast<std::size_t>(flat)]);
  });
  Array out{shown, {}};
  for (auto& group : groups) out.values.push_back(fold(std::move(group)));
  return out;
}

struct Family {
  std::string name, primitive;
  Reduce reduce;
  Operand operand;
  Fold fold;
  std::vector<DType> dtypes;
  double tolerance = 8, magnitude = 64;
};

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }
double variance_of(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size()), mean = sum_of(values) / n;
  double sum = 0;
  for (double x : values) sum += (x - mean) * (x - mean);
  return sum / n;
}
double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (double x : values) sum += x * x;
  return std::sqrt(sum);
}
double log_sum_exp_of(const std::vector<double>& values) {
  double sum = 0;
  for (double x : values) sum += std::exp(x);
  return std::log(sum);
}
double extreme_of(const std::vector<double>& values, double start, auto better) {
  for (double x : values)
    if (better(x, start)) start = x;
  return start;
}

constexpr double infinite = std::numeric_limits<double>::infinity();

std::vector<Family> families() {
  const std::vector<DType> floats{f32, f64};
  return {
      {"reduce_sum", "sum", reduce_sum, {}, sum_of, {f32, f64, i64, i32}, 8, 8192},
      {"reduce_mean", "sum", reduce_mean, {}, [](auto x) { return sum_of(x) / static_cast<double>(x.size()); }, floats},
      {"reduce_max", "max", reduce_max, {}, [](auto x) { return extreme_of(x, -infinite, std::greater<>()); }, floats},
      {"reduce_min", "min", reduce_min, {}, [](auto x) { return extreme_of(x, infinite, std::less<>()); }, floats},
      {"reduce_prod",
       "prod",
       reduce_prod,
       {.low = 0.7, .high = 1.4},
       [](auto x) { return std::accumulate(x.begin(), x.end(), 1.0, std::multiplies<>()); },
       floats,
       400,
       1},
      {"reduce_variance", "sum", reduce_variance, {}, variance_of, floats},
      {"reduce_std", "sum", reduce_std, {}, [](auto x) { return std::sqrt(variance_of(x)); }, floats},
      {"norm", "sum", norm, {}, norm_of, floats, 32},
      {"reduce_logsumexp", "sum", reduce_logsumexp, {}, log_sum_exp_of, floats},
      {"reduce_any",
       "any",
       reduce_any,
       {.low = -1, .high = 0.2},
       [](auto x) { return x.size() && extreme_of(x, 0, std::greater<>()) != 0; },
       {boolean}},
      {"reduce_all",
       "all",
       reduce_all,
       {.low = -0.2, .high = 1},
       [](auto x) { return extreme_of(x, 1, std::less<>()) != 0; },
       {boolean}},
  };
}

Row row_over(const Family& family, const char* what, const ReduceOptions& options, std::vector<Shape> shapes) {
  Row row{.name = family.name + ' ' + what,
          .covers = {family.primitive},
          .apply = [family, options](In in) { return family.reduce(in[0], options); },
          .operands = {family.operand},
          .dtypes = family.dtypes,
          .reference = [family, options](Arrays in) { return folded(in[0], options, family.fold); },
          .tolerance = family.tolerance,
          .magnitude = family.magnitude};
  // The variance of one number is 0, where a root has a kink: lengths of 1 say nothing about differences.
  for (const Shape& shape : shapes)
    if (family.name != "reduce_std" || shape.size() != 1) row.shapes.push_back({shape});
  row.differentiable = row.dtypes[0] != boolean;
  if (family.name == "reduce_std") row.result_gap = 1e-3;  // of numbers that are all equal it is rounding alone
  return row;
}

std::vector<Row> reductions() {
  std::vector<Row> rows;
  for (const Family& f : families()) {
    rows.push_back(row_over(f, "of the last axis", {.axis = {-1}},
                            {{7}, {1}, {8}, {17}, {1000}, {3, 5}, {2, 3, 4}, {3, 0}, {0, 3}, {2, 33000}}));
    rows.push_back(row_over(f, "of the first axis", {.axis = {0}, .keepdims = true},
                            {{7, 3}, {8, 1}, {33, 5}, {1000, 2}, {1100, 17}, {2, 3, 4}, {0, 3}}));
    rows.push_back(row_over(f, "of separate axes", {.axis = {0, -1}}, {{2, 3, 4}, {5, 1, 7}, {2, 0, 3}, {3, 17, 20}}));
    rows.push_back(row_over(f, "of everything", {}, {{3, 5}, {2, 3, 4}, {0}, {17, 20}, {1, 1, 6}}));
  }
  return rows;
}

/// The same element of every row along an axis, as a vector.
void for_each_row(const Array& x, int axis, const std::function<void(std::vector<std::size_t>)>& visit) {
  const int at = x.shape.normalized(axis);
  Shape others = x.shape;
  others.set(at, 1);
  const Shape strides = dense_strides(x.shape);
  for_each_index(others, [&](std::span<const std::int64_t> index, std::int64_t) {
    std::int64_t start = 0;
    for (int i = 0; i < others.rank(); ++i) start += index[static_cast<std::size_t>(i)] * strides[i];
    std::vector<std::size_t> places;
    for (std::int64_t k = 0; k < x.shape[at]; ++k) places.push_back(static_cast<std::size_t>(start + k * strides[at]));
    visit(std::move(places));
  });
}

Array running_sums(const Array& x, int axis) {
  Array out = x;
  for_each_row(x, axis, [&](const std::vector<std::size_t>& places) {
    double sum = 0;
    for (std::size_t p : places) out.values[p] = sum += x.values[p];
  });
  return out;
}

Array index_of(const Array& x, int axis, auto better) {
  Array out;
  for (int i = 0; i < x.shape.rank(); ++i)
    if (i != x.shape.normalized(axis)) out.shape.push_back(x.shape[i]);
  for_each_row(x, axis, [&](const std::vector<std::size_t>& places) {
    std::size_t best = 0;
    for (std::size_t k = 1; k < places.size(); ++k)
      if (better(x.values[places[k]], x.values[places[best]])) best = k;
    out.values.push_back(static_cast<double>(best));
  });
  return out;
}

Array softmax_of(const Array& x, int axis, bool log) {
  Array out = x;
  for_each_row(x, axis, [&](const std::vector<std::size_t>& places) {
    double sum = 0;
    for (std::size_t p : places) sum += std::exp(x.values[p]);
    for (std::size_t p : places) out.values[p] = log ? x.values[p] - std::log(sum) : std::exp(x.values[p]) / sum;
  });
  return out;
}

Row along(std::string name, std::vector<std::string> covers, std::function<Tensor(In)> apply,
          std::function<Array(Arrays)> reference) {
  Row row{.name = std::move(name), .covers = std::move(covers), .apply = std::move(apply), .operands = {{}}};
  row.shapes = {{{2, 3, 4}}, {{3, 7}}, {{5, 1}}, {{2, 17}}, {{3, 1000}}, {{40, 3}}};
  row.reference = std::move(reference);
  row.tolerance = 16;
  row.magnitude = 1;
  return row;
}

std::vector<Row> along_an_axis() {
  const std::vector<DType> anything{f32, f64, i64, i32, u8, boolean};
  std::vector<Row> rows;
  for (int axis : {-1, 0}) {
    const std::string suffix = axis ? " along the last axis" : " along the first axis";
    rows.push_back(along(
        "softmax" + suffix, {"softmax"}, [axis](In in) { return softmax(in[0], axis); },
        [axis](Arrays in) { return softmax_of(in[0], axis, false); }));
    rows.push_back(along(
        "log_softmax" + suffix, {"log_softmax"}, [axis](In in) { return log_softmax(in[0], axis); },
        [axis](Arrays in) { return softmax_of(in[0], axis, true); }));
    rows.back().magnitude = 8;
    rows.push_back(along(
        "cumsum" + suffix, {"cumsum"}, [axis](In in) { return cumsum(in[0], axis); },
        [axis](Arrays in) { return running_sums(in[0], axis); }));
    rows.back().dtypes = {f32, f64, i64, i32};
    rows.back().shapes.push_back({{0, 3}});
    rows.back().magnitude = 64;
    for (bool largest : {true, false}) {
      rows.push_back(along((largest ? "argmax" : "argmin") + suffix, {largest ? "max" : "min"},
                           [=](In in) { return largest ? argmax(in[0], axis) : argmin(in[0], axis); },
                           [=](Arrays in) {
                             return largest ? index_of(in[0], axis, std::greater<>())
                                            : index_of(in[0], axis, std::less<>());
                           }));
      rows.back().dtypes = anything;
      rows.back().differentiable = false;
    }
  }
  return rows;
}

Row extent_row() {
  Row row{.name = "extent", .covers = {"extent"}};
  row.apply = [](In) { return make_node(parse_op("extent", "dimension=5; dtype=f32"), {}); };
  row.shapes = {{}};
  row.dtypes = {f32};
  row.reference = [](Arrays) { return Array{{}, {5}}; };
  row.differentiable = false;
  return row;
}

const bool registered = add_rows(reductions()) && add_rows(along_an_axis()) && add_rows({extent_row()});

}  // namespace
}  // namespace gradus::rows::rows_reduce
