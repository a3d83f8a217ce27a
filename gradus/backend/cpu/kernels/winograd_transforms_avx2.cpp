/// Transforms of Winograd's tiles by AVX2: vectors of 32 bytes (CMakeLists.txt says with which options this file is
/// compiled).
#include "gradus/backend/cpu/kernels/winograd_transforms_code.h"

namespace gradus::library::winograd {

static_assert(vector_bytes == 32);

const Transforms transforms_by_avx2 = functions;

}  // namespace gradus::library::winograd
