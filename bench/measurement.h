/// How a workload is timed, and the JSON line that it prints: what peer_protocol.py does for the peers.
#pragma once
#include <functional>
#include <optional>
#include <vector>
#include <nlohmann/json.hpp>
#include "gradus/function/explanation.h"

namespace gradus::bench {

double seconds_now();
/// Since 1970.
double wall_seconds();
/// Since T0, when the process was started; null without it.
nlohmann::ordered_json seconds_since_exec();
double resident_mb();
double peak_resident_mb();

/// One workload's figures; what does not apply stays null.
struct Figures {
  nlohmann::ordered_json median_us, min_us, p90_us, first_call_s;
  nlohmann::ordered_json extra = nlohmann::ordered_json::object();
  std::optional<Explanation> explanation;  // of the function that was measured

  /// Keeps it, and says how long compiling took and what came of it.
  void explain(Explanation e);
};

/// Whether `mine` holds on any of the ranks that measure together (bench/ranks.h), which all ask equally often.
inline std::function<bool(bool)> on_any_rank = [](bool mine) { return mine; };

/// Times `step`, which does one unit of work and reads its result; `step_without_reading` leaves the result alone, and
/// `wait` waits for all that was started. First call, five more, then single steps until enough time has passed
/// (BAR_MIN_S, BAR_MIN_REP, BAR_MAX_S).
struct Timed {
  std::function<void()> step, step_without_reading, wait;
  /// Whether further steps are wanted, which are not timed: for results that are compared after so many.
  std::function<bool()> lacks_steps = {};
};
Figures measure(const Timed& timed);

/// Losses are compared after half as many steps, and after so many.
inline constexpr std::size_t compared_steps = 20;
/// The losses of steps in order: the first, those after 10 and 20 steps, to compare with others, and the last.
void add_losses(Figures& figures, const std::vector<double>& losses);

/// One line, every number with seven significant digits.
void print_line(const std::string& workload, const Figures& figures);

}  // namespace gradus::bench
