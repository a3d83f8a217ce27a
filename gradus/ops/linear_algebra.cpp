/// Matrix products in other forms; determinants and inverses with their gradients.
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/linear_algebra_ops.h"
#include <algorithm>
#include <array>
#include <cmath>
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

Spec spec_of_matrices(std::string_view op, Specs in) {
  check_operand_of_matrices(op, in, true);
  return in[0];
}

/// 0 ... n - 1 but i, in row i: i32 [n, n - 1].
Tensor all_but_one(std::int64_t n) {
  const Tensor row = iota_along(2, 0, n, i32), column = iota_along(2, 1, dimension::subtract(n, 1), i32);
  return column + cast(column >= row, i32);
}

/// dC_ij times the gradient of C_ij, the determinant of x: [count, n, n] without row i and column j, with its sign.
Tensor gradient_of_cofactors(const Tensor& x, const Tensor& cotangents) {
  const std::int64_t n = x.shape().back();
  const Tensor kept = all_but_one(n);
  const Tensor rows = apply(Gather{-2}, x, kept),
               parts = apply(Gather{-1}, rows, kept);  // [count, i, rows, j, columns]
  const Tensor odd = mod(iota_along(2, 0, n, i32) + iota_along(2, 1, n, i32), 2);
  const Tensor signed_ones = cotangents * cast(1 - 2 * odd, x.dtype());
  const Tensor minors = transpose(parts, {0, 1, 3, 2, 4});
  const Tensor of_minors = transpose(apply(Adjugate{}, minors)) * expand_dims(expand_dims(signed_ones, -1), -1);
  const Tensor of_rows = Gather{-1}.vjp(std::array{rows, kept}, parts, transpose(of_minors, {0, 1, 3, 2, 4}))[0];
  return Gather{-2}.vjp(std::array{x, kept}, rows, of_rows)[0];
}

}  // namespace

Spec Det::infer(Specs in) const {
  Spec out = spec_of_matrices(name, in);
  out.shape.erase(-1);
  out.shape.erase(-1);
  return out;
}

Tensors Det::vjp(In in, const Tensor&, const Tensor& dy) const {
  return {expand_dims(expand_dims(dy, -1), -1) * transpose(apply(Adjugate{}, in[0]))};
}

Tensor Det::batch(In in, std::uint32_t, std::int64_t) const { return gradus::detail::apply(*this, in); }
int Det::carries(Specs, int, int along) const { return along < -2 ? along + 2 : 0; }

Spec ScaledDet::infer(Specs in) const {
  Spec out = spec_of_matrices(name, in);
  out.shape.erase(-1);
  out.shape.set(-1, 2);
  return out;
}

/// With f the factor, df = f tr(x^-1 dx).
Tensors ScaledDet::vjp(In in, const Tensor& y, const Tensor& dy) const {
  const Tensor scale = unstack(y, -1)[0] * unstack(dy, -1)[0];
  return {expand_dims(expand_dims(scale, -1), -1) * transpose(apply(Inverse{}, in[0]))};
}

Tensor ScaledDet::batch(In in, std::uint32_t, std::int64_t) const { return gradus::detail::apply(*this, in); }
int ScaledDet::carries(Specs, int, int along) const { return along < -2 ? along + 1 : 0; }

Spec Adjugate::infer(Specs in) const { return spec_of_matrices(name, in); }

Tensors Adjugate::vjp(In in, const Tensor& y, const Tensor& dy) const {
  constexpr std::int64_t small = 5;  // by minors n^5 operations, at each further order n^3 times as many
  const Tensor& x = in[0];
  const Shape& shape = x.shape();
  const std::int64_t n = shape.back();
  if (n == 0 || n == 1) return {fill_like(x, 0)};
  if (SizeChoice::decide(n < 0 || n > small)) {
    const Tensor inverse = apply(Inverse{}, x);
    const Tensor both = reduce_sum(dy * y, {.axis = {-2, -1}, .keepdims = true});
    return {both * transpose(inverse) - apply(Matmul{false, true}, apply(Matmul{true, false}, inverse, dy), y)};
  }
  Shape batches = shape;
  batches.erase(-1);
  batches.erase(-1);
  const Shape flat{batches.size(), n, n};
  return {reshape(gradient_of_cofactors(reshape(x, flat), transpose(reshape(dy, flat))), shape)};
}

Tensor Adjugate::batch(In in, std::uint32_t, std::int64_t) const { return gradus::detail::apply(*this, in); }
int Adjugate::carries(Specs, int, int along) const { return along < -2 ? along : 0; }

Spec Inverse::infer(Specs in) const { return spec_of_matrices(name, in); }

Tensors Inverse::vjp(In, const Tensor& y, const Tensor& dy) const {
  return {-apply(Matmul{false, true}, apply(Matmul{true, false}, y, dy), y)};
}

Tensor Inverse::batch(In in, std::uint32_t, std::int64_t) const { return gradus::detail::apply(*this, in); }
int Inverse::carries(Specs, int, int along) const { return along < -2 ? along : 0; }

