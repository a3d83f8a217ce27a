/// Which instructions generated code uses.
#pragma once
#include <string_view>

namespace gradus {

/// "avx2" or "avx512": the widest that this processor has, or what the environment variable GRADUS_ISA forces.
/// Unavailable if the processor has neither, or not the forced one.
std::string_view instruction_set();

}  // namespace gradus
