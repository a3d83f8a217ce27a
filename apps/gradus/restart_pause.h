/// The pause of `gradus launch --restarts` before it starts all ranks again.
#pragma once
#include <algorithm>
#include <chrono>

namespace gradus::command {

/// The pause doubles, up to 30 s, after each start that ends at once. A start that has run for a while is followed by
/// the shortest pause.
class RestartPause {
 public:
  static constexpr std::chrono::milliseconds shortest{125}, longest{30'000};
  static constexpr std::chrono::seconds soon{30};  // a start that ends earlier has ended at once

  std::chrono::milliseconds after(std::chrono::steady_clock::duration lived) {
    if (lived >= soon) next_ = shortest;
    const std::chrono::milliseconds pause = next_;
    next_ = std::min(2 * next_, longest);
    return pause;
  }

 private:
  std::chrono::milliseconds next_ = shortest;
};

}  // namespace gradus::command