namespace {

/// The product of matrices; of narrow floats in f32.
Tensor product(const Matmul& op, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype()) return apply(op, a, b);  // says so
  return in_computed_dtype(a, b, [&](const Tensor& x, const Tensor& y) { return apply(op, x, y); });
}

/// A factor of gemm, as a whole number where it is one.
Tensor times(const Tensor& x, double factor) {
  if (factor == 1) return x;
  const bool whole = factor == std::trunc(factor) && std::abs(factor) < 1e15;
  return whole ? x * static_cast<std::int64_t>(factor) : x * factor;
}

}  // namespace

Tensor det(const Tensor& x) {
  return in_computed_dtype(x, [](const Tensor& wide) { return apply(Det{}, wide); });
}
Tensor inverse(const Tensor& x) {
  return in_computed_dtype(x, [](const Tensor& wide) { return apply(Inverse{}, wide); });
}

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  return matmul(options.transpose_a ? transpose(a) : a, options.transpose_b ? transpose(b) : b);
}

Tensor matvec(const Tensor& a, const Tensor& b) {
  require(a.shape().rank() >= 2 && b.shape().rank() >= 1, "matvec: a is ", a.spec(), ", b is ", b.spec(),
          "; expected matrices and vectors");
  return squeeze(matmul(a, expand_dims(b, -1)), {-1});
}

Tensor detail::numpy_matmul(const Tensor& a, const Tensor& b) {
  require(a.shape().rank() > 0 && b.shape().rank() > 0, "matmul: a is ", a.spec(), ", b is ", b.spec(),
          "; expected at least vectors; multiply scalars with *");
  const bool row = a.shape().rank() == 1, column = b.shape().rank() == 1;
  const Tensor y = matmul(row ? expand_dims(a, 0) : a, column ? expand_dims(b, -1) : b);
  Shape shape = y.shape();
  if (column) shape.erase(-1);
  if (row) shape.erase(column ? -1 : -2);
  return reshape(y, shape);
}

Tensor tensordot(const Tensor& a, const Tensor& b, int axes) {
  require(axes >= 0 && axes <= std::min(a.shape().rank(), b.shape().rank()), "tensordot: ", axes, " axes of a ",
          a.spec(), " and b ", b.spec());
  std::vector<int> axes_a, axes_b;
  for (int i = 0; i < axes; ++i) {
    axes_a.push_back(a.shape().rank() - axes + i);
    axes_b.push_back(i);
  }
  return tensordot(a, b, axes_a, axes_b);
}

Tensor tensordot(const Tensor& a, const Tensor& b, const std::vector<int>& axes_a, const std::vector<int>& axes_b) {
  require(axes_a.size() == axes_b.size(), "tensordot: ", axes_a.size(), " axes of a and ", axes_b.size(), " of b");
  const auto grouped = [](const Tensor& x, const std::vector<int>& axes, Shape& free, Shape& summed) {
    std::vector<int> order, behind;
    for (int axis : axes) {
      behind.push_back(x.shape().normalized(axis));
      summed.push_back(x.shape()[axis]);
    }
    for (int i = 0; i < x.shape().rank(); ++i) {
      if (std::ranges::find(behind, i) != behind.end()) continue;
      order.push_back(i);
      free.push_back(x.shape()[i]);
    }
    order.insert(order.end(), behind.begin(), behind.end());
    return reshape(transpose(x, order), {free.size(), summed.size()});
  };
  Shape free_a, free_b, summed_a, summed_b;
  const Tensor left = grouped(a, axes_a, free_a, summed_a), right = grouped(b, axes_b, free_b, summed_b);
  require(summed_a == summed_b, "tensordot: the axes of a ", a.spec(), " are of sizes ", summed_a, ", those of b ",
          b.spec(), " of sizes ", summed_b, "; they must agree");
  for (std::int64_t d : free_b) free_a.push_back(d);
  return reshape(product(Matmul{false, true}, left, right), free_a);
}

Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options) {
  check_options("gemm", options);
  require(a.shape().rank() == 2 && b.shape().rank() == 2, "gemm: a is ", a.spec(), ", b is ", b.spec(),
          "; expected matrices");
  if (is_narrow(a.dtype()) && a.dtype() == b.dtype())
    return in_computed_dtype(a, b, [&](const Tensor& x, const Tensor& y) { return gemm(x, y, options); });
  return times(apply(Matmul{options.transpose_a, options.transpose_b}, a, b), options.alpha);
}

Tensor gemm(const Tensor& a, const Tensor& b, const Tensor& c, const GemmOptions& options) {
  check_options("gemm", options);
  if (is_narrow(a.dtype()) && a.dtype() == b.dtype() && a.dtype() == c.dtype())
    return cast(gemm(widened(a), widened(b), widened(c), options), a.dtype());
  const Tensor scaled = gemm(a, b, options);
  return scaled + broadcast_to(times(c, options.beta), scaled.shape());
}

}  // namespace gradus
