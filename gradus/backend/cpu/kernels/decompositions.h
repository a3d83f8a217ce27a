/// Decompositions of dense matrices into orthogonal and other factors: QR, eigenvalues, singular values, and functions
/// that follow from them. A matrix is one thread's or a team's. Everything but panels and tridiagonal or bidiagonal
/// matrices is done by the tiles of matrix products; sums in panels have the lanes of row_functions.h. So neither
/// threads nor the instruction set change a bit. A matrix with an element that is not finite gives NaN.
#pragma once
#include "gradus/backend/cpu/kernels/factorization.h"

namespace gradus::library::factors {

/// A matrix of m rows and n columns.
struct MatrixSize {
  std::int64_t m = 0, n = 0;
  std::int64_t least() const { return m < n ? m : n; }
};

/// The parts that are wanted of a decomposition.
struct Wanted {
  bool vectors = true;     // beside the values
  bool full = false;       // all columns of Q
  bool symmetric = false;  // of a pseudoinverse: by eigenvectors of the lower triangle
  double threshold = 0;    // of a pseudoinverse: singular values up to so much of the largest one count as 0
};

/// Ways of one type, each for one matrix a, row by row. The rooms have the bytes that the function of the same name
/// gives.
template <class T> struct Decompositions {
  /// y: Q: [m, k], then R: [k, n], with k the lesser of m and n, or m if full.
  static RoomBytes room_for_qr(const MatrixSize&, const Wanted&);
  static void qr(const MatrixSize&, const Wanted&, const T* a, T* y, Room shared, Room own, const Team&);
  /// y: the eigenvalues w: [n] in ascending order; with vectors V: [n, n] before them. Reads the lower triangle.
  static RoomBytes room_for_eigh(const MatrixSize&, const Wanted&);
  static void eigh(const MatrixSize&, const Wanted&, const T* a, T* y, Room shared, Room own, const Team&);
  /// y: the singular values s: [k] in descending order; with vectors U: [m, k] and V: [n, k] before them.
  static RoomBytes room_for_svd(const MatrixSize&, const Wanted&);
  static void svd(const MatrixSize&, const Wanted&, const T* a, T* y, Room shared, Room own, const Team&);
  /// y: [n, m].
  static RoomBytes room_for_pinv(const MatrixSize&, const Wanted&);
  static void pinv(const MatrixSize&, const Wanted&, const T* a, T* y, Room shared, Room own, const Team&);
  /// y: L below the diagonal, of which the diagonal is 1, and U: [n, n], then the row of a that is row i of P a: [n].
  static RoomBytes room_for_lu(const MatrixSize&, const Wanted&);
  static void lu(const MatrixSize&, const Wanted&, const T* a, T* y, Room shared, Room own, const Team&);
  /// y: [n, n].
  static RoomBytes room_for_matrix_exp(const MatrixSize&, const Wanted&);
  static void matrix_exp(const MatrixSize&, const Wanted&, const T* a, T* y, Room shared, Room own, const Team&);
};

}  // namespace gradus::library::factors
