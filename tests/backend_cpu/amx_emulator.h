/// AMX for processors without it: its instructions are illegal there, and a handler of that signal executes them.
#pragma once
#include <cstdint>

namespace gradus {

/// Whether products by AMX can be run here: by the processor, or by the emulator, which this installs for the process.
/// False where there is no AVX-512, which they need too.
bool can_run_amx();

/// How many instructions this thread has had emulated.
std::int64_t amx_instructions_emulated();

}  // namespace gradus
