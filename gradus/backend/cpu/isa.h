/// The processor that code is made for: the widest row of processors.h that this one is, or that of GRADUS_ISA, or the
/// one that a compile asks for.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include "gradus/backend/cpu/processors.h"

namespace gradus::cpu_backend {

constexpr std::string_view name(Isa isa) { return processor_of(isa).name; }

/// The widest instruction set of this processor, if any: avx2 needs AVX2, FMA and F16C, avx512 needs AVX-512 F, BW,
/// DQ, VL too; every 64-bit ARM has neon.
std::optional<Isa> widest_isa();

/// The one that `setting` (GRADUS_ISA; empty: none) and a processor whose widest is `widest` make. InvalidArgument for
/// a setting that is unknown, Unavailable for one that the processor lacks and for processors without AVX2.
Isa choose_isa(std::string_view setting, std::optional<Isa> widest);

/// The row in force: in a thread that compiles for another processor (TargetScope) that one, else this process's.
/// Results never depend on it, but for AMX, below.
const Processor& processor();
/// Its instruction set.
Isa isa();
/// That of this process, which runs here, whatever a compile asks for.
Isa host_isa();

/// True if the processor has AVX512_BF16, which adds up products of pairs of bf16. Results never depend on it either.
bool has_pair_products();

/// True if products of pairs are faster than products in f32: Intel's processors take four times as long for as many
/// pairs as for one fma of f32, and have AMX for such products.
bool prefers_pair_products();

/// True if products do better with 32 KiB of an operand in the first-level cache: on Intel's processors where that
/// holds 48 KiB. AMD's read the second-level cache about as fast as tiles compute.
bool prefers_near_panels();

/// Bytes of the second-level cache, 512 KiB where that is unknown.
std::int64_t second_level_cache();

/// The facts about processor and kernel that decide whether AMX is used.
struct AmxBits {
  bool pair_products = false;     // has_pair_products()
  std::uint32_t features = 0;     // edx of leaf 7 of CPUID
  std::uint64_t saved = 0;        // XCR0: the states that the kernel saves
  bool (*permitted)() = nullptr;  // asks the kernel for the tiles, once nothing else is missing
};
/// True if matrix products can use AMX: tiles and their products of bf16, which the kernel saves and permits.
bool has_amx(const AmxBits&);
/// True if this processor has AMX and this process may use it. The first call asks the kernel.
bool has_amx();

/// True if products of bf16 use AMX: has_amx(), unless GRADUS_ISA, an IsaScope or a TargetScope names a processor.
/// Their sums are in another order than everywhere else (tiles/product.h), so this may change the bits of results.
bool uses_amx();

/// Another instruction set for the whole process while it lives, with or without AMX, whose presence is assumed: for
/// tests. Scopes of one thread nest; work in progress in other threads keeps the one it began with.
class IsaScope {
 public:
  explicit IsaScope(Isa, bool amx = false);
  ~IsaScope();
  IsaScope(const IsaScope&) = delete;
  IsaScope& operator=(const IsaScope&) = delete;

 private:
  const Processor* before_;
};

/// The processor that this thread makes code for while it lives (the argument of compile()); other threads notice
/// nothing. It may be of another architecture: then nothing that was compiled can run here. Null changes nothing.
class TargetScope {
 public:
  explicit TargetScope(const Processor*);
  ~TargetScope();
  TargetScope(const TargetScope&) = delete;
  TargetScope& operator=(const TargetScope&) = delete;

 private:
  const Processor* before_;
};

}  // namespace gradus::cpu_backend
