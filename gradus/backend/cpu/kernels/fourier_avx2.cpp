/// Fourier transforms by AVX2: vectors of up to 32 bytes (CMakeLists.txt says with which options this file is
/// compiled).
#include "gradus/backend/cpu/kernels/fourier_code.h"

namespace gradus::library::fourier {

static_assert(vector_bytes == 32);

template <class T> TransformRows<T> rows_by_avx2() { return rows_of<T>; }

template TransformRows<float> rows_by_avx2();
template TransformRows<double> rows_by_avx2();

}  // namespace gradus::library::fourier
