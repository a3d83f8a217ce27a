/// Measuring time.
#pragma once
#include <chrono>

namespace gradus {

namespace detail::inline rooms {

/// Seconds on a clock that never goes back. Only differences are meaningful.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// In seconds, down to a tenth: for messages.
inline double tenths_of_seconds(std::chrono::steady_clock::duration time) {
  return static_cast<double>(time / std::chrono::milliseconds(100)) / 10;
}

}  // namespace detail::inline rooms

}  // namespace gradus
