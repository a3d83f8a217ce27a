/// Blocks of factorizations by AVX-512: vectors of up to 64 bytes (CMakeLists.txt says with which options this file is
/// compiled).
#include "gradus/backend/cpu/kernels/factor_blocks_code.h"

namespace gradus::library::factors {

static_assert(vector_bytes == 64);

template <class T> const BlockFunctions<T>& blocks_by_avx512() { return functions<T>; }

template const BlockFunctions<float>& blocks_by_avx512();
template const BlockFunctions<double>& blocks_by_avx512();

}  // namespace gradus::library::factors
