/// Transforms of Winograd's tiles by AVX-512: vectors of 64 bytes (CMakeLists.txt says with which options this file is
/// compiled).
#include "gradus/backend/cpu/kernels/winograd_transforms_code.h"

namespace gradus::library::winograd {

static_assert(vector_bytes == 64);

const Transforms transforms_by_avx512 = functions;

}  // namespace gradus::library::winograd
