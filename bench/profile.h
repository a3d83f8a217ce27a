/// Where the time of a workload goes, kernel by kernel.
#pragma once
#include <string>
#include "bench/measurement.h"

namespace gradus::bench {

/// A table in Markdown: time of the kernels of each name, and what it is of the arithmetic and bandwidth that are
/// measured right after. InvalidArgument if the workload has no function to look at.
void print_profile(const std::string& workload, const Figures& figures);

}  // namespace gradus::bench
