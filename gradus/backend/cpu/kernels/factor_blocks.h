/// The arithmetic of factorizations on blocks of a matrix that stay near. Every element is one chain of fused steps in
/// the order of k, then at most one division or root, so that neither the vectors' length nor the way in which a matrix
/// is cut into blocks changes a bit.
#pragma once
#include <cstdint>
#include "gradus/backend/cpu/isa.h"

namespace gradus::library::factors {

/// Rows of a block; systems with an upper triangle are solved by such blocks from the last one on.
constexpr std::int64_t block_rows = 64;
/// Columns of a panel that are factored at a time.
constexpr std::int64_t narrow_columns = 16;

/// A triangular matrix, whose other triangle is not read: element (i, j) is a[i * row + j * column].
template <class T> struct Triangle {
  const T* a;
  std::int64_t n, row, column;
  bool lower = true;
  bool unit = false;  // the diagonal counts as 1
};

/// Matrices are row by row, rows `pitch` elements apart.
template <class T> struct BlockFunctions {
  /// y: [n, columns] becomes triangle^-1 y. Element i takes k in ascending order from a lower triangle, in descending
  /// order from an upper one. If set, `negated` becomes -y.
  void (*solve)(const Triangle<T>& triangle, T* y, std::int64_t columns, std::int64_t pitch, T* negated,
                std::int64_t negated_pitch);
  /// t: [all, m], the transpose of a panel: factors its columns [first, first + count), at most narrow_columns, to
  /// which the columns before them have been applied, and exchanges rows of the whole panel. Row j was exchanged with
  /// row pivots[j]. Up to a vector behind m is overwritten.
  void (*factor_columns)(T* t, std::int64_t m, std::int64_t all, std::int64_t pitch, std::int64_t first,
                         std::int64_t count, std::int64_t* pivots);
  /// a: [n, width], n at most block_rows, width a multiple of vector_elements: eliminates below the diagonal, with
  /// exchanges of rows. Elements below the diagonal are unspecified afterwards; the factors go to `lower` if it is set:
  /// (i, k) to lower[k * n + i].
  void (*eliminate)(T* a, std::int64_t n, std::int64_t width, std::int64_t pitch, T* lower, std::int64_t* pivots);
  /// u: [n, n], n at most block_rows, rows filled up to a multiple of vector_elements: the upper triangle of a
  /// symmetric matrix becomes U with U' U = u. Elements below the diagonal are unspecified afterwards.
  void (*factor_symmetric)(T* u, std::int64_t n, std::int64_t pitch);
  /// Few rows: a: [n, width] becomes L and U, and L^-1 of the columns beside the matrix.
  void (*eliminate_few)(T* a, std::int64_t n, std::int64_t width, std::int64_t* pivots);
  /// Few rows: x: [n, n] becomes U^-1 L^-1, of L and U in a.
  void (*invert_few)(const T* a, std::int64_t n, T* x);
  /// Few rows: Cholesky's factor: y: [n, n] becomes L with L L' = a, zeros above the diagonal.
  void (*factor_few)(const T* a, T* y, std::int64_t n);
};
constexpr std::int64_t few_rows = 8;          // which vectors do not make faster
constexpr std::int64_t vector_elements = 16;  // of the longest vectors, in f32

template <class T> const BlockFunctions<T>& blocks_by_avx2();
template <class T> const BlockFunctions<T>& blocks_by_avx512();
template <class T> const BlockFunctions<T>& blocks_by_neon();

template <class T> const BlockFunctions<T>& block_functions() {
#if defined(__x86_64__)
  return cpu_backend::processor().kernel_vector_bytes == 64 ? blocks_by_avx512<T>() : blocks_by_avx2<T>();
#else
  return blocks_by_neon<T>();
#endif
}

}  // namespace gradus::library::factors
