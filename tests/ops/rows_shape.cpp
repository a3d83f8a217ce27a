/// Rows of the ops that rearrange elements, of products, and of indexing.
#include <cmath>
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/shape.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_shape {
namespace {

using Index = std::span<const std::int64_t>;
const std::vector<DType> anything{f32, f64, i64, i32, u8, boolean};

double at(const Array& x, std::initializer_list<std::int64_t> index) {
  std::int64_t flat = 0;
  int axis = 0;
  for (std::int64_t i : index) flat = flat * x.shape[axis++] + i;
  return x.values[static_cast<std::size_t>(flat)];
}

/// The array whose elements are f(index).
Array generated(const Shape& shape, const std::function<double(Index)>& f) {
  Array out{shape, {}};
  for_each_index(shape, [&](Index index, std::int64_t) { out.values.push_back(f(index)); });
  return out;
}

/// A row of an op of one operand, whose reference the oracle gives unless there is one.
Row moves(std::string name, std::vector<std::string> covers, std::function<Tensor(In)> apply, std::vector<Shape> shapes,
          std::function<Array(Arrays)> reference = {}) {
  Row row{.name = std::move(name), .covers = std::move(covers), .apply = std::move(apply), .operands = {{}}};
  for (const Shape& shape : shapes) row.shapes.push_back({shape});
  row.dtypes = anything;
  row.reference = std::move(reference);
  row.tolerance = 0;
  return row;
}

Array transposed(Arrays in) {
  const Array& x = in[0];
  return generated({x.shape[2], x.shape[0], x.shape[1]}, [&](Index i) { return at(x, {i[1], i[2], i[0]}); });
}
Array reversed(Arrays in) {
  const Array& x = in[0];
  return generated(x.shape, [&](Index i) { return at(x, {x.shape[0] - 1 - i[0], i[1], x.shape[2] - 1 - i[2]}); });
}
Array middle(Arrays in) {
  const Array& x = in[0];
  return generated({x.shape[0] - 1, 2}, [&](Index i) { return at(x, {i[0] + 1, i[1] + 1}); });
}
Array tiled(Arrays in) {
  const Array& x = in[0];
  return generated({2 * x.shape[0], 3 * x.shape[1]},
                   [&](Index i) { return at(x, {i[0] % x.shape[0], i[1] % x.shape[1]}); });
}
Array rolled(Arrays in) {
  const Array& x = in[0];
  const std::int64_t n = x.shape[1];
  return generated(x.shape, [&](Index i) { return at(x, {i[0], (i[1] + 2 * n - 2) % n}); });
}
Array padded(Arrays in) {
  const Array& x = in[0];
  return generated({x.shape[0] + 3, x.shape[1] + 1}, [&](Index i) {
    const std::int64_t row = i[0] - 1;
    return row < 0 || row >= x.shape[0] || i[1] >= x.shape[1] ? 1 : at(x, {row, i[1]});
  });
}

std::vector<Row> rearrangements() {
  const std::vector<Shape> cubes{{2, 3, 4}, {1, 1, 1}, {7, 1, 17}, {3, 0, 2}, {5, 8, 9}, {10, 10, 10}};
  const std::vector<Shape> planes{{3, 4}, {2, 3}, {1, 7}, {17, 8}, {4, 1000}};
  return {
      moves(
          "reshape", {"reshape"}, [](In in) { return reshape(in[0], {-1}); }, cubes),
      moves(
          "expand_dims", {"reshape"}, [](In in) { return expand_dims(in[0], 1); }, cubes),
      moves("squeeze", {"reshape"}, [](In in) { return squeeze(in[0]); }, {{2, 1, 3}, {1}, {1, 1, 4}}),
      moves("broadcast_to", {"broadcast"}, [](In in) { return broadcast_to(in[0], {2, 3, 4}); },
            {{3, 1}, {4}, {1, 3, 4}, {}, {2, 1, 1}}),
      moves(
          "transpose", {"transpose"}, [](In in) { return transpose(in[0], {2, 0, 1}); }, cubes, transposed),
      moves(
          "transpose of matrices", {"transpose"}, [](In in) { return transpose(in[0]); }, cubes),
      moves(
          "reverse", {"reverse"}, [](In in) { return reverse(in[0], {0, -1}); }, cubes, reversed),
      moves(
          "slice", {"slice"}, [](In in) { return slice(in[0], {1, 1}, {-1, 2}); }, {{3, 4}, {2, 3}, {17, 9}, {1, 3}},
          middle),
      moves(
          "row", {"slice"}, [](In in) { return in[0][-1]; }, planes),
      moves(
          "flip_left_right", {"reverse"}, [](In in) { return flip_left_right(in[0]); }, cubes),
      moves(
          "tile", {"broadcast"}, [](In in) { return tile(in[0], {2, 3}); }, planes, tiled),
      moves(
          "roll", {"concat"}, [](In in) { return roll(in[0], 2, 1); }, planes, rolled),
      moves(
          "pad", {"concat"}, [](In in) { return pad(in[0], {{1, 2}, {0, 1}}, 1); }, planes, padded),
      moves("split", {"slice"}, [](In in) { return split(in[0], 2, 0)[1]; }, {{2, 3}, {4}, {6, 1000}}),
      moves("unstack", {"slice"}, [](In in) { return unstack(in[0], -1).at(1); }, {{2, 3}, {4}, {17, 8}}),
  };
}

Array joined(Arrays in) {
  Array out{in[0].shape, {}};
  std::int64_t columns = 0;
  for (const Array& x : in) columns += x.shape[1];
  out.shape.set(1, columns);
  for (std::int64_t row = 0; row < out.shape[0]; ++row)
    for (const Array& x : in)
      for (std::int64_t column = 0; column < x.shape[1]; ++column) out.values.push_back(at(x, {row, column}));
  return out;
}
Array stacked(Arrays in) {
  Array out{{}, {}};
  for (std::int64_t d : in[0].shape) out.shape.push_back(d);
  out.shape.push_back(2);
  for (std::size_t i = 0; i < in[0].values.size(); ++i)
    for (const Array& x : in) out.values.push_back(x.values[i]);
  return out;
}

std::vector<Row> joins() {
  Row concat_row = moves("concat", {"concat"}, [](In in) { return concat({in.begin(), in.end()}, 1); }, {}, joined);
  concat_row.operands = {{}, {}, {}};
  concat_row.shapes = {
      {{2, 3}, {2, 1}, {2, 4}}, {{1, 1}, {1, 0}, {1, 7}}, {{0, 3}, {0, 4}, {0, 1}}, {{17, 8}, {17, 1000}, {17, 3}}};
  Row stack_row = moves("stack", {"concat"}, [](In in) { return stack({in.begin(), in.end()}, -1); }, {}, stacked);
  stack_row.operands = {{}, {}};
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 5}, Shape{0, 2}, Shape{1000}})
    stack_row.shapes.push_back({shape, shape});
  Row grid = moves("meshgrid", {"broadcast"}, [](In in) { return meshgrid({in.begin(), in.end()})[0]; }, {});
  grid.operands = {{}, {.has_gradient = false}};
  grid.shapes = {{{3}, {2}}, {{1}, {7}}, {{17}, {8}}};
  return {concat_row, stack_row, grid};
}

