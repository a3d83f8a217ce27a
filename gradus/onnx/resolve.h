/// Checks of a model before it runs, done once: every value is made before it is used, every op has a row, functions do
/// not call themselves.
#pragma once
#include "gradus/onnx/model_file.h"

namespace gradus::onnx {

/// The newest operator set that the rows know.
inline constexpr std::int64_t newest_opset = 28;

/// Gives every node its row or function. DataError for mistakes, Unsupported with all ops that have no row.
void resolve(ModelFile& model, const std::string& file);

}  // namespace gradus::onnx
