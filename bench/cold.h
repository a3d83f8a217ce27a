/// How long a process takes from its exec to the first loss.
#pragma once
#include <functional>
#include <string>
#include "bench/measurement.h"

namespace gradus::bench {

/// `first_loss` builds everything, runs one step and reads its loss; it may add figures. The time of the exec is in T0;
/// where that is not set the process executes itself.
Figures measure_cold(const std::string& workload, const std::function<double(Figures& figures)>& first_loss);

}  // namespace gradus::bench
