/// The longest vectors of the instruction set that the including file is compiled for. Kernels that gain by them are in
/// a `*_code.h`, which `*_avx2.cpp`, `*_avx512.cpp`, `*_avx512_bf16.cpp` and `kernels_neon.cpp` include: all of it is
/// that file's own, in an unnamed namespace, and makes one table of functions, from which `cpu_backend::processor()`
/// chooses. Inline functions of other headers are not called there: the linker might keep an instance compiled for
/// AVX-512 for all callers.
#pragma once

namespace gradus::library {
namespace {

#ifdef __AVX512F__
constexpr int vector_bytes = 64;
#elif defined(__x86_64__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

}  // namespace
}  // namespace gradus::library
