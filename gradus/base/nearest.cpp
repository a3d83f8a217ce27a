/// Edit distance over the known names.
#include "gradus/base/nearest.h"
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace gradus {
namespace {

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = corner + (a[i - 1] != b[j - 1]);
      corner = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(std::string_view given, std::span<const std::string> known) {
  if (known.empty()) return "; there is none";
  const auto nearest =
      std::ranges::min_element(known, {}, [&](const std::string& name) { return distance(given, name); });
  if (distance(given, *nearest) <= std::max<std::size_t>(2, given.size() / 3))
    return "; did you mean `" + *nearest + "`?";
  std::string out = "; known are";
  for (std::size_t i = 0; i < std::min<std::size_t>(known.size(), 20); ++i) out += (i ? ", `" : " `") + known[i] + "`";
  return out + (known.size() > 20 ? " ..." : "");
}

}  // namespace gradus
