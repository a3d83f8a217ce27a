/// Where the time of a measured function goes: kernels of one name together.
#pragma once
#include <string>
#include <vector>
#include "gradus/function/explanation.h"

namespace gradus {

/// What one thread got done in a second in the measured time of a kernel, and as a share of what it could; 0 if it was
/// not measured. Arithmetic of formulas is counted in operations of the cost model, and bytes as if nothing stayed in a
/// cache, so that the share of bytes may be more than 1.
struct Achieved {
  double flops = 0, of_flops = 0, bytes = 0, of_bytes = 0;
};
Achieved achieved_by(const Kernel& kernel, const ThreadRates& rates);

struct ProfileRow {
  std::string name;
  int kernels = 0;     // of this name
  double runs = 0;     // in a call
  double seconds = 0;  // in a call, of all threads together
  double share = 0;    // of the seconds of all threads
  Achieved achieved;
};

/// What takes longest first; last "waiting", what no kernel takes of the seconds that all threads have in a call.
/// InvalidArgument if the function was not made with `profile`, or has not been called.
std::vector<ProfileRow> profile_of(const Explanation& explanation);

}  // namespace gradus
