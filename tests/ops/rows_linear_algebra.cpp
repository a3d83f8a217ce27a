/// Rows of products in other forms, of einsum, and of small dense linear algebra.
#include "gradus/ops/constant.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/linear_algebra_ops.h"
#include "gradus/ops/solve.h"
#include "gradus/ops/diagonals.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "tests/ops/rows_moves.h"

namespace gradus::rows::rows_linear_algebra {
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

/// Second gradients of determinants of more than 5 rows divide by the determinant, and programs repeat numbers.
bool is_small(Arrays in) { return in[0].shape[-1] <= 5; }

std::vector<Row> dense() {
  Row determinants{.name = "det", .covers = {"det"}, .apply = [](In in) { return det(in[0]); }, .operands = {{}}};
  determinants.shapes = {{{2, 3, 3}}, {{1, 1}}, {{2, 2}}, {{0, 0}}, {{6, 6}}};
  determinants.tolerance = 256;
  determinants.magnitude = 32;
  determinants.slack = 64;
  determinants.is_smooth_at = is_small;
  Row adjugates{.name = "adjugate", .covers = {"adjugate"}, .apply = [](In in) { return apply(Adjugate{}, in[0]); }};
  adjugates.operands = {{}};
  adjugates.takes_narrow = false;
  adjugates.shapes = {{{2, 3, 3}}, {{1, 1}}, {{2, 2}}, {{0, 0}}, {{6, 6}}};
  adjugates.tolerance = 256;
  adjugates.magnitude = 32;
  adjugates.slack = 64;
  adjugates.is_smooth_at = is_small;
  Row inverses{.name = "inverse", .covers = {"inverse"}, .operands = {{-0.2, 0.2}}};
  // Of diagonally dominant matrices.
  inverses.apply = [](In in) { return inverse(in[0] + eye(in[0].shape()[-1], in[0].dtype())); };
  inverses.shapes = {{{2, 3, 3}}, {{1, 1}}, {{0, 2, 2}}};
  inverses.tolerance = 4096;
  inverses.magnitude = 32;
  return {determinants, adjugates, inverses};
}

/// x x' + 1, which is positive definite.
Tensor definite(const Tensor& x) { return matmul(x, transpose(x)) + eye(x.shape()[-2], x.dtype()); }

Row system(std::string name, std::function<Tensor(In)> apply, std::vector<std::vector<Shape>> shapes,
           std::vector<std::string> covers) {
  Row row{.name = std::move(name), .covers = std::move(covers), .apply = std::move(apply)};
  row.operands.assign(shapes[0].size(), Operand{-0.3, 0.3});
  row.shapes = std::move(shapes);
  row.tolerance = 4096, row.magnitude = 32, row.slack = 16;
  return row;
}

std::vector<Row> systems() {
  const std::vector<std::vector<Shape>> pairs{
      {{2, 3, 3}, {2, 3, 2}}, {{3, 3}, {2, 3, 1}}, {{1, 1}, {1, 4}}, {{0, 2, 2}, {0, 2, 1}}, {{2, 2}, {2, 0}}};
  const auto beside_one = [](const Tensor& x) { return x + eye(x.shape()[-2], x.dtype()); };
  std::vector<Row> rows{
      system("solve", [=](In in) { return solve(beside_one(in[0]), in[1]); }, pairs, {"solve"}),
      system("solve, adjoint", [=](In in) { return solve(beside_one(in[0]), in[1], {.adjoint = true}); }, pairs, {}),
      system("triangular_solve", [=](In in) { return triangular_solve(beside_one(in[0]), in[1]); }, pairs,
             {"triangular_solve"}),
      system("triangular_solve, upper",
             [=](In in) { return triangular_solve(beside_one(in[0]), in[1], {.lower = false, .adjoint = true}); },
             pairs, {}),
      system("cholesky", [](In in) { return cholesky(definite(in[0])); }, {{{2, 3, 3}}, {{1, 1}}, {{0, 2, 2}}},
             {"cholesky"}),
      system("cholesky_solve", [](In in) { return cholesky_solve(cholesky(definite(in[0])), in[1]); }, pairs, {}),
      system("logdet", [](In in) { return logdet(definite(in[0])); }, {{{2, 3, 3}}, {{1, 1}}}, {}),
      system("slogdet",
             [=](In in) {
               const auto [sign, size] = slogdet(beside_one(in[0]));
               return sign * size;
             },
             {{{2, 3, 3}}, {{1, 1}}}, {"scaled_det"}),
      system("lstsq", [](In in) { return lstsq(in[0], in[1], 0.5); }, {{{2, 4, 2}, {2, 4, 1}}, {{2, 3}, {2, 2}}}, {}),
      system("tensor_diag", [](In in) { return tensor_diag(in[0]); }, {{{2, 3}}, {{4}}, {{0}}}, {}),
      system("tensor_diag_part", [](In in) { return tensor_diag_part(in[0]); }, {{{2, 3, 2, 3}}, {{4, 4}}}, {}),
      system("matrix_transpose", [](In in) { return adjoint(matrix_transpose(matrix_transpose(in[0]))); },
             {{{2, 3, 4}}, {{2, 1}}}, {}),
  };
  rows[0].mistakes = {{[] { solve(ones({2, 3}), ones({2, 1})); }, "solve"},
                      {[] { solve(ones({2, 2}), ones({3, 1})); }, "solve"},
                      {[] { solve(ones({2, 2}), ones({2, 1}, f64)); }, "solve"}};
  rows[1].called = "solve", rows[3].called = "triangular_solve";
  return rows;
}

const bool registered = add_rows(products()) && add_rows(dense()) && add_rows(systems());

}  // namespace
}  // namespace gradus::rows::rows_linear_algebra
