/// Functions of rows by AVX2: vectors of up to 32 bytes (CMakeLists.txt says with which options this file is compiled).
#include "gradus/backend/cpu/kernels/row_functions_code.h"

namespace gradus::library::factors {

static_assert(vector_bytes == 32);

template <class T> const RowFunctions<T>& rows_by_avx2() { return table_of_rows<T>; }

template const RowFunctions<float>& rows_by_avx2();
template const RowFunctions<double>& rows_by_avx2();

}  // namespace gradus::library::factors
