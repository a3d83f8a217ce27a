/// Functions of rows by AVX-512: vectors of up to 64 bytes (CMakeLists.txt says with which options this file is
/// compiled).
#include "gradus/backend/cpu/kernels/row_functions_code.h"

namespace gradus::library::factors {

static_assert(vector_bytes == 64);

template <class T> const RowFunctions<T>& rows_by_avx512() { return table_of_rows<T>; }

template const RowFunctions<float>& rows_by_avx512();
template const RowFunctions<double>& rows_by_avx512();

}  // namespace gradus::library::factors
