/// Fourier transforms by AVX-512: vectors of up to 64 bytes (CMakeLists.txt says with which options this file is
/// compiled).
#include "gradus/backend/cpu/kernels/fourier_code.h"

namespace gradus::library::fourier {

static_assert(vector_bytes == 64);

template <class T> TransformRows<T> rows_by_avx512() { return rows_of<T>; }

template TransformRows<float> rows_by_avx512();
template TransformRows<double> rows_by_avx512();

}  // namespace gradus::library::fourier
