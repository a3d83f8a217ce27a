/// How many steps a turn has, and when turns end. Decision 310 has the reasons.
#include "gradus/advice/turns.h"
#include <algorithm>
#include <cmath>

namespace gradus {
namespace {

constexpr double turn_seconds = 0.02;      // so that the clock and the begin of a turn do not count
constexpr double most_turn_seconds = 0.1;  // of steps that a turn has more of than one
constexpr double promising_gain = 0.1;     // of the time: such a lever gets more of it, until it is clear
constexpr int fewest_steps = 4, most_steps = 64;

int steps_of_turn(double step_seconds) {
  const int fewest = fewest_steps * step_seconds < most_turn_seconds ? fewest_steps : 1;
  return static_cast<int>(std::clamp(std::ceil(turn_seconds / step_seconds), double(fewest), double(most_steps)));
}

}  // namespace

Comparison by_turns(Trial& before, Trial& after, const Trial::Clock& clock, const TurnsEnd& end) {
  Comparison times;
  if (!before.is_warm() || !after.is_warm()) return times;
  const int steps = steps_of_turn(std::max({before.step_seconds(), after.step_seconds(), 1e-9}));
  double expected = steps * (before.step_seconds() + after.step_seconds());
  const double slot = std::min(std::max(end.slot, clock() + Comparison::fewest * expected), end.deadline);
  const auto pair = [&] {
    const double begin = clock(), seconds = before.run(steps);
    const double others = after.run(steps);
    expected = 0.7 * expected + 0.3 * (clock() - begin);  // one that was disturbed says little about the next
    return std::pair{seconds, others};
  };
  if (slot - clock() > 2 * Comparison::fewest * expected) (void)pair();  // caches and threads come to rest
  const auto last = [&] {
    if (times.pairs() < Comparison::fewest) return end.deadline;
    const bool promises = times.ratio() <= 1 - std::max(end.gain, promising_gain);
    return promises ? slot + (end.deadline - slot) / 4 : slot;
  };
  while (times.pairs() < Comparison::most && clock() + expected <= last()) {
    const auto [seconds, others] = pair();
    times.add(seconds, others);
    if (times.pairs() % Comparison::fewest == 0 && times.is_decided(end.gain)) break;
  }
  return times;
}

}  // namespace gradus
