/// Rows of decompositions. Signs of vectors are free, so results are made of which they drop out.
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/decompositions.h"
#include "gradus/ops/diagonals.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_decompositions {
namespace {

using CasesOfMatrices = std::vector<std::vector<Shape>>;

/// x with 1, 2, 3 ... added on the diagonal, so that values and pivots lie apart.
Tensor values_apart(const Tensor& x) {
  const std::int64_t m = x.shape()[-2], n = x.shape()[-1];
  return x + eye(m, n, x.dtype()) * cast(iota_along(2, 1, n, i32) + 1, x.dtype());
}
Tensor symmetric_values_apart(const Tensor& x) { return values_apart(x + transpose(x)); }
Tensor as_row_vector(const Tensor& x) { return expand_dims(x, -2); }
Tensor as_column_vector(const Tensor& x) { return expand_dims(x, -1); }
/// The projector on the columns of x behind the first `k`, of which there may be none.
Tensor projector_on_columns_behind(const Tensor& x, std::int64_t k) {
  const Tensor place = iota_along(1, 0, x.shape()[-1], i32), limit = reduce_sum(ones({k}, i32));
  const Tensor rest = x * cast(place >= limit, x.dtype());
  return matmul(rest, transpose(rest));
}

Row decomposition_row(std::string name, std::function<Tensor(In)> apply, CasesOfMatrices shapes,
                      std::vector<std::string> covers, std::string called) {
  Row row{.name = std::move(name), .covers = std::move(covers), .apply = std::move(apply)};
  row.operands.assign(shapes[0].size(), Operand{-0.3, 0.3});
  row.shapes = std::move(shapes);
  row.called = std::move(called);
  row.tolerance = 4096, row.magnitude = 32, row.slack = 16;
  return row;
}

const CasesOfMatrices square_cases{{{2, 3, 3}}, {{1, 1}}, {{0, 2, 2}}, {{0, 0}}};
const CasesOfMatrices matrix_cases{{{2, 3, 3}}, {{4, 2}}, {{2, 4}}, {{1, 1}}, {{0, 2, 2}}};

std::vector<Row> rows_of_factors() {
  return {decomposition_row(
              "qr",
              [](In in) {
                const auto [q, r] = qr(values_apart(in[0]));
                const Tensor signs = sign(diag_part(r));
                return concat({q * as_row_vector(signs), transpose(r * as_column_vector(signs))}, -2);
              },
              matrix_cases, {"qr"}, "qr"),
          decomposition_row(
              "qr, full_matrices",
              [](In in) {
                return projector_on_columns_behind(qr(values_apart(in[0]), {.full_matrices = true}).q,
                                                   in[0].shape()[-1]);
              },
              {{{4, 2}}, {{2, 3, 1}}}, {}, "qr"),
          decomposition_row(
              "lu",
              [](In in) {
                const auto [both, p] = lu(roll(values_apart(in[0]), 1, -2));
                return both + as_column_vector(cast(p, in[0].dtype()));
              },
              square_cases, {"lu"}, "lu"),
          decomposition_row(
              "lu_solve",
              [](In in) {
                const auto [both, p] = lu(roll(values_apart(in[0]), 1, -2), i64);
                return lu_solve(both, p, in[1]);
              },
              {{{2, 3, 3}, {2, 3, 2}}, {{1, 1}, {1, 4}}}, {}, "lu"),
          decomposition_row(
              "lu_reconstruct",
              [](In in) {
                const auto [both, p] = lu(roll(values_apart(in[0]), 1, -2));
                return lu_reconstruct(both, p);
              },
              {{{2, 3, 3}}, {{1, 1}}}, {}, "lu")};
}

std::vector<Row> rows_of_spectra() {
  return {
      decomposition_row(
          "eigh",
          [](In in) {
            const auto [e, v] = eigh(symmetric_values_apart(in[0]));
            return matmul(v * as_row_vector(sin(e)), transpose(v)) + as_row_vector(e);
          },
          square_cases, {"eigh"}, "eigh"),
      decomposition_row(
          "eigvalsh", [](In in) { return eigvalsh(symmetric_values_apart(in[0])); }, square_cases, {}, "eigvalsh"),
      decomposition_row(
          "svd",
          [](In in) {
            const auto [s, u, v] = svd(values_apart(in[0]));
            return matmul(u * as_row_vector(sin(s)), transpose(v)) +
                   as_row_vector(reduce_sum(s * s, {.axis = {-1}, .keepdims = true}));
          },
          matrix_cases, {"svd"}, "svd"),
      decomposition_row(
          "svd, full_matrices",
          [](In in) {
            return projector_on_columns_behind(svd(values_apart(in[0]), {.full_matrices = true}).u, in[0].shape()[-1]);
          },
          {{{4, 2}}, {{2, 3, 1}}}, {}, "svd"),
      decomposition_row("svdvals", [](In in) { return svdvals(values_apart(in[0])); }, matrix_cases, {}, "svdvals")};
}

std::vector<Row> rows_of_matrix_functions() {
  Row low_rank = decomposition_row(
      "pinv of deficient rank", [](In in) { return pinv(matmul(in[0], in[1])); }, {{{2, 3, 1}, {2, 1, 4}}}, {},
      "matmul");
  low_rank.operands.assign(2, Operand{0.5, 1.5});
  low_rank.takes_narrow = false;  // a product that is rounded has another rank
  Row rank = decomposition_row(
      "matrix_rank", [](In in) { return matrix_rank(values_apart(in[0])); }, matrix_cases, {}, "matrix_rank");
  rank.differentiable = false;
  return {decomposition_row(
              "pinv", [](In in) { return pinv(values_apart(in[0])); }, matrix_cases, {"pinv"}, "pinv"),
          decomposition_row(
              "pinv, hermitian",
              [](In in) { return pinv(symmetric_values_apart(in[0]), {.rcond = 1e-3, .hermitian = true}); },
              square_cases, {}, "pinv"),
          low_rank,
          rank,
          decomposition_row(
              "lstsq of any rank", [](In in) { return lstsq(in[0], in[1], {.l2_regularizer = 0.5, .fast = false}); },
              {{{2, 4, 2}, {2, 4, 1}}, {{2, 3}, {2, 2}}}, {}, "lstsq"),
          decomposition_row(
              "matrix_exp", [](In in) { return matrix_exp(in[0]); }, square_cases, {"matrix_exp"}, "matrix_exp"),
          decomposition_row(
              "matrix_exp of large norms", [](In in) { return expm(in[0] * 20); }, {{{2, 3, 3}}}, {}, "matrix_exp")};
}

const bool registered_decompositions =
    add_rows(rows_of_factors()) && add_rows(rows_of_spectra()) && add_rows(rows_of_matrix_functions());

}  // namespace
}  // namespace gradus::rows::rows_decompositions
