/// ONNX's matrix products.
#include "gradus/onnx/row.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/shape.h"

namespace gradus::onnx {
namespace {

/// As in NumPy: a vector on the left is a row, on the right a column, and the dimension of 1 goes again.
Tensor matrix_product(const Tensor& a, const Tensor& b) {
  const bool row = a.shape().rank() == 1, column = b.shape().rank() == 1;
  Tensor y = matmul(row ? expand_dims(a, 0) : a, column ? expand_dims(b, 1) : b);
  if (column) y = squeeze(y, {-1});
  return row ? squeeze(y, {column ? -1 : -2}) : y;
}

Tensor gemm(const Call& c) {
  const Tensor a = c.flag("transA") ? transpose(c[0]) : c[0];
  const Tensor b = c.flag("transB") ? transpose(c[1]) : c[1];
  Tensor y = matmul(a, b);
  if (const double alpha = c.number("alpha", 1); alpha != 1) y = y * number_beside(y, alpha);
  if (!c.has(2)) return y;
  const double beta = c.number("beta", 1);
  return y + (beta == 1 ? c[2] : c[2] * number_beside(c[2], beta));
}

/// Integers of 8 and 16 bits are summed in 32, of which the low ones are those of a sum that wraps.
Tensor summed_products(const Call& c) {
  const DType t = c[0].dtype();
  if (is_floating(t) || size_of(t) >= 4) return einsum(c.word("equation", ""), c.all_inputs());
  Tensors wide;
  for (int i = 0; i < c.inputs(); ++i) {
    c.require(c[i].dtype() == t, "input 0 is ", c[0].spec(), ", input ", i, " is ", c[i].spec(), ": dtypes differ");
    wide.push_back(cast(c[i], i32));
  }
  return cast(einsum(c.word("equation", ""), wide), t);
}

const Table linear_table{
    {"Einsum", {12}, rounded_once(summed_products)},
    {"Gemm", {1, 6, 7, 9, 11, 13}, rounded_once(gemm)},
    {"MatMul", {1, 9, 13}, [](const Call& c) { return matrix_product(c[0], c[1]); }},
};

}  // namespace
}  // namespace gradus::onnx
