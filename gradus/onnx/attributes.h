/// Which attributes an op of ONNX has.
#pragma once
#include <string_view>

namespace gradus::onnx {

/// Their names, separated by blanks; empty of an op without any.
std::string_view attributes_of(std::string_view op);
bool has_attribute(std::string_view op, std::string_view name);

}  // namespace gradus::onnx
