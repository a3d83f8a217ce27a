/// Rows of orders.
#include <algorithm>
#include "gradus/ops/sort.h"
#include "tests/ops/rows_moves.h"

namespace gradus::rows::rows_sort {
namespace {

/// The indices that put the columns of x: [n, m] in order.
std::vector<std::vector<std::int64_t>> orders(const Array& x, bool descending) {
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t column = 0; column < x.shape[1]; ++column) {
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < x.shape[0]; ++i) order.push_back(i);
    std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
      const double left = element(x, {a, column}), right = element(x, {b, column});
      return descending ? left > right : left < right;
    });
    all.push_back(order);
  }
  return all;
}

std::vector<Row> sorts() {
  const std::vector<std::vector<Shape>> shapes{{{7, 3}}, {{1, 2}}, {{40, 17}}, {{0, 2}}};
  std::vector<Row> rows;
  for (const bool descending : {false, true}) {
    const Direction direction = descending ? Direction::descending : Direction::ascending;
    rows.push_back(exact_row(
        descending ? "sort descending" : "sort", {"argsort"}, [=](In in) { return sort(in[0], 0, direction); }, {{}},
        shapes,
        [=](Arrays in) {
          const auto order = orders(in[0], descending);
          return array_of(in[0].shape, [&](Index i) {
            return element(in[0], {order[static_cast<std::size_t>(i[1])][static_cast<std::size_t>(i[0])], i[1]});
          });
        }));
    rows.push_back(exact_row(
        descending ? "argsort descending" : "argsort", {"argsort"}, [=](In in) { return argsort(in[0], 0, direction); },
        {{}}, shapes,
        [=](Arrays in) {
          const auto order = orders(in[0], descending);
          return array_of(in[0].shape, [&](Index i) {
            return static_cast<double>(order[static_cast<std::size_t>(i[1])][static_cast<std::size_t>(i[0])]);
          });
        }));
    rows.back().differentiable = false;
  }
  rows.front().dtypes = {f64, f32, i64, u8, boolean};
  const auto largest_two = [](Arrays in) {
    const auto order = orders(in[0], true);
    return array_of({2, in[0].shape[1]}, [&](Index i) {
      return element(in[0], {order[static_cast<std::size_t>(i[1])][static_cast<std::size_t>(i[0])], i[1]});
    });
  };
  rows.push_back(exact_row(
      "top_k", {"argsort"}, [](In in) { return top_k(in[0], 2, {.axis = 0}).values; }, {{}},
      {{{7, 3}}, {{2, 2}}, {{40, 17}}}, largest_two));
  rows.push_back(exact_row("top_k of the smallest", {"argsort"},
                           [](In in) { return top_k(in[0], 3, {.largest = false}).indices; }, {{}},
                           {{{2, 9}}, {{3}}, {{2, 0, 3}}}));
  rows.back().differentiable = false;
  for (const Side side : {Side::left, Side::right}) {
    rows.push_back(exact_row(
        side == Side::left ? "searchsorted" : "searchsorted right", {"argsort"},
        [=](In in) { return searchsorted(sort(in[0]), in[1], side); }, {{}, {}}, {{{2, 7}, {2, 4}}, {{5}, {0}}},
        [=](Arrays in) {
          return array_of(in[1].shape, [&](Index i) {
            double before = 0;
            const std::int64_t n = in[0].shape[-1], row = i.size() == 2 ? i[0] : 0;
            for (std::int64_t k = 0; k < n; ++k) {
              const double x = in[0].values[static_cast<std::size_t>(row * n + k)], v = element(in[1], i);
              before += side == Side::left ? x < v : x <= v;
            }
            return before;
          });
        }));
    rows.back().differentiable = false;
  }
  return rows;
}

const bool registered = add_rows(sorts());

}  // namespace
}  // namespace gradus::rows::rows_sort
