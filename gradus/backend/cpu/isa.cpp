/// The choice of the processor that code is made for.
#include "gradus/backend/cpu/isa.h"
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif
#include <unistd.h>
#include <atomic>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string>
#include "gradus/base/error.h"
#include "gradus/base/input_file.h"

namespace gradus::cpu_backend {
namespace {

std::atomic<const Processor*> override = nullptr;  // of an IsaScope
// An argument of compile() names it, and that and an export set it for their duration: kernels plan with the same
// functions before a run and within it, and within an object file the row is a fact (object/standalone_step.cpp).
thread_local constinit const Processor* target_of_compile = nullptr;

std::string_view environment() {
  const char* setting = std::getenv("GRADUS_ISA");
  return setting ? setting : "";
}

const Processor& with_amx() {
  for (const Processor& row : processors)
    if (row.uses_amx) return row;
  throw InternalError("internal fault: no processor has AMX");
}

/// This process's, unless a compile asks for another one.
const Processor& host() {
  if (const Processor* forced = override.load(std::memory_order_relaxed)) return *forced;
  static const Processor& chosen =
      environment().empty() && has_amx() ? with_amx() : processor_of(choose_isa(environment(), widest_isa()));
  return chosen;
}

constexpr std::string_view missing =
    is_own(Isa::neon) ? "gradus computes with NEON, which this processor does not have"
                      : "gradus computes with AVX2, FMA and F16C, which this processor does not have";

/// The names of this architecture's instruction sets: "a or b".
std::string own_names() {
  std::string names;
  for (const Processor& row : processors)
    if (is_own(row) && !row.uses_amx) names += (names.empty() ? "" : " or ") + std::string(row.name);
  return names;
}

bool bit(std::uint64_t bits, int number) { return (bits >> number & 1) != 0; }

constexpr int tile_data = 18;  // of the states that a kernel saves

#if defined(__x86_64__)
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

/// Linux gives the large state of tiles only to processes that ask: one request, for all threads.
bool ask_kernel_for_tiles() {
  constexpr int request = 0x1023;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, request, tile_data) == 0;
}

bool is_from_intel() { return __builtin_cpu_is("intel"); }
bool has_products_of_pairs() { return widest_isa() == Isa::avx512 && __builtin_cpu_supports("avx512bf16"); }
#else
std::uint64_t saved_states() { return 0; }
std::uint32_t features_of_leaf_7() { return 0; }
bool ask_kernel_for_tiles() { return false; }
bool is_from_intel() { return false; }
bool has_products_of_pairs() { return false; }
#endif

/// The size of the first core's second cache as Linux tells it, such as "1024K"; 0 if it does not. On ARM sysconf() is
/// silent before glibc 2.37.
std::int64_t cache_of_kernel() {
  std::array<char, 32> words{};
  try {
    InputFile("/sys/devices/system/cpu/cpu0/cache/index2/size")
        .read(std::as_writable_bytes(std::span(words)).first(31));
  } catch (const Unavailable&) { return 0; }
  std::int64_t kilobytes = 0;
  const auto [end, problem] = std::from_chars(words.data(), words.data() + words.size(), kilobytes);
  return problem == std::errc() && *end == 'K' && kilobytes <= 1 << 20 ? kilobytes << 10 : 0;
}

constexpr std::int64_t usual_cache = 512 << 10;

/// True while this thread compiles for a processor whose facts are not those of this one.
bool is_foreign() { return target_of_compile != nullptr && !is_own(*target_of_compile); }

}  // namespace

#if defined(__x86_64__)
std::optional<Isa> widest_isa() {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (!avx2) return std::nullopt;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? Isa::avx512 : Isa::avx2;
}
#else
std::optional<Isa> widest_isa() { return Isa::neon; }
#endif

bool has_pair_products() {
  static const bool has = has_products_of_pairs();
  return has && !is_foreign();
}

bool prefers_pair_products() { return has_pair_products() && !is_from_intel(); }

bool prefers_near_panels() {
  static const bool prefers = is_from_intel() && sysconf(_SC_LEVEL1_DCACHE_SIZE) >= 48 << 10;
  return prefers && !is_foreign();
}

std::int64_t second_level_cache() {
  if (is_foreign()) return usual_cache;
  static const std::int64_t bytes = [] {
    const std::int64_t told = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return told > 0 ? told : cache_of_kernel();
  }();
  return bytes > 0 ? bytes : usual_cache;
}

bool has_amx(const AmxBits& bits) {
  constexpr int bf16_products = 22, tiles = 24, tile_shapes = 17;
  return bits.pair_products && bit(bits.features, tiles) && bit(bits.features, bf16_products) &&
         bit(bits.saved, tile_shapes) && bit(bits.saved, tile_data) && bits.permitted && bits.permitted();
}

bool has_amx() {
  static const bool has =
      has_amx({has_products_of_pairs(), features_of_leaf_7(), saved_states(), ask_kernel_for_tiles});
  return has;
}

bool uses_amx() { return processor().uses_amx; }

Isa choose_isa(std::string_view setting, std::optional<Isa> widest) {
  require<Unavailable>(widest.has_value(), missing);
  if (setting.empty()) return *widest;
  for (const Processor& row : processors) {
    if (setting != row.name || !is_own(row) || row.uses_amx) continue;
    require<Unavailable>(row.isa <= *widest, "GRADUS_ISA: this processor has no ", setting, "; expected ",
                         name(*widest), ", or unset it");
    return row.isa;
  }
  throw InvalidArgument(
      text("GRADUS_ISA: expected ", own_names(), ", given '", setting, "'; unset it to use the widest"));
}

const Processor& processor() {
  if (target_of_compile != nullptr) return *target_of_compile;
  return host();
}
Isa isa() { return processor().isa; }
Isa host_isa() { return host().isa; }

IsaScope::IsaScope(Isa isa, bool amx) {
  choose_isa(name(isa), widest_isa());
  before_ = override.exchange(amx ? &with_amx() : &processor_of(isa));
}

IsaScope::~IsaScope() { override.store(before_); }

TargetScope::TargetScope(const Processor* target) : before_(target_of_compile) {
  if (target != nullptr) target_of_compile = target;
}

TargetScope::~TargetScope() { target_of_compile = before_; }

}  // namespace gradus::cpu_backend
