/// Suggestions for misspelt names.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace gradus {

/// "; did you mean `batch_size`?" if a known name is near, else "; known are `a`, `b`": for the end of a message.
std::string did_you_mean(std::string_view given, std::span<const std::string> known);

}  // namespace gradus
