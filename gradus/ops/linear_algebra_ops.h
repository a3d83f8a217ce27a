/// The primitives of determinants and inverses.
#pragma once
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
