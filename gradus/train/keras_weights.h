/// Where Keras keeps which variable of a model.
#pragma once
#include <memory>
#include <string>
#include <vector>
#include "gradus/formats/safetensors.h"
#include "gradus/nn/layer.h"
#include "gradus/nn/module.h"

namespace gradus {

struct KerasPlace {
  std::string path;                             // "layers/dense/vars/0"
  std::shared_ptr<VariableCell> variable = {};  // null: a number that Keras keeps there and we do not need, i32 and 0
};

/// In the order of the model. InvalidArgument, opened by `op`, for layers of which Keras does not say it.
std::vector<KerasPlace> keras_places(const Layer& model, std::string_view op);

/// What is written: bf16 as f32, which holds it exactly.
std::vector<NamedArray> keras_arrays(const Module& model, std::string_view op);
/// Assigns all or, with an InvalidArgument that lists what does not fit, nothing.
void assign_keras_arrays(const Module& model, const std::vector<NamedArray>& arrays, std::string_view op,
                         const std::string& file);

}  // namespace gradus
