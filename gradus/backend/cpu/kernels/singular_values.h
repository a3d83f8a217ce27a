/// Singular values and vectors, for kernels.
#pragma once
#include "gradus/backend/cpu/kernels/decompositions.h"
#include "gradus/backend/cpu/kernels/householder.h"

namespace gradus::library::factors {

/// Singular values of square matrices, by reflections from both sides, half of them by products in blocks (dgebrd of
/// LAPACK), and rotations.
template <class T> class SquareSingularValues {
 public:
  SquareSingularValues(Room& shared, Room& own, std::int64_t n, bool vectors);
  /// Where the matrix belongs: n rows, filled up with zeros.
  T* row(std::int64_t i) const { return a_ + i * pitch_; }
  std::int64_t pitch() const { return pitch_; }
  std::int64_t width() const { return width_; }
  /// False if the iteration does not converge.
  bool run(const Team& team);
  /// The ith singular value in descending order, and its vectors: of the rows of U' and V'.
  double value(std::int64_t i) const { return d_[order_[i]]; }
  const T* left(std::int64_t i) const { return u_ + order_[i] * pitch_; }
  const T* right(std::int64_t i) const { return v_ + order_[i] * pitch_; }

 private:
  void reduce(const Team& team);
  void reduce_panel(std::int64_t first, std::int64_t count);
  void make_positive();
  void reduce_column(std::int64_t i, std::int64_t first);
  void reduce_row(std::int64_t i, std::int64_t first);
  void subtract(T* from, std::int64_t start, const T* first_rows, const T* second_rows, std::int64_t first_count,
                std::int64_t second_count);
  void find_products(const T* with, std::int64_t start, const T* first_rows, const T* second_rows,
                     std::int64_t first_count, std::int64_t second_count);
  T* at(T* rows, std::int64_t i, std::int64_t column = 0) const { return rows + i * pitch_ + column; }

  std::int64_t n_, width_, pitch_;
  bool wants_vectors_;
  T *a_, *left_v_, *right_v_, *x_, *y_;  // reflections row by row; x and y of a panel
  T *left_taus_, *right_taus_;
  T *of_first_, *of_second_;  // factors of rows of the panel
  double *d_, *e_;
  std::int64_t *order_, *ended_, *converged_;
  T *u_, *v_;
  ReflectionBlock<T> block_;
  WaitingRotations<T> left_rotations_, right_rotations_;
  Multiplier<T> multiply_;
};
extern template class SquareSingularValues<float>;
extern template class SquareSingularValues<double>;

}  // namespace gradus::library::factors
