/// Matrix products: shape rule, gradients without transposed copies, batches.
#include "gradus/ops/matmul.h"
#include <algorithm>
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

Shape leading(const Shape& shape) { return Shape(std::span(shape.begin(), shape.end() - 2)); }

Shape with_matrix(Shape batches, std::int64_t rows, std::int64_t columns) {
  batches.push_back(rows);
  batches.push_back(columns);
  return batches;
}

std::string hint(const Shape& a, const Shape& b) {
  if (a[-1] == b[-1]) return "; did you mean matmul(a, transpose(b))?";
  if (a[-2] == b[-2]) return "; did you mean matmul(transpose(a), b)?";
  return "";
}

/// Everything but the batches.
void check_operands(const Spec& a, const Spec& b, bool transpose_a, bool transpose_b) {
  for (const auto& [name, spec] : {std::pair{"a", a}, std::pair{"b", b}}) {
    require(is_floating(spec.dtype) || spec.dtype == i32 || spec.dtype == i64, "matmul: ", name, " is ", spec,
            ", expected f32, f64, i32 or i64; cast it first");
    require(spec.shape.rank() >= 2, "matmul: ", name, " is ", spec, ", expected a matrix or a batch of matrices");
  }
  require(a.dtype == b.dtype, "matmul: a is ", a, ", b is ", b, ": their dtypes differ; cast one of them");
  const std::int64_t ka = a.shape[transpose_a ? -2 : -1], kb = b.shape[transpose_b ? -1 : -2];
  require(ka == kb, "matmul: inner dimensions differ: a is ", a, ", b is ", b, " (", dimension::to_text(ka), " vs ",
          dimension::to_text(kb), ")", transpose_a || transpose_b ? "" : hint(a.shape, b.shape));
}

}  // namespace

Spec Matmul::infer(Specs in) const {
  require(in.size() == 2, name, ": expected 2 operands, got ", in.size());
  const Shape &a = in[0].shape, &b = in[1].shape;
  check_operands(in[0], in[1], transpose_a, transpose_b);
  require(a.rank() == 2 || b.rank() == 2 || leading(a) == leading(b), name, ": batches differ: a is ", in[0], ", b is ",
          in[1]);
  return {in[0].dtype, with_matrix(leading(a.rank() == 2 ? b : a), a[transpose_a ? -1 : -2], b[transpose_b ? -2 : -1])};
}

/// y = a b: da = dy b', db = a' dy; of transposed operands the transposes of these.
Tensors Matmul::vjp(In in, const Tensor&, const Tensor& dy) const {
  const Tensor &a = in[0], &b = in[1];
  const Tensor da = transpose_a ? apply(Matmul{transpose_b, true}, b, dy) : apply(Matmul{false, !transpose_b}, dy, b);
  const Tensor db = transpose_b ? apply(Matmul{true, transpose_a}, dy, a) : apply(Matmul{!transpose_a, false}, a, dy);
  return {sum_to(da, a.shape()), sum_to(db, b.shape())};
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_operands(a.spec(), b.spec(), false, false);
  const std::int64_t m = a.shape()[-2], k = a.shape()[-1], n = b.shape()[-1];
  const Shape batches_a = leading(a.shape()), batches_b = leading(b.shape());
  const Shape batches = broadcast_shape(batches_a, batches_b, "matmul: batches");
  const Shape result = with_matrix(batches, m, n);
  if (batches_b.size() == 1)  // one b for all: the batches of a are further rows of one tall product
    return reshape(apply(Matmul{}, reshape(a, {dimension::multiply(batches_a.size(), m), k}), reshape(b, {k, n})),
                   result);
  const Tensor left = batches_a.size() == 1 ? reshape(a, {m, k}) : broadcast_to(a, with_matrix(batches, m, k));
  return apply(Matmul{}, left, broadcast_to(b, with_matrix(batches, k, n)));
}

}  // namespace gradus
