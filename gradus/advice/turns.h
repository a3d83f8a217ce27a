/// Two trials in alternation.
#pragma once
#include "gradus/advice/comparison.h"
#include "gradus/advice/trial.h"

namespace gradus {

/// When turns end, on the clock of the trials.
struct TurnsEnd {
  double slot;      // when to end if it is not clear by then
  double deadline;  // when to end at the latest
  double gain;      // the least one that counts
};

/// Seconds of steps before and after a change: a few steps of one trial, as many of the other, and so on, until a
/// further pair would decide nothing. At least Comparison::fewest pairs, if they end before the deadline. A change that
/// seems to gain a tenth and is not clear when its slot ends goes on for a quarter of the time that is left.
Comparison by_turns(Trial& before, Trial& after, const Trial::Clock& clock, const TurnsEnd& end);

}  // namespace gradus
