/// Profiles: the measured time of a function by kernel, those of one name together.
#pragma once
#include <string>
#include <vector>
#include "gradus/function/explanation.h"

namespace gradus {

/// The measured speed of a kernel on each thread; 0 if it was not measured. Arithmetic of formulas is counted in
/// operations of the cost model, and bytes as if nothing stayed in a cache, so the share of bytes may be more than 1.
struct Achieved {
  double flops = 0, of_flops = 0;  // a second; as a share of a thread's most
  double bytes = 0, of_bytes = 0;  // a second; as a share of a thread's most
};
/// The speed of one kernel.
Achieved achieved_by(const Kernel& kernel, const ThreadRates& rates);

/// The kernels of one name.
struct KernelRow {
  std::string name;    // such as "add+relu"
  int kernels = 0;     // of this name
  double runs = 0;     // in a call
  double seconds = 0;  // in a call, of all threads together
  double share = 0;    // of the seconds of all threads
  Achieved achieved;   // their speed
};

/// The profile, the longest first. The last row is "waiting": the time in which threads run no kernel.
/// InvalidArgument if the function was not made with `profile`, or has not been called.
std::vector<KernelRow> profile_of(const Explanation& explanation);

}  // namespace gradus
