/// With GRADUS_TEST_AMX=1 the program of a room's tests runs with products of bf16 by AMX, emulated where the processor
/// has none. Without AVX-512, which the emulation needs, or with AMX, which is used anyway, it says so and succeeds.
#include <cstdio>
#include <cstdlib>
#include "gradus/backend/cpu/isa.h"
#include "tests/backend_cpu/amx_emulator.h"

namespace gradus::amx_for_all {
namespace {

void use_amx_for_all_tests() {
  if (!std::getenv("GRADUS_TEST_AMX")) return;
  const char* const reason = cpu_backend::has_amx() ? "this processor has AMX, so the usual run has used it"
                             : !can_run_amx()       ? "this processor has neither AMX nor AVX-512"
                                                    : nullptr;
  if (reason) {
    std::printf("skipped: %s\n", reason);
    std::exit(0);
  }
  static const cpu_backend::IsaScope scope(cpu_backend::Isa::avx512, true);
}

const bool done = (use_amx_for_all_tests(), true);

}  // namespace
}  // namespace gradus::amx_for_all
