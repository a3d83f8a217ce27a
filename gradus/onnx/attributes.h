/// Which attributes an op of ONNX has.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace gradus::onnx {

/// Their names in an opset, separated by blanks; empty of an op without any.
std::string attributes_of(std::string_view op, std::int64_t opset);
bool has_attribute(std::string_view op, std::string_view name, std::int64_t opset);
/// The opsets that define an attribute that not all of them do: "1-6", "19-", "1-6 14-"; else empty.
std::string opsets_with(std::string_view op, std::string_view name);

}  // namespace gradus::onnx
