/// The longest vectors of the instruction set that the file which includes this is compiled for. Kernels that gain by
/// them are in a `*_code.h`, which `*_avx2.cpp`, `*_avx512.cpp` and `*_avx512_bf16.cpp` include: all of it is that
/// file's own, in an unnamed namespace, and makes one table of functions, of which `cpu_backend::isa()` chooses.
/// Functions of others are not called there: an instance compiled for AVX-512 might be the one that everybody gets.
#pragma once

namespace gradus::library {
namespace {

#ifdef __AVX512F__
constexpr int vector_bytes = 64;
#else
constexpr int vector_bytes = 32;
#endif

}  // namespace
}  // namespace gradus::library
