/// Layers of Keras's classes.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include "gradus/nn/cells.h"
#include "gradus/train/keras_options.h"

namespace gradus {

using MakeKerasLayer = std::function<Module(KerasOptions&)>;
/// By class name, without the layers that hold others.
const std::map<std::string, MakeKerasLayer>& keras_layers();
/// A cell that holds no others. Empty, and a problem, if there is no such class.
std::optional<RecurrentCell> keras_cell(const std::string& class_name, KerasOptions& options);

}  // namespace gradus
