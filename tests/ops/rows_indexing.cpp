/// Rows of indexing by data: gathers, scatters and segments in all forms.
#include <cmath>
#include <limits>
#include "gradus/ops/constant.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/scatter.h"
#include "gradus/ops/scatter_ops.h"
#include "gradus/ops/segment.h"
#include "tests/ops/rows_moves.h"

namespace gradus::rows::rows_indexing {
namespace {

std::int64_t whole(double x) { return static_cast<std::int64_t>(x); }

std::vector<Row> gathers() {
  std::vector<Row> rows;
  // x [2, 3, 5, 2], indices [2, 4] -> [2, 3, 4, 2]
  rows.push_back(exact_row(
      "gather of batches", {"gather"}, [](In in) { return gather(in[0], in[1], 2, 1); }, {{}, indices_in(0, 4)},
      {{{2, 3, 5, 2}, {2, 4}}, {{1, 1, 5, 1}, {1, 2}}},
      [](Arrays in) {
        const Shape& x = in[0].shape;
        return array_of({x[0], x[1], in[1].shape[1], x[3]}, [&](Index i) {
          return element(in[0], {i[0], i[1], whole(element(in[1], {i[0], i[2]})), i[3]});
        });
      }));
  rows.push_back(exact_row(
      "gather_nd of batches", {"gather"}, [](In in) { return gather_nd(in[0], in[1], 1); }, {{}, indices_in(0, 3, i64)},
      {{{2, 4, 5, 2}, {2, 3, 2}}, {{1, 4, 4}, {1, 2, 2}}},
      [](Arrays in) {
        const bool inner = in[0].shape.rank() == 4;
        Shape shape{in[0].shape[0], in[1].shape[1]};
        if (inner) shape.push_back(in[0].shape[3]);
        return array_of(shape, [&](Index i) {
          const std::int64_t a = whole(element(in[1], {i[0], i[1], 0})), b = whole(element(in[1], {i[0], i[1], 1}));
          return inner ? element(in[0], {i[0], a, b, i[2]}) : element(in[0], {i[0], a, b});
        });
      }));
  rows.push_back(exact_row(
      "take_along_axis", {"gather"}, [](In in) { return take_along_axis(in[0], in[1], 1); }, {{}, indices_in(0, 3)},
      {{{2, 4, 3}, {2, 5, 3}}, {{2, 4, 1}, {1, 2, 3}}, {{2, 4, 3}, {2, 0, 3}}},
      [](Arrays in) {
        Shape shape = in[1].shape;
        for (int axis : {0, 2}) shape.set(axis, std::max(in[0].shape[axis], shape[axis]));
        return array_of(shape, [&](Index i) { return element(in[0], {i[0], whole(element(in[1], i)), i[2]}); });
      }));
  rows.push_back(exact_row(
      "gather_elements", {"gather"},
      [](In in) { return gather_elements(in[0], wrapped_indices(in[1], in[0].shape()[0]), 0); },
      {{}, indices_in(-3, 2, i64)}, {{{3, 4}, {5, 2}}, {{3}, {4}}},
      [](Arrays in) {
        return array_of(in[1].shape, [&](Index i) {
          const std::int64_t at = whole(element(in[1], i)), row = at < 0 ? at + 3 : at;
          return i.size() == 1 ? element(in[0], {row}) : element(in[0], {row, i[1]});
        });
      }));
  return rows;
}

double combine(Reduction reduction, double now, double update) {
  switch (reduction) {
    case Reduction::none: return update;
    case Reduction::add: return now + update;
    case Reduction::mul: return now * update;
    case Reduction::min: return std::min(now, update);
    case Reduction::max: return std::max(now, update);
  }
  return 0;
}

/// x [rows, inner], indices [places, 1], updates [places, inner].
Array scattered_rows(Arrays in, Reduction reduction) {
  Array out = in[0];
  const std::int64_t inner = in[0].shape[1];
  for_each_index(in[2].shape, [&](Index i, std::int64_t flat) {
    double& now = out.values[static_cast<std::size_t>(whole(element(in[1], {i[0], 0})) * inner + i[1])];
    now = combine(reduction, now, in[2].values[static_cast<std::size_t>(flat)]);
  });
  return out;
}

std::vector<Row> scatters() {
  std::vector<Row> rows;
  const std::vector<std::vector<Shape>> shapes{{{4, 3}, {5, 1}, {5, 3}}, {{5, 17}, {0, 1}, {0, 17}}};
  const std::vector<std::pair<const char*, Reduction>> kinds{{"update", Reduction::none},
                                                             {"add", Reduction::add},
                                                             {"mul", Reduction::mul},
                                                             {"min", Reduction::min},
                                                             {"max", Reduction::max}};
  for (const auto& [name, reduction] : kinds) {
    Row row = exact_row(
        std::string("tensor_scatter_nd_") + name, {"scatter"},
        [reduction = reduction](In in) { return tensor_scatter_nd(in[0], in[1], in[2], reduction); },
        {{}, indices_in(0, 3), {}}, shapes,
        [reduction = reduction](Arrays in) { return scattered_rows(in, reduction); });
    row.dtypes = {f32, f64, i32};
    row.tolerance = 32;
    row.magnitude = 16;
    rows.push_back(row);
    // The primitive with outer dimensions, whose indices have a shape of their own.
    row.name = std::string("scatter under outer dimensions, ") + name;
    row.apply = [reduction = reduction](In in) {
      return apply(Scatter{-2, static_cast<int>(reduction)}, in[0], in[1], in[2]);
    };
    row.shapes = {{{2, 4, 2}, {2, 2}, {2, 2, 2, 2}}, {{1, 4, 1}, {}, {1, 1}}};
    row.reference = {};
    rows.push_back(row);
  }
  rows[0].dtypes.push_back(boolean);
  Row rows_row = exact_row(
      "update_rows", {"update_rows"}, [](In in) { return update_rows(in[0], in[1], in[2]); },
      {{}, indices_in(-2, 5), {}},
      {{{4, 3}, {5}, {5, 3}}, {{5, 17}, {0}, {0, 17}}, {{4}, {2, 3}, {2, 3}}, {{0, 2}, {3}, {3, 2}}},
      [](Arrays in) {
        Array out = in[0];
        const std::int64_t n = in[0].shape[0];
        for_each_index(in[2].shape, [&](Index i, std::int64_t flat) {
          const std::size_t inner = in[0].shape.rank() == 2 ? static_cast<std::size_t>(in[0].shape[1]) : 1;
          const std::size_t at = static_cast<std::size_t>(flat);
          const std::int64_t row = whole(in[1].values[at / inner]);
          if (row >= 0 && row < n) out.values[static_cast<std::size_t>(row) * inner + at % inner] = in[2].values[at];
          static_cast<void>(i);
        });
        return out;
      });
  rows_row.dtypes = {f32, f64, i32, boolean};
  rows.push_back(rows_row);
  rows.push_back(exact_row("tensor_scatter_nd_sub", {"scatter"},
                           [](In in) { return tensor_scatter_nd_sub(in[0], in[1], in[2]); }, {{}, indices_in(0, 3), {}},
                           {shapes[0]}));
  rows.back().dtypes = {f64};
  rows.back().tolerance = 32;
  rows.back().magnitude = 16;
  rows.push_back(exact_row(
      "scatter_nd", {"scatter_add"}, [](In in) { return scatter_nd(in[0], in[1], {3, 2, 2}); }, {indices_in(0, 1), {}},
      {{{4, 2}, {4, 2}}, {{2, 2, 3}, {2, 2}}},
      [](Arrays in) {
        Array out{{3, 2, 2}, std::vector<double>(12)};
        const std::int64_t depth = in[0].shape[-1], inner = depth == 2 ? 2 : 1;
        for (std::size_t u = 0; u < in[1].values.size(); ++u) {
          const auto place = static_cast<std::int64_t>(u) / inner;
          std::int64_t at = 0;
          for (std::int64_t d = 0; d < depth; ++d)
            at = at * (d == 0 ? 3 : 2) + whole(in[0].values[static_cast<std::size_t>(place * depth + d)]);
          out.values[static_cast<std::size_t>(at * inner + static_cast<std::int64_t>(u) % inner)] += in[1].values[u];
        }
        return out;
      }));
  rows.back().dtypes = {f64, i64};
  rows.back().tolerance = 32;
  rows.back().magnitude = 8;
  rows.push_back(exact_row(
      "scatter_elements", {"scatter"}, [](In in) { return scatter_elements(in[0], in[1], in[2], 1, Reduction::none); },
      {{}, indices_in(0, 3), {}}, {{{3, 4}, {2, 5}, {2, 5}}},
      [](Arrays in) {
        Array out = in[0];
        for_each_index(in[1].shape, [&](Index i, std::int64_t) {
          out.values[static_cast<std::size_t>(i[0] * 4 + whole(element(in[1], i)))] = element(in[2], i);
        });
        return out;
      }));
  rows.push_back(exact_row("put_along_axis", {"scatter"}, [](In in) { return put_along_axis(in[0], in[1], in[2], 0); },
                           {{}, indices_in(0, 2), {}}, {{{3, 4}, {2, 1}, {1, 4}}}));
  return rows;
}

std::vector<Row> segments() {
  using Segment = Tensor (*)(const Tensor&, const Tensor&, std::int64_t);
  const std::vector<std::pair<const char*, Segment>> all{
      {"unsorted_segment_sum", unsorted_segment_sum},       {"unsorted_segment_mean", unsorted_segment_mean},
      {"unsorted_segment_sqrt_n", unsorted_segment_sqrt_n}, {"unsorted_segment_prod", unsorted_segment_prod},
      {"unsorted_segment_max", unsorted_segment_max},       {"unsorted_segment_min", unsorted_segment_min}};
  std::vector<Row> rows;
  for (const auto& [name, op] : all) {
    rows.push_back(exact_row(name, {"check_range"}, [op = op](In in) { return op(in[0], in[1], 2); },
                             {{}, indices_in(-1, 1)}, {{{9, 3}, {9}}, {{3, 8, 2}, {3, 8}}}));
    rows.back().dtypes = {f32, f64};
    rows.back().tolerance = 64;
    rows.back().magnitude = 8;
  }
  rows[0].reference = [](Arrays in) {
    const std::int64_t places = in[1].shape.size(), inner = in[0].shape[-1];
    Array out{{2, inner}, std::vector<double>(static_cast<std::size_t>(2 * inner))};
    for (std::int64_t p = 0; p < places; ++p)
      for (std::int64_t i = 0; i < inner; ++i)
        if (const std::int64_t s = whole(in[1].values[static_cast<std::size_t>(p)]); s >= 0)
          out.values[static_cast<std::size_t>(s * inner + i)] += in[0].values[static_cast<std::size_t>(p * inner + i)];
    return out;
  };
  return rows;
}

const bool registered = add_rows(gathers()) && add_rows(scatters()) && add_rows(segments());

}  // namespace
}  // namespace gradus::rows::rows_indexing
