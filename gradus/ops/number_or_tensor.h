/// NumberOrTensor: an operand that may be a bare number, which takes the dtype of the tensor beside it.
#pragma once
#include <array>
#include <concepts>
#include <string_view>
#include <tuple>
#include "gradus/graph/tensor.h"

namespace gradus {

/// A tensor or a bare number as an operand. For parameters alone: it refers to the tensor that it was made from.
class NumberOrTensor {
 public:
  NumberOrTensor(const Tensor& x) : tensor_(&x) {}
  /// A Variable: stands for its value.
  template <class V>
    requires(!std::same_as<V, Tensor> && std::convertible_to<const V&, Tensor>)
  NumberOrTensor(const V& x) : made_(x), tensor_(&made_) {}
  template <Element N> NumberOrTensor(N number) : number_(number) {}
  NumberOrTensor(Scalar number) : number_(number) {}
  NumberOrTensor(const NumberOrTensor&) = delete;

  /// True for a bare number.
  bool is_number() const { return !tensor_; }
  /// The tensor. For a number an InvalidArgument, opened by `op`: no tensor stands beside it.
  const Tensor& tensor(std::string_view op) const;
  /// The tensor, or the number in the dtype of `x`. A floating number beside integers or booleans is an
  /// InvalidArgument, a number that the dtype cannot hold an OutOfRange.
  Tensor beside(const Tensor& x, std::string_view op) const;

 private:
  Tensor made_;
  const Tensor* tensor_ = nullptr;
  Scalar number_{0};
};

/// Operands of `op`, with numbers in the dtype of the first tensor among them. InvalidArgument if all are numbers.
template <std::same_as<NumberOrTensor>... Operands>
std::array<Tensor, sizeof...(Operands)> side_by_side(std::string_view op, const Operands&... operands) {
  const NumberOrTensor* first = nullptr;
  ((first = !first && !operands.is_number() ? &operands : first), ...);
  if (!first) first = std::get<0>(std::tuple(&operands...));
  const Tensor& x = first->tensor(op);
  return {operands.beside(x, op)...};
}

}  // namespace gradus
