/// Rows of attention by AVX-512 with AVX512_BF16, which rounds to bf16 (CMakeLists.txt has the options).
#include "gradus/backend/cpu/kernels/attention_rows_code.h"

namespace gradus::library::attention {

static_assert(vector_bytes == 64);

const RowFunctions rows_by_avx512_bf16 = functions;

}  // namespace gradus::library::attention
