/// The name of this machine.
#pragma once
#include <string>
#include <string_view>

namespace gradus {

/// As gethostname() tells it, or `otherwise` if there is none.
std::string host_name(std::string_view otherwise);

}  // namespace gradus
