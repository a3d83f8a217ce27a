/// Measuring time.
#pragma once
#include <chrono>

namespace gradus {

/// Seconds on a clock that never goes back. Only differences are meaningful.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace gradus