Array product(Arrays in) {
  const Array &a = in[0], &b = in[1];
  const std::int64_t m = a.shape[-2], k = a.shape[-1], n = b.shape[-1];
  Shape batch_a = a.shape, batch_b = b.shape;
  for (int i = 0; i < 2; ++i) batch_a.erase(-1), batch_b.erase(-1);
  const Shape batches = broadcast_shape(batch_a, batch_b, "reference");
  Array out{batches, {}};
  out.shape.push_back(m);
  out.shape.push_back(n);
  for_each_index(batches, [&](Index index, std::int64_t) {
    const std::int64_t at_a = broadcast_offset(batch_a, index) * m * k, at_b = broadcast_offset(batch_b, index) * k * n;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t p = 0; p < k; ++p)
          sum += a.values[static_cast<std::size_t>(at_a + i * k + p)] *
                 b.values[static_cast<std::size_t>(at_b + p * n + j)];
        out.values.push_back(sum);
      }
  });
  return out;
}

std::vector<Row> products() {
  Row matrices{.name = "matmul", .covers = {"matmul"}, .apply = [](In in) { return matmul(in[0], in[1]); }};
  matrices.operands = {{}, {}};
  matrices.shapes = {{{2, 3}, {3, 4}},    {{1, 1}, {1, 1}},          {{7, 8}, {8, 17}},      {{17, 1000}, {1000, 3}},
                     {{0, 3}, {3, 2}},    {{2, 0}, {0, 3}},          {{2, 2, 3}, {2, 3, 4}}, {{2, 2, 3}, {3, 4}},
                     {{2, 3}, {2, 3, 4}}, {{2, 1, 2, 3}, {3, 3, 2}}, {{1, 4, 3}, {5, 3, 2}}, {{33, 64}, {64, 40}}};
  matrices.dtypes = {f32, f64, i64, i32, u32};
  matrices.takes_other_integers = false;
  matrices.reference = product;
  matrices.tolerance = 32;
  matrices.magnitude = 64;
  Row heads = matrices;
  heads.name = "einsum";
  heads.apply = [](In in) { return einsum("bqhd,bkhd->bhqk", {in[0], in[1]}); };
  heads.shapes = {{{1, 2, 2, 3}, {1, 3, 2, 3}}, {{2, 7, 3, 8}, {2, 5, 3, 8}}};
  heads.reference = [](Arrays in) {
    const Array &a = in[0], &b = in[1];
    return generated({a.shape[0], a.shape[2], a.shape[1], b.shape[1]}, [&](Index i) {
      double sum = 0;
      for (std::int64_t d = 0; d < a.shape[3]; ++d) sum += at(a, {i[0], i[2], i[1], d}) * at(b, {i[0], i[3], i[1], d});
      return sum;
    });
  };
  return {matrices, heads};
}

