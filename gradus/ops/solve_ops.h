/// The primitives of linear systems: solving, triangular solving, and the factor of Cholesky.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// The primitive of solve. matrix: T[..., n, n], rhs: T[..., n, k], with equal batches; T is f32 or f64. The three here
/// are primitives since each element needs those before it, and data decides which rows are exchanged.
struct Solve {
  static constexpr auto name = "solve";
  static constexpr auto library_kernel = "solve";
  static constexpr auto takes = Takes::floats;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};
/// The primitive of triangular_solve; operands as for Solve.
struct TriangularSolve {
  static constexpr auto name = "triangular_solve";
  static constexpr auto library_kernel = "triangular_solve";
  static constexpr auto takes = Takes::floats;
  bool lower = true;  // read the lower triangle, else the upper one
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};
/// The primitive of cholesky. x: T[..., n, n], T f32 or f64.
struct Cholesky {
  static constexpr auto name = "cholesky";
  static constexpr auto library_kernel = "cholesky";
  static constexpr auto takes = Takes::floats;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

}  // namespace gradus
