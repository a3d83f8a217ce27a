/// Comparison: two trials in alternation, and the ratios of their times.
#pragma once
#include <functional>
#include <vector>

namespace gradus {

/// Seconds of steps without and with a change, measured in pairs, one right after the other.
class Comparison {
 public:
  /// The fewest pairs that have an interval, and the most that are measured.
  static constexpr int fewest = 8, most = 32;
  /// The chance, at most, that an interval does not hold the median of the ratios.
  static constexpr double risk = 0.01;

  void add(double before, double after);
  int pairs() const { return static_cast<int>(before_.size()); }
  double median_before() const;
  double median_after() const;
  /// The median of after / before.
  double ratio() const;
  /// The exact interval of the median of after / before: that of order statistics, which supposes nothing about how
  /// times are distributed. With fewer pairs than `fewest` from 0 to infinity.
  double low() const;
  double high() const;

  /// True if the change gains at least the share `gain` of the time; both false: it is not clear.
  bool gains(double gain) const { return high() < 1 && ratio() <= 1 - gain; }
  bool does_not_gain(double gain) const { return low() > 1 - gain; }
  /// True if the change takes longer.
  bool is_slower() const { return low() > 1; }
  /// True if further pairs would decide nothing.
  bool is_decided(double gain) const { return high() < 1 - gain || does_not_gain(gain); }

 private:
  std::vector<double> before_, after_, ratios_;  // ratios ascend
};

/// How many of `pairs` ordered numbers lie outside of the interval at each end: the most for which the median of their
/// distribution lies outside with a chance of `risk` at most. -1: there is no such interval.
int outside_of_interval(int pairs, double risk);

}  // namespace gradus