/// x: [outer, n, inner] by one vector of indices along axis 1.
Array gathered(Arrays in) {
  const Array &x = in[0], &indices = in[1];
  return generated({x.shape[0], indices.shape[0], x.shape[2]}, [&](Index i) {
    return at(x, {i[0], static_cast<std::int64_t>(indices.values[static_cast<std::size_t>(i[1])]), i[2]});
  });
}
/// x: [n, inner], indices: [places].
Array indexed(Arrays in) {
  const Array &x = in[0], &indices = in[1];
  return generated({indices.shape[0], 1, x.shape[1]}, [&](Index i) {
    return at(x, {static_cast<std::int64_t>(indices.values[static_cast<std::size_t>(i[0])]), i[2]});
  });
}
Array gathered_nd(Arrays in) {
  const Array &x = in[0], &indices = in[1];
  return generated({indices.shape[0], x.shape[2]}, [&](Index i) {
    return at(x, {static_cast<std::int64_t>(at(indices, {i[0], 0})), static_cast<std::int64_t>(at(indices, {i[0], 1})),
                  i[1]});
  });
}
/// indices: [k], updates: [outer, k, inner] -> [outer, 5, inner].
Array scattered(Arrays in) {
  const Array &indices = in[0], &updates = in[1];
  const std::int64_t outer = updates.shape[0], inner = updates.shape[2];
  Array out{{outer, 5, inner}, std::vector<double>(static_cast<std::size_t>(outer * 5 * inner))};
  for_each_index(updates.shape, [&](Index i, std::int64_t flat) {
    const auto row = static_cast<std::int64_t>(indices.values[static_cast<std::size_t>(i[1])]);
    out.values[static_cast<std::size_t>((i[0] * 5 + row) * inner + i[2])] +=
        updates.values[static_cast<std::size_t>(flat)];
  });
  return out;
}
Array hot(Arrays in) {
  Array out{in[0].shape, {}};
  out.shape.push_back(10);
  for (double label : in[0].values)
    for (int k = 0; k < 10; ++k) out.values.push_back(label == k);
  return out;
}

