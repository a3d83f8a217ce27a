/// A call of the system that failed while `gradus launch` prepares its ranks.
#pragma once
#include <cerrno>
#include <string_view>
#include <system_error>
#include "gradus/base/error.h"

namespace gradus::command {

/// Throws Unavailable.
[[noreturn]] inline void fail_launch(std::string_view what, int problem = errno) {
  throw Unavailable(text("launch: ", what, ": ", std::generic_category().message(problem)));
}

}  // namespace gradus::command
