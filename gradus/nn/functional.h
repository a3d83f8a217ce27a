/// Functional: a model whose layers are called along a graph, as load_functional reads it from a file of Keras.
#pragma once
#include <string>
#include <vector>
#include "gradus/nn/module.h"
#include "gradus/tensor/shape.h"

namespace gradus {

/// Layers in a graph, with any number of inputs and outputs. A layer that the graph calls several times is one layer.
/// Variables are named after Keras's names of the layers ("encoder/kernel"). load_functional makes one.
struct Functional : Module {
  using Module::operator();  // model(x): one input, one output
  /// The outputs, in the order of output_names(), for inputs in the order of input_names(). Inputs are cast to the
  /// dtypes of input_specs(). InvalidArgument for another number of inputs, or for other shapes.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, training_t) const;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, inference_t) const;
  /// Names of the inputs: those of Keras's input layers.
  const std::vector<std::string>& input_names() const;
  /// Specs of the inputs; any_size where Keras has None.
  const std::vector<Spec>& input_specs() const;
  /// Names of the outputs: the keys of a dict of outputs in alphabetical order, else those of the layers that give
  /// them.
  const std::vector<std::string>& output_names() const;

  // For the rooms of the library.
  explicit Functional(std::shared_ptr<detail::Layer> layer) : Module(std::move(layer)) {}
};

}  // namespace gradus
