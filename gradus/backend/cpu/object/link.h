/// Linking: several object files and the archive of kernels become one file that needs nothing else.
#pragma once
#include <string>
#include <vector>
#include "gradus/backend/cpu/isa.h"

namespace gradus::object {

/// `kept`: the functions that others may call. `title` begins messages. Unavailable if the tools of binutils are
/// missing; InvalidArgument that names the symbols that would have to be linked besides.
std::string linked(const std::vector<std::string>& objects, const std::vector<std::string>& kept, cpu_backend::Isa isa,
                   const std::string& title);

}  // namespace gradus::object
