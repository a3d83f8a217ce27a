/// The attributes of ONNX's ops.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace gradus::onnx {

/// Names of the attributes of an op in an opset, separated by blanks; empty for an op without any.
std::string attributes_of(std::string_view op, std::int64_t opset);
bool has_attribute(std::string_view op, std::string_view name, std::int64_t opset);
/// The opsets that define an attribute, if not all of them do: "1-6", "19-", "1-6 14-"; else empty.
std::string opsets_with(std::string_view op, std::string_view name);

}  // namespace gradus::onnx
