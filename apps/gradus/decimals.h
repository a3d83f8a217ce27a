/// Numbers in texts.
#pragma once
#include <charconv>
#include <iomanip>
#include <iterator>
#include <string>
#include "gradus/base/error.h"

namespace gradus::command {

/// With so many digits after the point.
inline std::string fixed(double value, int digits) { return text(std::fixed, std::setprecision(digits), value); }

/// The shortest text that is read back as the same number.
inline std::string shortest(double value) {
  char digits[32];
  const auto [end, problem] = std::to_chars(digits, std::end(digits), value);
  return {digits, end};
}

}  // namespace gradus::command
