/// The processors that object files can be made for.
#pragma once
#include <string_view>
#include "gradus/backend/cpu/processors.h"

namespace gradus::object {

/// The processor that `target` and `instruction_set` of ObjectOptions name; empty: this machine's, and the widest that
/// it has or the target's first. InvalidArgument for unknown names, and for an instruction set of another target;
/// Unavailable if this machine is of the target and lacks the instruction set, or the kernels of the target or its
/// tools are not installed. Errors name the options.
const cpu_backend::Processor& processor_for(std::string_view target, std::string_view instruction_set);

}  // namespace gradus::object
