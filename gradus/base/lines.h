/// A text line by line.
#pragma once
#include <algorithm>
#include <string_view>

namespace gradus {

/// Removes the first line from `rest`, and returns it without its end.
inline std::string_view take_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

}  // namespace gradus
