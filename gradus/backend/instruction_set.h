/// The instruction set that generated code uses.
#pragma once
#include <string_view>

namespace gradus {

/// "avx2", "avx512" or "avx512 with AMX": the widest that this processor has, or the one that the environment variable
/// GRADUS_ISA forces (avx2 or avx512, either without AMX). All give the same bits, except for products of bf16 with
/// AMX, which are summed in another order. Unavailable if the processor has neither, or not the forced one;
/// InvalidArgument if GRADUS_ISA is anything else.
std::string_view instruction_set();

}  // namespace gradus
