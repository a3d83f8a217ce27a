/// The primitives of determinants, inverses and adjugates.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// Determinant of small matrices, by elimination with row exchanges: a primitive since data decides which rows are
/// exchanged.
struct Det {
  static constexpr auto name = "det";
  static constexpr auto library_kernel = "det";
  static constexpr auto takes = Takes::floats;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};
/// Determinants that no type has to hold: [..., n, n] -> [..., 2], factor and exponent with det(x) = factor *
/// 2^exponent. The exponent is constant almost everywhere, so all of the gradient is the factor's.
struct ScaledDet {
  static constexpr auto name = "scaled_det";
  static constexpr auto library_kernel = "scaled_det";
  static constexpr auto takes = Takes::floats;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};
/// The adjugate of small matrices: adj(x) x = det(x), so its transpose is the gradient of the determinant. By
/// elimination with exchanges of rows and columns; exact for singular matrices, too. Its own gradient is finite for
/// those of up to 5 rows.
struct Adjugate {
  static constexpr auto name = "adjugate";
  static constexpr auto library_kernel = "adjugate";
  static constexpr auto takes = Takes::floats;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};
/// Inverse of small matrices, by elimination with row exchanges.
struct Inverse {
  static constexpr auto name = "inverse";
  static constexpr auto library_kernel = "inverse";
  static constexpr auto takes = Takes::floats;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

}  // namespace gradus
