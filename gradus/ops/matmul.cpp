/// Matrix products: shape rule, gradients without transposed copies, batches.
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"
#include <algorithm>
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/widened.h"

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
    require(is_floating(spec.dtype) || (is_integer(spec.dtype) && size_of(spec.dtype) >= 4), "matmul: ", name, " is ",
            spec, ", expected a floating type or an integer type of 32 or 64 bits; cast it first");
    require(spec.shape.rank() >= 2, "matmul: ", name, " is ", spec, ", expected a matrix or a batch of matrices");
  }
  require(a.dtype == b.dtype, "matmul: a is ", a, ", b is ", b, ": their dtypes differ; cast one of them");
  const std::int64_t ka = a.shape[transpose_a ? -2 : -1], kb = b.shape[transpose_b ? -1 : -2];
  require(ka == kb, "matmul: inner dimensions differ: a is ", a, ", b is ", b, " (", dimension::to_text(ka), " vs ",
          dimension::to_text(kb), ")", transpose_a || transpose_b ? "" : hint(a.shape, b.shape));
}

/// Dimension 0 moves in front of the last two, where it multiplies the rows of a product: [n, L..., m, k] ->
/// [L..., n*m, k].
Tensor with_tall_matrices(const Tensor& a) {
  const int rank = a.shape().rank();
  std::vector<int> order;
  for (int i = 1; i < rank - 2; ++i) order.push_back(i);
  for (int i : {0, rank - 2, rank - 1}) order.push_back(i);
  Shape shape = a.shape();
  shape.erase(0);
  shape.set(-2, dimension::multiply(a.shape()[0], shape[-2]));
  return reshape(transpose(a, order), shape);
}

/// And back: [L..., n*m, p] -> [n, L..., m, p].
Tensor with_rows_in_front(const Tensor& y, std::int64_t n, std::int64_t m) {
  Shape shape = y.shape();
  shape.set(-2, n);
  shape.insert(shape.rank() - 1, m);
  std::vector<int> order{shape.rank() - 3};
  for (int i = 0; i < shape.rank(); ++i)
    if (i != shape.rank() - 3) order.push_back(i);
  return transpose(reshape(y, shape), order);
}

/// Rows of `a`, [n, L..., m, k], times one `b` for all of them: a tall product, whose elements are the same chains.
Tensor multiply_rows(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b) {
  const Tensor straight = transpose_a ? transpose(a) : a;
  const Matmul op{false, transpose_b};
  if (b.shape().rank() > 2)
    return with_rows_in_front(apply(op, with_tall_matrices(straight), b), a.shape()[0], straight.shape()[-2]);
  const Shape batches = leading(straight.shape());
  const std::int64_t m = straight.shape()[-2], k = straight.shape()[-1];
  const Tensor y = apply(op, reshape(straight, {dimension::multiply(batches.size(), m), k}), b);
  return reshape(y, with_matrix(batches, m, y.shape()[-1]));
}

/// True if a product with each matrix of `x` does better than one tall product, for which x would have to be copied:
/// its free dimension lies last, and fills the registers of a tile.
bool keeps_its_matrices(const Tensor& x, bool free_is_last) {
  constexpr std::int64_t wide = 16;
  return free_is_last && SizeChoice::choose(x.shape()[-1] < 0 || x.shape()[-1] >= wide);
}

/// Both have rows: batches of equal rank, of which a matrix without batches takes any.
Tensor multiply_row_by_row(const Matmul& op, const Tensor& a, const Tensor& b, std::int64_t n) {
  const auto aligned = [&](const Tensor& x, const Tensor& other) {
    if (x.shape().rank() >= other.shape().rank()) return x;
    const Shape &shape = x.shape(), batches = leading(other.shape());
    Shape matrices{n};
    for (int i = 1; i < batches.rank(); ++i) matrices.push_back(1);
    return broadcast_to(reshape(x, with_matrix(matrices, shape[-2], shape[-1])),
                        with_matrix(batches, shape[-2], shape[-1]));
  };
  return apply(op, aligned(a, b), aligned(b, a));
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

namespace {

/// The product; of more dimensions than `shape` it is summed over the batches, of narrow floats before it is rounded.
Tensor product_summed_to(const Shape& shape, const Matmul& op, const Tensor& a, const Tensor& b) {
  if (std::max(a.shape().rank(), b.shape().rank()) == shape.rank()) return apply(op, a, b);
  return in_computed_dtype(a, b, [&](const Tensor& x, const Tensor& y) { return sum_to(apply(op, x, y), shape); });
}

}  // namespace

/// y = a b: da = dy b', db = a' dy; of transposed operands the transposes of these.
Tensors Matmul::vjp(In in, const Tensor&, const Tensor& dy) const {
  const Tensor &a = in[0], &b = in[1];
  return {transpose_a ? product_summed_to(a.shape(), Matmul{transpose_b, true}, b, dy)
                      : product_summed_to(a.shape(), Matmul{false, !transpose_b}, dy, b),
          transpose_b ? product_summed_to(b.shape(), Matmul{true, transpose_a}, dy, a)
                      : product_summed_to(b.shape(), Matmul{!transpose_a, false}, a, dy)};
}

/// One tall product instead of n small ones, where one operand is the same for all rows; (a b)' = b' a' exchanges them.
Tensor Matmul::batch(In in, std::uint32_t mask, std::int64_t n) const {
  const Tensor &a = in[0], &b = in[1];
  if (has_rows(mask, 0) && has_rows(mask, 1)) return multiply_row_by_row(*this, a, b, n);
  if (has_rows(mask, 0)) {
    if (b.shape().rank() == 2 && keeps_its_matrices(a, transpose_a)) return gradus::detail::apply(*this, in);
    return multiply_rows(a, transpose_a, b, transpose_b);
  }
  if (a.shape().rank() == 2 && keeps_its_matrices(b, !transpose_b)) return gradus::detail::apply(*this, in);
  return transpose(multiply_rows(b, !transpose_b, a, !transpose_a));
}

int Matmul::carries(Specs, int operand, int axis) const {
  if (axis < -2) return axis;
  if (operand == 0) return axis == (transpose_a ? -1 : -2) ? -2 : 0;
  return axis == (transpose_b ? -2 : -1) ? -1 : 0;
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_operands(a.spec(), b.spec(), false, false);
  if (a.dtype() == f16) return in_computed_dtype(a, b, [](const Tensor& x, const Tensor& y) { return matmul(x, y); });
  const std::int64_t m = a.shape()[-2], k = a.shape()[-1], n = b.shape()[-1];
  const Shape batches_a = leading(a.shape()), batches_b = leading(b.shape());
  const Shape batches = broadcast_shape(batches_a, batches_b, "matmul: batches");
  const Shape result = with_matrix(batches, m, n);
  if (batches_b.size() == 1)  // one b for all: the batches of a are further rows of one tall product
    return reshape(apply(Matmul{}, reshape(a, {dimension::multiply(batches_a.size(), m), k}), reshape(b, {k, n})),
                   result);
  const bool is_repeated = batches_b != batches || (batches_a.size() != 1 && batches_a != batches);
  if (is_repeated && is_narrow(a.dtype()))  // so are the gradients of what is repeated
    return in_computed_dtype(a, b, [](const Tensor& x, const Tensor& y) { return matmul(x, y); });
  const Tensor left = batches_a.size() == 1 ? reshape(a, {m, k}) : broadcast_to(a, with_matrix(batches, m, k));
  return apply(Matmul{}, left, broadcast_to(b, with_matrix(batches, k, n)));
}

}  // namespace gradus
