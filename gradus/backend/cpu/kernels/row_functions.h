/// The arithmetic of orthogonal factorizations on rows of a matrix: sums of products, rows added to rows, rotations of
/// neighbouring rows. A sum has 64 bytes of lanes whatever the vectors' length, of which every one is a chain of fused
/// steps, and their halves are added until one is left; so every instruction set gives the same bits.
#pragma once
#include <cstdint>
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/kernels/factor_blocks.h"

namespace gradus::library::factors {

/// Rotations of neighbouring rows, one after the other: rotation i, from `first` on, makes of rows i and i + 1
/// c x + s y and c y - s x; c and s stand at begin + i - first.
struct Sweep {
  std::int64_t first, count, begin;
  bool ascending;
};

/// n is a multiple of vector_elements in all of them; what rows have behind their end is 0.
template <class T> struct RowFunctions {
  /// The sum of x[i] y[i].
  T (*dot)(const T* x, const T* y, std::int64_t n);
  /// y += a x.
  void (*add)(T a, const T* x, T* y, std::int64_t n);
  /// y[r] = (row r of a) x, for `rows` rows.
  void (*dots)(const T* a, std::int64_t pitch, std::int64_t rows, const T* x, std::int64_t n, T* y);
  /// y += the sum of c[r] (row r of a), in the order of r.
  void (*add_rows)(const T* a, std::int64_t pitch, std::int64_t rows, const T* c, std::int64_t n, T* y);
  /// y = a x of a symmetric matrix of n rows, of which the blocks of vector_elements rows on the diagonal are whole and
  /// what is above them is not read.
  void (*multiply_symmetric)(const T* a, std::int64_t pitch, std::int64_t n, const T* x, T* y);
  /// Applies sweeps to rows of n elements.
  void (*rotate)(T* rows, std::int64_t pitch, std::int64_t n, const Sweep* sweeps, std::int64_t count, const T* c,
                 const T* s);
};

template <class T> const RowFunctions<T>& rows_by_avx2();
template <class T> const RowFunctions<T>& rows_by_avx512();
template <class T> const RowFunctions<T>& rows_by_neon();

template <class T> const RowFunctions<T>& row_functions() {
#if defined(__x86_64__)
  return cpu_backend::processor().kernel_vector_bytes == 64 ? rows_by_avx512<T>() : rows_by_avx2<T>();
#else
  return rows_by_neon<T>();
#endif
}

}  // namespace gradus::library::factors
