/// Numbers in texts, whatever locale the test runs in.
#pragma once
#include <charconv>
#include <limits>
#include <string_view>

namespace gradus {

/// The number that `text` begins with; NaN if there is none.
inline double number_in(std::string_view text) {
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() ? number : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace gradus
