/// Triangles and diagonals: choices by row and column number, and diagonals as every (columns + 1)-th element.
#include "gradus/ops/diagonals.h"
#include <algorithm>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/strided_ops.h"

namespace gradus {
namespace {

void require_matrices(std::string_view op, const Tensor& x) {
  require(x.shape().rank() >= 2, op, ": expected matrices [..., rows, columns], got ", x.spec());
}

/// Column minus row, i64 [rows, columns]: which diagonal an element is on.
Tensor diagonal_of(std::int64_t rows, std::int64_t columns) {
  return iota_along(2, 1, columns, i64) - iota_along(2, 0, rows, i64);
}
Tensor diagonal_of(const Tensor& x) { return diagonal_of(x.shape()[-2], x.shape()[-1]); }

/// A number of a rule, not of the user's data.
Tensor number(std::int64_t value) { return fill({}, value, i64); }

/// diagonal: [..., length] along the rows of [..., rows, columns], where diagonal k stands: [..., rows, 1].
Tensor as_column(const Tensor& diagonal, std::int64_t rows, std::int64_t k) {
  const std::int64_t before = std::max<std::int64_t>(-k, 0);
  const std::int64_t after = dimension::subtract(dimension::subtract(rows, diagonal.shape().back()), before);
  std::vector<Tensor> parts;
  const auto add_zeros = [&](std::int64_t n) {
    if (n == 0) return;
    Shape gap = diagonal.shape();
    gap.set(-1, n);
    parts.push_back(zeros(gap, diagonal.dtype()));
  };
  add_zeros(before);
  parts.push_back(diagonal);
  add_zeros(after);
  return expand_dims(concat(parts, -1), -1);
}

/// The length of diagonal k; 0 if there is none. Of a matrix of unknown size: if it is square.
std::int64_t length_of_diagonal(std::string_view op, const Tensor& x, std::int64_t k) {
  require(k > -(std::int64_t{1} << 31) && k < std::int64_t{1} << 31, op, ": there is no diagonal ", k, " of ",
          x.spec());
  const std::int64_t rows = x.shape()[-2], columns = x.shape()[-1], below = std::max<std::int64_t>(-k, 0),
                     right = std::max<std::int64_t>(k, 0);
  if (rows >= 0 && columns >= 0)
    return std::max<std::int64_t>(0, std::min(rows - std::min(rows, below), columns - std::min(columns, right)));
  require(rows == columns, op, ": ", x.spec(), " has a size that is not known when tracing and is not square");
  return dimension::subtract(rows, std::max(below, right));
}

Tensor zero_of(const Tensor& x) { return fill({}, 0, x.dtype()); }

}  // namespace

Tensor band_part(const Tensor& x, std::int64_t num_lower, std::int64_t num_upper) {
  require_matrices("band_part", x);
  if (num_lower < 0 && num_upper < 0) return x;
  const Tensor k = diagonal_of(x);
  if (num_lower < 0) return where(k <= number(num_upper), x, zero_of(x));
  if (num_upper < 0) return where(k >= number(-num_lower), x, zero_of(x));
  return where(logical_and(k >= number(-num_lower), k <= number(num_upper)), x, zero_of(x));
}

Tensor triu(const Tensor& x, std::int64_t k) {
  require_matrices("triu", x);
  return where(diagonal_of(x) >= number(k), x, zero_of(x));
}

Tensor tril(const Tensor& x, std::int64_t k) {
  require_matrices("tril", x);
  return where(diagonal_of(x) <= number(k), x, zero_of(x));
}

Tensor diag(const Tensor& diagonal, std::int64_t k) {
  require(diagonal.shape().rank() >= 1, "diag: expected diagonals [..., n], got ", diagonal.spec());
  require(k > -(std::int64_t{1} << 31) && k < std::int64_t{1} << 31, "diag: there is no diagonal ", k);
  const std::int64_t n = dimension::add(diagonal.shape().back(), k < 0 ? -k : k);
  return where(equal(diagonal_of(n, n), number(k)), as_column(diagonal, n, k), zero_of(diagonal));
}

Tensor diag_part(const Tensor& x, std::int64_t k) {
  require_matrices("diag_part", x);
  const std::int64_t length = length_of_diagonal("diag_part", x, k), columns = x.shape()[-1];
  Shape flat = x.shape(), result = x.shape();
  flat.erase(-1);
  flat.set(-1, dimension::multiply(x.shape()[-2], columns));
  result.erase(-1);
  result.set(-1, length);
  if (length == 0) return zeros(result, x.dtype());
  const std::int64_t begin = k >= 0 ? k : dimension::multiply(-k, columns);
  return every(reshape(x, flat), -1, begin, length, dimension::add(columns, 1));
}

Tensor set_diag(const Tensor& x, const Tensor& diagonal, std::int64_t k) {
  require_matrices("set_diag", x);
  Shape wanted = x.shape();
  wanted.erase(-1);
  wanted.set(-1, length_of_diagonal("set_diag", x, k));
  require(diagonal.spec() == Spec{x.dtype(), wanted}, "set_diag: diagonal is ", diagonal.spec(), ", expected ",
          Spec{x.dtype(), wanted}, " for diagonal ", k, " of ", x.spec());
  if (wanted.back() == 0) return x;
  return where(equal(diagonal_of(x), number(k)), as_column(diagonal, x.shape()[-2], k), x);
}

Tensor trace(const Tensor& x) {
  require_matrices("trace", x);
  return reduce_sum(diag_part(x), {.axis = {-1}});
}

Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype, std::int64_t k) {
  const auto is_size = [](std::int64_t n) { return n >= 0 || dimension::symbols_in(n) > 0; };
  require(is_size(rows) && is_size(columns), "eye: ", rows, " rows and ", columns, " columns");
  return cast(equal(diagonal_of(rows, columns), number(k)), dtype);
}

}  // namespace gradus
