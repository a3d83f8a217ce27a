/// Rows of products in other forms, of einsum, and of small dense linear algebra.
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/index.h"
#include "gradus/ops/matmul.h"
#include "tests/ops/rows_moves.h"

namespace gradus::rows {
namespace {

Row product(std::string name, std::function<Tensor(In)> apply, std::vector<std::vector<Shape>> shapes,
            std::function<Array(Arrays)> reference = {}) {
  const std::size_t operands = shapes[0].size();
  Row row = exact_row(std::move(name), {"matmul"}, std::move(apply), std::vector<Operand>(operands), std::move(shapes),
                      std::move(reference));
  row.dtypes = {f64, i64};
  row.tolerance = 64;
  row.magnitude = 64;
  return row;
}

std::vector<Row> products() {
  Row diagonals = product(
      "einsum of diagonals", [](In in) { return einsum("...ii,jij->...ij", {in.begin(), in.end()}); },
      {{{2, 3, 3}, {2, 3, 2}}},
      [](Arrays in) {
        return array_of({2, 3, 2}, [&](Index i) {
          return element(in[0], {i[0], i[1], i[1]}) * element(in[1], {i[2], i[1], i[2]});
        });
      });
  diagonals.covers = {"strided_slice"};
  return {product(
              "matvec", [](In in) { return matvec(in[0], in[1]); }, {{{2, 3, 4}, {2, 4}}},
              [](Arrays in) {
                return array_of({2, 3}, [&](Index i) {
                  double sum = 0;
                  for (std::int64_t k = 0; k < 4; ++k)
                    sum += element(in[0], {i[0], i[1], k}) * element(in[1], {i[0], k});
                  return sum;
                });
              }),
          product("matmul of transposed operands",
                  [](In in) { return matmul(in[0], in[1], MatmulOptions{.transpose_a = true, .transpose_b = true}); },
                  {{{2, 3, 2}, {4, 3}}}),
          product("matmul of vectors", [](In in) { return numpy_matmul(in[0], in[1]); },
                  {{{3}, {3}}, {{3}, {2, 3, 2}}, {{2, 2, 3}, {3}}}),
          product(
              "tensordot", [](In in) { return tensordot(in[0], in[1], {0, 2}, {1, 0}); }, {{{2, 3, 4}, {4, 2, 3}}},
              [](Arrays in) {
                return array_of({3, 3}, [&](Index i) {
                  double sum = 0;
                  for (std::int64_t a = 0; a < 2; ++a)
                    for (std::int64_t b = 0; b < 4; ++b)
                      sum += element(in[0], {a, i[0], b}) * element(in[1], {b, a, i[1]});
                  return sum;
                });
              }),
          product(
              "gemm",
              [](In in) {
                return gemm(in[0], in[1], in[2], {.alpha = 2, .beta = -3, .transpose_a = true, .transpose_b = true});
              },
              {{{3, 2}, {4, 3}, {4}}, {{3, 2}, {1, 3}, {2, 1}}},
              [](Arrays in) {
                return array_of({2, in[1].shape[0]}, [&](Index i) {
                  double sum = 0;
                  for (std::int64_t k = 0; k < 3; ++k) sum += element(in[0], {k, i[0]}) * element(in[1], {i[1], k});
                  return 2 * sum - 3 * element(in[2], i);
                });
              }),
          product(
              "einsum of three", [](In in) { return einsum("ab,bc,cd->da", {in.begin(), in.end()}); },
              {{{2, 3}, {3, 4}, {4, 1}}},
              [](Arrays in) {
                return array_of({1, 2}, [&](Index i) {
                  double sum = 0;
                  for (std::int64_t b = 0; b < 3; ++b)
                    for (std::int64_t c = 0; c < 4; ++c)
                      sum += element(in[0], {i[1], b}) * element(in[1], {b, c}) * element(in[2], {c, i[0]});
                  return sum;
                });
              })};
}

std::vector<Row> dense() {
  Row determinants{.name = "det", .covers = {"det"}, .apply = [](In in) { return det(in[0]); }, .operands = {{}}};
  determinants.shapes = {{{2, 3, 3}}, {{1, 1}}, {{2, 2}}, {{0, 0}}, {{6, 6}}};
  determinants.tolerance = 256;
  determinants.magnitude = 32;
  determinants.slack = 64;
  Row inverses{.name = "inverse", .covers = {"inverse"}, .operands = {{-0.2, 0.2}}};
  // Of diagonally dominant matrices.
  inverses.apply = [](In in) { return inverse(in[0] + eye(in[0].shape()[-1], in[0].dtype())); };
  inverses.shapes = {{{2, 3, 3}}, {{1, 1}}, {{0, 2, 2}}};
  inverses.tolerance = 4096;
  inverses.magnitude = 32;
  return {determinants, inverses};
}

const bool registered = add_rows(products()) && add_rows(dense());

}  // namespace
}  // namespace gradus::rows
