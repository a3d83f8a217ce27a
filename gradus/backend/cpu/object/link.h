/// Linking: several object files and the archive of kernels become one file that needs nothing else.
#pragma once
#include <string>
#include <vector>
#include "gradus/backend/cpu/isa.h"

namespace gradus::object {

/// `kept`: the functions that others may call. `title` begins messages. Unavailable if the tools of binutils, for
/// another target that target's, are missing; InvalidArgument that names the symbols that would have to be linked
/// besides.
std::string linked(const std::vector<std::string>& objects, const std::vector<std::string>& kept, cpu_backend::Isa isa,
                   const std::string& title);

/// The first of the tools for this target that is in no folder of PATH; empty if none is missing.
std::string missing_tool(const cpu_backend::Processor& processor);

}  // namespace gradus::object
