/// ONNX models as callables. `auto net = onnx::load("net.onnx"); Tensor y = net(x);` The floating initializers of the
/// file are Variables, so a model can be trained, and traced like any function.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "gradus/function/variable.h"
#include "gradus/nn/module.h"
#include "gradus/onnx/unsupported.h"

namespace gradus::onnx {

/// Options of load and parse.
struct LoadOptions {
  /// The Variables are trainable.
  bool trainable = true;
};

/// An input or output as the file declares it, with any_size for an open dimension.
struct Port {
  std::string name;            // as in the file
  DType dtype = f32;           // type of the elements
  std::optional<Shape> shape;  // empty: any rank
};

/// A loaded model. Copies share their variables.
class Model {
 public:
  /// The inputs that a call has to give; initializers are not among them.
  const std::vector<Port>& inputs() const;
  /// The outputs that a call gives.
  const std::vector<Port>& outputs() const;
  /// The floating initializers by name; the others are constants.
  Variables variables() const;
  /// The trainable ones of variables().
  Variables trainable_variables() const;

  /// Runs the model: one tensor per input, in order; returns one per output. InvalidArgument if an input does not fit
  /// its port. DataError, naming the node, for a computation that the graph cannot do.
  Tensors operator()(std::span<const Tensor> inputs) const;
  /// Runs a model with one input and one output. InvalidArgument for others.
  Tensor operator()(const Tensor& x) const;
  /// Runs the model by names of inputs and outputs.
  std::map<std::string, Tensor> operator()(const std::map<std::string, Tensor>& inputs) const;

  /// A model with one input and one output as a layer: for Sequential, fit and files of weights. It has copies of the
  /// variables, named "<layer>/<initializer>". InvalidArgument for other models.
  Module as_module() const;

  // For the rooms of the library.
  struct State;
  explicit Model(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

/// Reads a model file. Unavailable if it cannot be read. DataError with the node and the reason if it is broken.
/// Unsupported lists all ops that are not supported. External data must lie in the file's folder.
Model load(const std::filesystem::path& file, LoadOptions options = {});
/// load for bytes in memory, without external data; `name` opens the errors.
Model parse(std::span<const std::byte> bytes, const std::string& name, LoadOptions options = {});

}  // namespace gradus::onnx
