/// Modules and functions as ONNX files, for other runtimes: operator set 23, with the weights within the file.
#pragma once
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>
#include "gradus/nn/module.h"

namespace gradus {

/// Options of export_onnx.
struct ExportOptions {
  /// Names of inputs and outputs. Missing ones are called x, y, or x0, x1 ... if there are several.
  std::vector<std::string> input_names = {}, output_names = {};
};

/// Writes the inference of `model` on inputs of this spec; any_size leaves a dimension open. A model that is not built
/// is built. Weights keep their names. The file appears whole or not at all. InvalidArgument, naming the op, for parts
/// that have no form in ONNX: random numbers, a C++ branch on a value, an op that ONNX cannot express.
void export_onnx(const std::filesystem::path& file, const Module& model, const Spec& input);
/// Writes any function of tensors. Values that it captures become part of the file.
void export_onnx(const std::filesystem::path& file, const std::function<Tensors(std::span<const Tensor>)>& f,
                 const std::vector<Spec>& inputs, ExportOptions options = {});

}  // namespace gradus
