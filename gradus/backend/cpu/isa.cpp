/// Which instruction set generated code uses.
#include "gradus/backend/cpu/isa.h"
#include <atomic>
#include <cstdlib>
#include "gradus/base/error.h"

namespace gradus::cpu_backend {
namespace {

constexpr int none = -1;
std::atomic<int> override{none};

Isa chosen_by_environment() {
  const char* setting = std::getenv("GRADUS_ISA");
  return choose_isa(setting ? setting : "", widest_isa());
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
  if (forced != none) return static_cast<Isa>(forced);
  static const Isa chosen = chosen_by_environment();
  return chosen;
}

IsaScope::IsaScope(Isa isa) {
  choose_isa(name(isa), widest_isa());
  before_ = override.exchange(static_cast<int>(isa));
}

IsaScope::~IsaScope() { override.store(before_); }

}  // namespace gradus::cpu_backend
