/// Numbers as the reasons and tables of advice have them.
#pragma once
#include <cmath>
#include <cstddef>
#include <iomanip>
#include <string>
#include "gradus/base/error.h"
#include "gradus/tensor/memory.h"

namespace gradus::advice_words {

inline std::string fixed(double value, int digits) { return text(std::fixed, std::setprecision(digits), value); }

inline std::string time(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds >= 1) return fixed(seconds, 2) + " s";
  if (seconds >= 1e-3) return fixed(seconds * 1e3, seconds >= 0.1 ? 0 : 2) + " ms";
  return fixed(seconds * 1e6, 1) + " us";
}

inline std::string bytes(std::size_t count) {
  const auto size = static_cast<double>(count);
  if (count >= GiB) return fixed(size / GiB, 2) + " GiB";
  if (count >= MiB) return fixed(size / MiB, 1) + " MiB";
  return fixed(size / KiB, 1) + " KiB";
}

inline std::string percent(double share) {
  const double hundredths = 100 * share;
  return fixed(hundredths, std::abs(hundredths) < 9.95 ? 1 : 0) + " %";
}

}  // namespace gradus::advice_words