std::vector<Row> indexing() {
  const Operand places{.low = 0, .high = 4, .dtype = i32, .has_gradient = false};
  const Operand wide_places{.low = 0, .high = 4, .dtype = i64, .has_gradient = false};
  Row gather_row = moves("gather", {"gather"}, [](In in) { return gather(in[0], in[1], 1); }, {}, gathered);
  gather_row.operands = {{}, places};
  gather_row.shapes = {{{2, 5, 3}, {4}}, {{1, 5, 1}, {7}}, {{3, 6, 0}, {2}}, {{2, 5, 17}, {0}}, {{4, 9, 8}, {300}}};
  Row gather_nd_row =
      moves("gather_nd", {"check_range"}, [](In in) { return gather_nd(in[0], in[1]); }, {}, gathered_nd);
  gather_nd_row.operands = {{}, wide_places};
  gather_nd_row.shapes = {{{5, 6, 2}, {3, 2}}, {{5, 5, 1}, {1, 2}}, {{7, 8, 17}, {40, 2}}};
  Row indexed_row = moves(
      "indexed_rows", {"indexed_rows", "check_indices"},
      [](In in) {
        const Shape shape{in[1].shape()[0], 1, in[0].shape()[1]};
        return apply(IndexedRows{shape}, in[0], apply(CheckIndices{in[0].shape()[0]}, in[1]));
      },
      {}, indexed);
  indexed_row.operands = {{}, wide_places};
  indexed_row.shapes = {{{5, 2}, {4}}, {{5, 1}, {7}}, {{6, 17}, {3}}, {{5, 0}, {2}}, {{9, 40}, {300}}, {{6, 3}, {0}}};
  Row scatter_row = moves(
      "scatter_add", {"scatter_add"}, [](In in) { return apply(ScatterAdd{-2, 5}, in[0], in[1]); }, {}, scattered);
  scatter_row.operands = {places, {}};
  scatter_row.shapes = {{{4}, {2, 4, 3}}, {{7}, {1, 7, 1}}, {{0}, {2, 0, 3}}, {{300}, {2, 300, 17}}};
  scatter_row.dtypes = {f32, f64, i64, i32};
  scatter_row.tolerance = 64;
  scatter_row.magnitude = 8;
  Row check_row = moves(
      "check_range", {"check_range"}, [](In in) { return check_range(in[0], 5, true); }, {{7}, {}, {0}, {3, 400}},
      [](Arrays in) { return in[0]; });
  check_row.operands = {{.low = 0, .high = 4}};
  check_row.dtypes = {i64, i32, u8};
  check_row.differentiable = false;
  Row hot_row =
      moves("one_hot", {"iota"}, [](In in) { return one_hot(in[0], 10); }, {{7}, {}, {2, 3}, {0}, {200}}, hot);
  hot_row.operands = {{.low = -1, .high = 11}};
  hot_row.dtypes = {i64, i32};
  hot_row.differentiable = false;
  return {gather_row, gather_nd_row, indexed_row, scatter_row, check_row, hot_row};
}

/// Ops without operands.
std::vector<Row> functions_of_an_index() {
  std::vector<Row> rows;
  for (DType t : {f32, f64, i64, i32, u8}) {
    rows.push_back({.name = text("range ", t), .covers = {"iota"}, .apply = [t](In) { return range(100, t); }});
    rows.back().reference = [](Arrays) { return generated({100}, [](Index i) { return static_cast<double>(i[0]); }); };
  }
  rows.push_back({.name = "eye", .covers = {"iota"}, .apply = [](In) { return eye(7); }});
  rows.back().reference = [](Arrays) { return generated({7, 7}, [](Index i) { return i[0] == i[1]; }); };
  for (Row& row : rows) {
    row.shapes = {{}};
    row.dtypes = {f32};
    row.differentiable = false;
  }
  return rows;
}

const bool registered = add_rows(rearrangements()) && add_rows(joins()) && add_rows(products()) &&
                        add_rows(indexing()) && add_rows(functions_of_an_index());

}  // namespace
}  // namespace gradus::rows::rows_shape
