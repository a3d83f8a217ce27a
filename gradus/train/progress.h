/// What fit shows while it runs, on stderr: on a terminal one line that is rewritten, elsewhere one line an epoch.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gradus {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

class Progress {
 public:
  Progress(bool verbose, int epochs, std::int64_t steps_per_epoch);
  void begin_epoch(int epoch);
  /// On a terminal, a few times a second: whether the line should be rewritten.
  bool wants_line() const;
  void show_step(std::int64_t done, const NamedNumbers& numbers);
  void end_epoch(std::int64_t steps, double seconds, const NamedNumbers& numbers);
  /// Ends an unfinished line.
  void abandon();

 private:
  using Clock = std::chrono::steady_clock;
  std::string head() const;
  void rewrite(const std::string& line);
  bool verbose_, terminal_, unfinished_ = false;
  int epochs_, epoch_ = 0;
  std::int64_t steps_;
  Clock::time_point begin_, shown_;
};

/// 0.3214, 1.2e-05: four significant digits.
std::string short_number(double value);

}  // namespace gradus
