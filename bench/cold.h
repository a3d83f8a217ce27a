/// How long a process takes from its exec to the first loss.
#pragma once
#include <functional>
#include "bench/measurement.h"

namespace gradus::bench {

using NoteLoss = std::function<void(double loss)>;

/// `first_step` builds everything, runs one step and notes its loss as soon as it is on the host, which ends the
/// measurement; then it gives the seconds that compiling took. The time of the exec is in T0; where that is not set the
/// process executes itself, with the same arguments.
Figures measure_cold(const std::function<double(const NoteLoss&)>& first_step);

}  // namespace gradus::bench
