/// How exactly devices of plugins multiply numbers of f32.
#pragma once
#include <cstdint>
#include <optional>

namespace gradus {

/// The bits of f32 that products and convolutions keep on a device of a plugin. The processor always keeps all bits,
/// and so do products of f64 and of integers everywhere.
enum class MatmulPrecision : std::uint8_t {
  platform_default,  // the platform's own choice: TF32 on NVIDIA's newer GPUs, bf16 on a TPU
  highest,           // all bits of f32; on a TPU a program takes five times as long to compile, and more
};

/// True if all bits are kept: as `asked` says, else the environment variable GRADUS_MATMUL_PRECISION ("highest" or
/// "default"), else no: the platform's default. InvalidArgument for another value of the variable.
bool keeps_all_bits(std::optional<MatmulPrecision> asked);

}  // namespace gradus
