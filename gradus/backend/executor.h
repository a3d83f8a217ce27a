/// Runs what is bound: one fork a program, a barrier between sections.
#pragma once
#include "gradus/backend/binding.h"

namespace gradus {

/// `slots` says where every value lies, `scratch` is that of worker 0. Stops after the stage in which `error` was set.
void execute(const Binding& binding, void* const* slots, std::byte* scratch, ErrorWord& error);

}  // namespace gradus
