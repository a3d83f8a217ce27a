/// The choice of the instruction set of generated code.
#include "gradus/backend/cpu/isa.h"
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <cstdlib>
#include "gradus/base/error.h"

namespace gradus::cpu_backend {
namespace {

constexpr int none = -1;
constexpr int with_amx = 0x100;
std::atomic<int> override{none};  // an Isa, and whether AMX is used

std::string_view environment() {
  const char* setting = std::getenv("GRADUS_ISA");
  return setting ? setting : "";
}

bool bit(std::uint64_t bits, int number) { return (bits >> number & 1) != 0; }

/// The states that the kernel saves when threads change; only where CPUID says that there is such a register.
std::uint64_t saved_states() {
  unsigned eax, ebx, ecx, edx;
  constexpr int has_xgetbv = 27;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !bit(ecx, has_xgetbv)) return 0;
  std::uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

std::uint32_t features_of_leaf_7() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) ? edx : 0;
}

constexpr int tile_data = 18;  // of the states

/// Linux gives the large state of tiles only to processes that ask: one request, for all threads.
bool ask_kernel_for_tiles() {
  constexpr int request = 0x1023;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, request, tile_data) == 0;
}

}  // namespace

std::string_view name(Isa isa) { return isa == Isa::avx2 ? "avx2" : "avx512"; }

std::optional<Isa> widest_isa() {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (!avx2) return std::nullopt;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? Isa::avx512 : Isa::avx2;
}

bool has_pair_products() {
  static const bool has = widest_isa() == Isa::avx512 && __builtin_cpu_supports("avx512bf16");
  return has;
}

bool prefers_pair_products() {
  static const bool prefers = has_pair_products() && !__builtin_cpu_is("intel");
  return prefers;
}

bool prefers_near_panels() {
  static const bool prefers = __builtin_cpu_is("intel") && sysconf(_SC_LEVEL1_DCACHE_SIZE) >= 48 << 10;
  return prefers;
}

bool has_amx(const AmxBits& bits) {
  constexpr int bf16_products = 22, tiles = 24, tile_shapes = 17;
  return bits.pair_products && bit(bits.features, tiles) && bit(bits.features, bf16_products) &&
         bit(bits.saved, tile_shapes) && bit(bits.saved, tile_data) && bits.permitted && bits.permitted();
}

bool has_amx() {
  static const bool has = has_amx({has_pair_products(), features_of_leaf_7(), saved_states(), ask_kernel_for_tiles});
  return has;
}

bool uses_amx() {
  static const bool by_default = environment().empty() && has_amx();
  const int forced = override.load(std::memory_order_relaxed);
  return forced == none ? by_default : (forced & with_amx) != 0;
}

Isa choose_isa(std::string_view setting, std::optional<Isa> widest) {
  require<Unavailable>(widest.has_value(),
                       "gradus computes with AVX2, FMA and F16C, which this processor does not have");
  if (setting.empty()) return *widest;
  for (Isa isa : {Isa::avx2, Isa::avx512}) {
    if (setting != name(isa)) continue;
    require<Unavailable>(isa <= *widest, "GRADUS_ISA: this processor has no ", setting, "; expected ", name(*widest),
                         ", or unset it");
    return isa;
  }
  throw InvalidArgument(text("GRADUS_ISA: expected avx2 or avx512, given '", setting, "'; unset it to use the widest"));
}

Isa isa() {
  const int forced = override.load(std::memory_order_relaxed);
  if (forced != none) return static_cast<Isa>(forced & ~with_amx);
  static const Isa chosen = choose_isa(environment(), widest_isa());
  return chosen;
}

IsaScope::IsaScope(Isa isa, bool amx) {
  choose_isa(name(isa), widest_isa());
  before_ = override.exchange(static_cast<int>(isa) | (amx ? with_amx : 0));
}

IsaScope::~IsaScope() { override.store(before_); }

}  // namespace gradus::cpu_backend
