/// Rows of attention by AVX-512: vectors of 64 bytes (CMakeLists.txt says with which options this file is compiled).
#include "gradus/backend/cpu/kernels/attention_rows_code.h"

namespace gradus::library::attention {

static_assert(vector_bytes == 64);

const RowFunctions rows_by_avx512 = functions;

}  // namespace gradus::library::attention
