/// Rows of the ops that lay elements out anew: slices with steps, padding, repetition, blocks, triangles, diagonals.
#include <algorithm>
#include <bit>
#include "gradus/ops/bitcast.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/diagonals.h"
#include "gradus/ops/strided.h"
#include "tests/ops/rows_moves.h"

namespace gradus::rows::rows_layout {
namespace {

Row moved(std::string name, std::string covers, std::function<Tensor(In)> apply, std::vector<Shape> shapes,
          std::function<Array(Arrays)> reference = {}) {
  std::vector<std::vector<Shape>> cases;
  for (const Shape& shape : shapes) cases.push_back({shape});
  return exact_row(std::move(name), {std::move(covers)}, std::move(apply), {{}}, cases, std::move(reference));
}

std::vector<Row> slices() {
  Row steps = moved(
      "strided_slice", "strided_slice",
      [](In in) { return strided_slice(in[0], {1, -1, 0}, {-1, -100, 5}, {.strides = {2, -3, 1}, .end_mask = 2}); },
      {{6, 7, 5}, {8, 17, 3}, {2, 1, 2}},
      [](Arrays in) {
        const Array& x = in[0];
        const std::int64_t n = x.shape[0] - 2, m = x.shape[1];
        return array_of({n <= 0 ? 0 : (n + 1) / 2, (m + 2) / 3, std::min<std::int64_t>(x.shape[2], 5)},
                        [&](Index i) { return element(x, {1 + 2 * i[0], m - 1 - 3 * i[1], i[2]}); });
      });
  steps.dtypes = {all_dtypes, std::end(all_dtypes)};
  return {steps,
          moved(
              "strided_slice with masks", "slice",
              [](In in) {
                return strided_slice(in[0], {1, 0, 0, -1}, {0, 0, 0, 0},
                                     {.ellipsis_mask = 2, .new_axis_mask = 4, .shrink_axis_mask = 9});
              },
              {{3, 2, 4}, {2, 5}},
              [](Arrays in) {
                const Array& x = in[0];
                const std::int64_t last = x.shape[-1] - 1;
                if (x.shape.rank() == 2) return Array{{1}, {element(x, {1, last})}};
                return array_of({x.shape[1], 1}, [&](Index i) { return element(x, {1, i[0], last}); });
              }),
          moved("split by sizes", "slice", [](In in) { return split(in[0], {2, -1, 1}, 0)[1]; }, {{5, 2}, {3, 1}})};
}

std::vector<Row> paddings() {
  const std::vector<Shape> planes{{3, 4}, {2, 5}};
  const auto by_source = [](std::int64_t (*source)(std::int64_t, std::int64_t)) {
    return [source](Arrays in) {
      const Array& x = in[0];
      return array_of({x.shape[0] + 2, x.shape[1] + 3}, [&](Index i) {
        return element(x, {source(i[0] - 1, x.shape[0]), source(i[1] - 2, x.shape[1])});
      });
    };
  };
  const auto padding = [](PadMode mode) { return [mode](In in) { return pad(in[0], {{1, 1}, {2, 1}}, mode); }; };
  Row value = moved("pad with a value", "concat", [](In in) { return pad(in[0], {{1, -1}, {0, 2}}, in[1]); }, {});
  value.operands = {{}, {}};
  value.shapes = {{{3, 2}, {}}, {{1, 2}, {1}}};
  return {moved("pad reflect", "concat", padding(PadMode::reflect), {{3, 4}, {2, 5}},
                by_source([](std::int64_t i, std::int64_t n) { return i < 0    ? -i
                                                                      : i >= n ? 2 * n - 2 - i
                                                                               : i; })),
          moved("pad symmetric", "concat", padding(PadMode::symmetric), planes,
                by_source([](std::int64_t i, std::int64_t n) { return i < 0    ? -1 - i
                                                                      : i >= n ? 2 * n - 1 - i
                                                                               : i; })),
          moved("pad edge", "concat", padding(PadMode::edge), planes,
                by_source([](std::int64_t i, std::int64_t n) { return std::clamp<std::int64_t>(i, 0, n - 1); })),
          moved("pad wrap", "concat", padding(PadMode::wrap), planes,
                by_source([](std::int64_t i, std::int64_t n) { return (i + n) % n; })),
          moved(
              "pad reflect far", "gather", [](In in) { return pad(in[0], {{7, 5}}, PadMode::reflect); }, {{3}, {1}},
              [](Arrays in) {
                const std::int64_t n = in[0].shape[0];
                return array_of({n + 12}, [&](Index i) {
                  std::int64_t at = i[0] - 7;
                  while (n > 1 && (at < 0 || at >= n)) at = at < 0 ? -at : 2 * n - 2 - at;
                  return element(in[0], {n == 1 ? 0 : at});
                });
              }),
          value};
}

std::vector<Row> rearrangements() {
  const std::vector<Shape> images{{2, 3, 4, 2}, {1, 2, 2, 1}};
  std::vector<Row> rows{
      moved(
          "repeat", "broadcast", [](In in) { return repeat(in[0], 3, 1); }, {{2, 4, 3}, {1, 0, 2}},
          [](Arrays in) {
            return array_of({in[0].shape[0], 3 * in[0].shape[1], in[0].shape[2]},
                            [&](Index i) { return element(in[0], {i[0], i[1] / 3, i[2]}); });
          }),
      moved(
          "roll of axes", "concat", [](In in) { return roll(in[0], {1, -2}, {0, 1}); }, {{3, 4}, {1, 5}},
          [](Arrays in) {
            const std::int64_t n = in[0].shape[0], m = in[0].shape[1];
            return array_of(in[0].shape, [&](Index i) { return element(in[0], {(i[0] + n - 1) % n, (i[1] + 2) % m}); });
          }),
      moved(
          "flip_up_down", "reverse", [](In in) { return flip_up_down(in[0]); }, images),
      moved("flip", "reverse", [](In in) { return flip(in[0]); }, {{3, 4}}),
      moved(
          "rot90", "reverse", [](In in) { return rot90(in[0]); }, images,
          [](Arrays in) {
            const Shape& s = in[0].shape;
            return array_of({s[0], s[2], s[1], s[3]},
                            [&](Index i) { return element(in[0], {i[0], i[2], s[2] - 1 - i[1], i[3]}); });
          }),
      moved(
          "rot90 back", "reverse", [](In in) { return rot90(in[0], -1); }, images,
          [](Arrays in) {
            const Shape& s = in[0].shape;
            return array_of({s[0], s[2], s[1], s[3]},
                            [&](Index i) { return element(in[0], {i[0], s[1] - 1 - i[2], i[1], i[3]}); });
          }),
      moved(
          "space_to_depth", "transpose", [](In in) { return space_to_depth(in[0], 2); }, {{2, 4, 6, 3}},
          [](Arrays in) {
            const Shape& s = in[0].shape;
            return array_of({s[0], s[1] / 2, s[2] / 2, 4 * s[3]}, [&](Index i) {
              const std::int64_t block = i[3] / s[3];
              return element(in[0], {i[0], 2 * i[1] + block / 2, 2 * i[2] + block % 2, i[3] % s[3]});
            });
          }),
      moved(
          "space_to_batch_nd", "transpose", [](In in) { return space_to_batch_nd(in[0], {2, 3}, {{0, 1}, {1, 1}}); },
          {{2, 3, 4, 2}, {1, 1, 1}},
          [](Arrays in) {
            const Shape& s = in[0].shape;
            Shape out{6 * s[0], (s[1] + 1) / 2, (s[2] + 2) / 3};
            if (s.rank() == 4) out.push_back(s[3]);
            return array_of(out, [&](Index i) {
              const std::int64_t block = i[0] / s[0], row = 2 * i[1] + block / 3, column = 3 * i[2] + block % 3 - 1;
              if (row >= s[1] || column < 0 || column >= s[2]) return 0.0;
              std::vector<std::int64_t> at{i[0] % s[0], row, column};
              if (s.rank() == 4) at.push_back(i[3]);
              return element(in[0], Index(at));
            });
          }),
      moved(
          "batch_to_space_nd", "transpose",
          [](In in) {
            return batch_to_space_nd(space_to_batch_nd(in[0], {2, 3}, {{0, 1}, {1, 1}}), {2, 3}, {{0, 1}, {1, 1}});
          },
          {{2, 3, 4}}, [](Arrays in) { return in[0]; })};
  for (const bool channels_first : {false, true})
    for (const bool depth_first : {false, true})
      rows.push_back(moved(
          text("depth_to_space ", channels_first ? "NCHW " : "NHWC ", depth_first ? "DCR" : "CRD"), "transpose",
          [=](In in) {
            const BlockOptions options{channels_first, depth_first};
            return space_to_depth(depth_to_space(in[0], 2, options), 2, options);
          },
          {{2, 4, 4, 8}}, [](Arrays in) { return in[0]; }));
  Row sequences = exact_row(
      "reverse_sequence", {"gather"}, [](In in) { return reverse_sequence(in[0], in[1], 0, 1); },
      {{}, indices_in(0, 3)}, {{{3, 2, 2}, {2}}, {{4, 5}, {5}}},
      [](Arrays in) {
        return array_of(in[0].shape, [&](Index i) {
          const auto length = static_cast<std::int64_t>(in[1].values[static_cast<std::size_t>(i[1])]);
          std::vector<std::int64_t> at(i.begin(), i.end());
          if (at[0] < length) at[0] = length - 1 - at[0];
          return element(in[0], Index(at));
        });
      });
  rows.push_back(sequences);
  return rows;
}

std::vector<Row> matrices() {
  const std::vector<Shape> shapes{{2, 3, 4}, {4, 3}};
  const auto kept = [](const std::function<bool(std::int64_t)>& keeps) {
    return [=](Arrays in) {
      return array_of(in[0].shape,
                      [&](Index i) { return keeps(i[i.size() - 1] - i[i.size() - 2]) ? element(in[0], i) : 0; });
    };
  };
  std::vector<Row> rows{
      moved(
          "band_part", "iota", [](In in) { return band_part(in[0], 1, 0); }, shapes,
          kept([](std::int64_t k) { return k >= -1 && k <= 0; })),
      moved(
          "triu", "iota", [](In in) { return triu(in[0], 1); }, shapes, kept([](std::int64_t k) { return k >= 1; })),
      moved(
          "tril", "iota", [](In in) { return tril(in[0], -1); }, shapes, kept([](std::int64_t k) { return k <= -1; })),
      moved(
          "diag", "iota", [](In in) { return diag(in[0], -1); }, {{2, 3}, {0}},
          [](Arrays in) {
            Shape shape = in[0].shape;
            const std::int64_t n = shape.back() + 1;
            shape.set(-1, n);
            shape.push_back(n);
            return array_of(shape, [&](Index i) {
              const std::int64_t row = i[i.size() - 2], column = i[i.size() - 1];
              if (column != row - 1) return 0.0;
              std::vector<std::int64_t> at(i.begin(), i.end() - 2);
              at.push_back(column);
              return element(in[0], Index(at));
            });
          }),
      moved(
          "diag_part", "strided_slice", [](In in) { return diag_part(in[0], 1); }, shapes,
          [](Arrays in) {
            Shape shape = in[0].shape;
            shape.erase(-1);
            shape.set(-1, std::min(in[0].shape[-2], in[0].shape[-1] - 1));
            return array_of(shape, [&](Index i) {
              std::vector<std::int64_t> at(i.begin(), i.end());
              at.push_back(at.back() + 1);
              return element(in[0], Index(at));
            });
          }),
      moved("trace", "strided_slice", [](In in) { return trace(in[0]); }, shapes)};
  rows.back().dtypes = {f64, i64};
  rows.back().tolerance = 8;
  rows.back().magnitude = 8;
  rows.push_back(exact_row(
      "set_diag", {"iota"}, [](In in) { return set_diag(in[0], in[1], -1); }, {{}, {}},
      {{{2, 4, 3}, {2, 3}}, {{2, 2}, {1}}},
      [](Arrays in) {
        return array_of(in[0].shape, [&](Index i) {
          if (i[i.size() - 1] != i[i.size() - 2] - 1) return element(in[0], i);
          std::vector<std::int64_t> at(i.begin(), i.end() - 2);
          at.push_back(i[i.size() - 1]);
          return element(in[1], Index(at));
        });
      }));
  return rows;
}

std::vector<Row> others() {
  Row mask = exact_row(
      "sequence_mask", {"iota"}, [](In in) { return sequence_mask(in[0], 4); }, {indices_in(-1, 5)}, {{{3}}, {{}}},
      [](Arrays in) {
        Shape shape = in[0].shape;
        shape.push_back(4);
        return array_of(shape, [&](Index i) {
          return static_cast<double>(i[i.size() - 1]) < element(in[0], i.first(i.size() - 1));
        });
      });
  mask.dtypes = {f64};
  mask.differentiable = false;
  Row hot = exact_row(
      "one_hot of values", {"iota"},
      [](In in) { return one_hot(in[0], 3, in[1], in[2], {.axis = 0, .count_from_end = true}); },
      {indices_in(-4, 4), {}, {}}, {{{5}, {}, {1}}},
      [](Arrays in) {
        return array_of({3, 5}, [&](Index i) {
          const double label = in[0].values[static_cast<std::size_t>(i[1])];
          return (label < 0 ? label + 3 : label) == static_cast<double>(i[0]) ? in[1].values[0] : in[2].values[0];
        });
      });
  hot.tolerance = 8;
  Row grid = exact_row(
      "meshgrid ij", {"broadcast"}, [](In in) { return meshgrid({in.begin(), in.end()}, GridIndexing::ij)[1]; },
      {{.has_gradient = false}, {}}, {{{3}, {2}}},
      [](Arrays in) { return array_of({3, 2}, [&](Index i) { return element(in[1], {i[1]}); }); });
  Row eyes = exact_row(
      "eye of rows and columns", {"iota"}, [](In) { return eye(3, 5, f32, 1); }, {}, {{}},
      [](Arrays) { return array_of({3, 5}, [](Index i) { return i[1] - i[0] == 1; }); });
  Row steps = exact_row(
      "range in steps", {"iota"}, [](In) { return range(7, -4, -3); }, {}, {{}},
      [](Arrays) { return Array{{4}, {7, 4, 1, -2}}; });
  Row fractions = exact_row(
      "range of fractions", {"iota"}, [](In) { return range(0.5, 2.0, 0.25, f64); }, {}, {{}},
      [](Arrays) { return Array{{6}, {0.5, 0.75, 1, 1.25, 1.5, 1.75}}; });
  for (Row* row : {&eyes, &steps, &fractions}) {
    row->dtypes = {f32};
    row->differentiable = false;
  }
  Row bits = exact_row(
      "bitcast", {"bitcast"}, [](In in) { return bitcast(in[0], i32); }, {{}}, {{{7}}, {{}}, {{0, 2}}},
      [](Arrays in) {
        Array out = in[0];
        for (double& x : out.values) x = std::bit_cast<std::int32_t>(static_cast<float>(x));
        return out;
      });
  bits.dtypes = {f32};
  bits.differentiable = false;
  return {mask, hot, grid, eyes, steps, fractions, bits};
}

const bool registered = add_rows(slices()) && add_rows(paddings()) && add_rows(rearrangements()) &&
                        add_rows(matrices()) && add_rows(others());

}  // namespace
}  // namespace gradus::rows::rows_layout
