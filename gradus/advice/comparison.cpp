/// Order statistics.
#include "gradus/advice/comparison.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace gradus {
namespace {

double median_of(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

int outside_of_interval(int pairs, double risk) {
  double chance = std::ldexp(1.0, -pairs), beyond = 0;  // that exactly k, and at most k, of them lie below the median
  int outside = -1;
  for (int k = 0; k < pairs / 2; ++k) {
    beyond += chance;
    if (2 * beyond > risk) break;
    outside = k;
    chance *= static_cast<double>(pairs - k) / (k + 1);
  }
  return outside;
}

void Comparison::add(double before, double after) {
  before_.push_back(before);
  after_.push_back(after);
  const double ratio = after / before;
  ratios_.insert(std::ranges::upper_bound(ratios_, ratio), ratio);
}

double Comparison::median_before() const { return median_of(before_); }
double Comparison::median_after() const { return median_of(after_); }
double Comparison::ratio() const { return median_of(ratios_); }

double Comparison::low() const {
  const int outside = outside_of_interval(pairs(), risk);
  return outside < 0 ? 0 : ratios_[static_cast<std::size_t>(outside)];
}

double Comparison::high() const {
  const int outside = outside_of_interval(pairs(), risk);
  return outside < 0 ? std::numeric_limits<double>::infinity()
                     : ratios_[ratios_.size() - 1 - static_cast<std::size_t>(outside)];
}

}  // namespace gradus
