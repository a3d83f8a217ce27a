/// The instruction set of generated code: the widest that the processor has, or that of GRADUS_ISA.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace gradus::cpu_backend {

enum class Isa : std::uint8_t { avx2, avx512 };

std::string_view name(Isa);

/// The widest instruction set of this processor, if any: avx2 needs AVX2, FMA and F16C, avx512 needs AVX-512 F, BW,
/// DQ, VL too.
std::optional<Isa> widest_isa();

/// The one that `setting` (GRADUS_ISA; empty: none) and a processor whose widest is `widest` make. InvalidArgument for
/// a setting that is unknown, Unavailable for one that the processor lacks and for processors without AVX2.
Isa choose_isa(std::string_view setting, std::optional<Isa> widest);

/// The instruction set in force. Results never depend on it, but for AMX, below.
Isa isa();

/// True if the processor has AVX512_BF16, which adds up products of pairs of bf16. Results never depend on it either.
bool has_pair_products();

/// True if products of pairs are faster than products in f32: Intel's processors take four times as long for as many
/// pairs as for one fma of f32, and have AMX for such products.
bool prefers_pair_products();

/// True if products do better with 32 KiB of an operand in the first-level cache: on Intel's processors where that
/// holds 48 KiB. AMD's read the second-level cache about as fast as tiles compute.
bool prefers_near_panels();

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

/// True if products of bf16 use AMX: has_amx(), unless GRADUS_ISA or an IsaScope names an instruction set. Their sums
/// are in another order than everywhere else (tiles/product.h), so this may change the bits of results.
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
  int before_;
};

}  // namespace gradus::cpu_backend
