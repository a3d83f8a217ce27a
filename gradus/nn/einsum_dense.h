/// A dense layer along any dimensions, by an equation.
#pragma once
#include <string>
#include <vector>
#include "gradus/nn/activation.h"
#include "gradus/nn/initializers.h"
#include "gradus/nn/module.h"
#include "gradus/nn/regularizers.h"
#include "gradus/ops/elementwise.h"

namespace gradus {

struct EinsumDenseOptions {
  Activation activation = linear;
  std::string bias_axes = {};  // letters of the result that a bias has; empty: no bias
  Initializer kernel_initializer = initializers::glorot_uniform, bias_initializer = initializers::zeros;
  std::string name = {};
  Regularizer kernel_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
};
/// activation(einsum(equation, x, kernel) + bias), as Keras's. The equation is that of einsum() with two operands, of
/// the forms "ab,bc->ac", "...x,xy->...y" and "ab...,bc->ac...". `output_shape`: the sizes of the result without the
/// batch and without what `...` stands for; -1 where the input says it.
///
/// A mask of the input ends here, as in Keras.
///
///   EinsumDense("abc,cde->abde", {-1, 8, 64}, {.bias_axes = "de"})  // the projection to the heads of an attention
struct EinsumDense : Module {
  EinsumDense(std::string equation, std::vector<std::int64_t> output_shape, EinsumDenseOptions options = {});
};

}  // namespace gradus
