/// Messages of the library beside its results.
#pragma once
#include <string_view>

namespace gradus {

/// Writes to standard error at once. Numbers go through text() first, so the caller's locale does not matter.
void notice(std::string_view written);

}  // namespace gradus
