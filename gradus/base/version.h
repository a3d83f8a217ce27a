/// The version of Gradus.
#pragma once
#include <string_view>

namespace gradus {

/// "0.1.0"
std::string_view version();

}  // namespace gradus
