/// Rows of attention by AVX2: vectors of 32 bytes (CMakeLists.txt says with which options this file is compiled).
#include "gradus/backend/cpu/kernels/attention_rows_code.h"

namespace gradus::library::attention {

static_assert(vector_bytes == 32);

const RowFunctions rows_by_avx2 = functions;

}  // namespace gradus::library::attention
