/// The basic layers. Each adds constructors to Module and nothing else, so that passing by base is safe.
#pragma once
#include <optional>
#include <vector>
#include "gradus/base/other_names.h"
#include "gradus/nn/activation.h"
#include "gradus/nn/initializers.h"
#include "gradus/nn/module.h"
#include "gradus/nn/normalization.h"
#include "gradus/nn/regularizers.h"
#include "gradus/ops/elementwise.h"

namespace gradus {

/// Options of Dense.
struct DenseOptions {
  Activation activation = linear;  // here or as an argument; InvalidArgument if it is given twice
  bool use_bias = true;            // the layer has a bias
  /// First values of kernel and bias.
  Initializer kernel_initializer = initializers::glorot_uniform, bias_initializer = initializers::zeros;
  std::optional<DType> dtype = {};  // of the variables and of computing; empty: the policy's, else the input's
  std::string name = {};            // empty: by its class
  /// Penalties on the variables and the result.
  Regularizer kernel_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  detail::NoInputShape input_shape = {};  // never given: the first call or build() determines it
};
/// Fully connected layer: activation(x kernel + bias): [..., inputs] -> [..., units]. InvalidArgument unless `units` is
/// positive and a given dtype is floating; in a call unless x is floating and `inputs` is known and as many as it was
/// built for.
struct Dense : Module {
  explicit Dense(std::int64_t units, Activation activation = linear, DenseOptions options = {});
  Dense(std::int64_t units, DenseOptions options);
  /// The kernel. InvalidArgument before the layer is built; bias() also if there is none.
  Variable& kernel() const;  // [inputs, units]
  Variable& bias() const;    // [units]
};

/// Flattens each example: [batch, ...] -> [batch, product of the others]. InvalidArgument for a scalar.
struct Flatten : Module {
  Flatten();
};

/// In training, each element becomes 0 with probability `rate`, else it is divided by 1 - rate. In inference it passes
/// x. InvalidArgument unless `rate` is at least 0 and below 1.
struct Dropout : Module {
  explicit Dropout(double rate);
};

/// A function without variables as a layer.
struct Lambda : Module {
  template <class F>
    requires std::is_invocable_r_v<Tensor, F&, Tensor>
  explicit Lambda(F f, std::string name = {})
      : Lambda(std::function<Tensor(const Tensor&)>(std::move(f)), std::move(name)) {}

 private:
  Lambda(std::function<Tensor(const Tensor&)> f, std::string name);
};

/// Options of models.
struct ModelOptions {
  PolicyOption policy = float32;  // float32: the dtype of the input, and the policies of the layers
  std::string name = {};          // empty: named by its class
};
/// Layers one after the other. A Sequential in the list is one layer. InvalidArgument if it is built without any.
struct Sequential : Module {
  Sequential();
  Sequential(std::initializer_list<Module> layers, ModelOptions options = {});
  explicit Sequential(std::vector<Module> layers, ModelOptions options = {});
  /// Appends a layer. InvalidArgument once it is built.
  void add(Module layer);
  /// Layer i. OutOfRange past the end. A part of a model is a Sequential of some of its layers, which are copied with
  /// their values.
  Module& layer(std::size_t i) const;
  /// Number of layers.
  std::size_t size() const;
};

}  // namespace gradus
