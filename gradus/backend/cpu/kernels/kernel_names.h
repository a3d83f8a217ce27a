/// The names of library kernels in object files.
#pragma once
#include <string>
#include "gradus/backend/cpu/run/thunk.h"

namespace gradus {

/// Of the function of a library kernel; empty for any other, and for those that need more than object files have.
std::string symbol_of(KernelFunction run);

}  // namespace gradus
