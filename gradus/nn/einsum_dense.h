/// A dense layer along any dimensions, given by an equation.
#pragma once
#include <string>
#include <vector>
#include "gradus/nn/activation.h"
#include "gradus/nn/initializers.h"
#include "gradus/nn/module.h"
#include "gradus/nn/regularizers.h"
#include "gradus/ops/elementwise.h"

namespace gradus {

/// Options of EinsumDense.
struct EinsumDenseOptions {
  Activation activation = linear;  // applied to the result
  std::string bias_axes = {};      // letters of the result that the bias has; empty: no bias
  /// First values of kernel and bias.
  Initializer kernel_initializer = initializers::glorot_uniform, bias_initializer = initializers::zeros;
  std::string name = {};  // empty: by its class
  /// Penalties on the variables and the result.
  Regularizer kernel_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
};
/// activation(einsum(equation, x, kernel) + bias), as Keras's. The equation is einsum()'s with two operands, in the
/// forms "ab,bc->ac", "...x,xy->...y" and "ab...,bc->ac...". `output_shape`: the sizes of the result without the batch
/// and without the dimensions of `...`; -1 where the input determines them.
///
/// A mask of the input ends here, as in Keras.
///
///   EinsumDense("abc,cde->abde", {-1, 8, 64}, {.bias_axes = "de"})  // the projection to the heads of an attention
struct EinsumDense : Module {
  EinsumDense(std::string equation, std::vector<std::int64_t> output_shape, EinsumDenseOptions options = {});
};

}  // namespace gradus
