/// Keras's paths of the variables of a model.
#pragma once
#include <memory>
#include <string>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/formats/safetensors.h"
#include "gradus/nn/layer.h"
#include "gradus/nn/module.h"

namespace gradus {

/// Values of `from` may become those of a variable of type `to`.
inline bool loads_into(DType from, DType to) { return from == to || (is_floating(from) && is_floating(to)); }

struct KerasPlace {
  std::string path;  // such as "layers/dense/vars/0"
  /// Null: a number that Keras keeps there and that is not needed here, i32 and 0.
  std::shared_ptr<VariableCell> variable = {};
};

/// In the order of the model. InvalidArgument, opened by `op`, for layers whose paths in Keras are not known.
std::vector<KerasPlace> keras_places(const Layer& model, std::string_view op);

/// The arrays to write, with bf16 as f32, which holds it exactly.
std::vector<NamedArray> keras_arrays(const Module& model, std::string_view op);
/// Assigns all arrays or, with an InvalidArgument that lists what does not fit, none.
void assign_keras_arrays(const Module& model, const std::vector<NamedArray>& arrays, std::string_view op,
                         const std::string& file);

}  // namespace gradus
