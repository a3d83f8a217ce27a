/// The names of library kernels in object files.
#pragma once
#include <string>
#include "gradus/backend/cpu/run/thunk.h"

namespace gradus {

/// The symbol of a library kernel's function; empty for any other, and for those that need more than object files have.
std::string symbol_of(KernelFunction run);

}  // namespace gradus
