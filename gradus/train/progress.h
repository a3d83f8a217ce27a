/// The progress of fit on stderr: on a terminal one line that is rewritten, elsewhere one line per epoch.
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
  /// If the number of steps is not known, the first epoch determines it for those after it.
  Progress(bool verbose, int epochs, std::optional<std::int64_t> steps_per_epoch);
  void begin_epoch(int epoch);
  /// True if the line should be rewritten: on a terminal, a few times a second.
  bool wants_line() const;
  void show_step(std::int64_t done, const NamedNumbers& numbers);
  /// `whole`: the epoch was not stopped.
  void end_epoch(std::int64_t steps, bool whole, double seconds, const NamedNumbers& numbers);
  /// The line of an epoch that is running: "epoch 2/5  step 3/10  ETA 4 s  12.5 ms/step  loss 0.3".
  std::string line(std::int64_t done, double seconds, const NamedNumbers& numbers) const;
  /// Ends an unfinished line.
  void abandon();

 private:
  using Clock = std::chrono::steady_clock;
  std::string head() const;
  std::string rewritten(const std::string& line) const;
  bool verbose_, terminal_, unfinished_ = false;
  int epochs_, epoch_ = 0;
  std::optional<std::int64_t> steps_;
  Clock::time_point begin_, shown_;
};

/// A number with four significant digits: 0.3214, 1.2e-05.
std::string short_number(double value);

}  // namespace gradus
