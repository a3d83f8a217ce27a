/// Modules and functions as ONNX files, for other runtimes: operator set 23, the weights within the file.
#pragma once
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>
#include "gradus/nn/module.h"

namespace gradus {

struct ExportOptions {
  /// Names of inputs and outputs; those that are left out are called x, y, or x0, x1 ... where there are several.
  std::vector<std::string> input_names = {}, output_names = {};
};

/// Writes the inference of `model` on inputs of this spec; any_size leaves a dimension open. A model that is not built
/// is built. Weights keep their names. The file appears whole or not at all. InvalidArgument for what has no form in
/// ONNX, naming the op: random numbers, a C++ branch on a value, an op that ONNX cannot express.
void export_onnx(const std::filesystem::path& file, const Module& model, const Spec& input);
/// The same of any function of tensors; what it captures becomes part of the file.
void export_onnx(const std::filesystem::path& file, const std::function<Tensors(std::span<const Tensor>)>& f,
                 const std::vector<Spec>& inputs, ExportOptions options = {});

}  // namespace gradus
