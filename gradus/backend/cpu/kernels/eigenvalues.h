/// Eigenvalues and eigenvectors of symmetric matrices, for kernels.
#pragma once
#include "gradus/backend/cpu/kernels/householder.h"

namespace gradus::library::factors {

/// Rows that rotations are applied to.
template <class T> struct RowsToRotate {
  T* rows;
  std::int64_t pitch, width;
};

/// True if the lower triangle of a: [n, n] is finite.
template <class T> bool are_symmetric_finite(const T* a, std::int64_t n) {
  bool all = true;
  for (std::int64_t i = 0; i < n; ++i) all &= are_finite(a + i * n, i + 1);
  return all;
}

template <class T> class SymmetricEigenvalues {
 public:
  SymmetricEigenvalues(Room& own, std::int64_t n, bool vectors);
  /// Reads the lower triangle of a: [n, n], which is finite. False if the iteration does not converge.
  bool run(const T* a);
  /// The ith eigenvalue in ascending order.
  T value(std::int64_t i) const { return static_cast<T>(d_[order_[i]] / static_cast<double>(power_)); }
  /// Eigenvectors as rows, in the order of their values.
  T* sorted_vectors() {
    for (std::int64_t i = 0; i < n_; ++i) std::copy_n(z_ + order_[i] * pitch_, width_, row(i));
    return a_;
  }
  std::int64_t pitch() const { return pitch_; }

 private:
  T* row(std::int64_t i) const { return a_ + i * pitch_; }
  void set(const T* a);
  void reduce_row(std::int64_t i, std::int64_t first, std::int64_t end);
  void reduce();
  void form_vectors();

  std::int64_t n_, width_, pitch_;
  bool wants_vectors_;
  T power_ = 1;
  T *a_, *w_, *taus_, *coefficients_;
  double *d_, *e_;
  std::int64_t* order_;
  T* z_;
  ReflectionBlock<T> block_;
  WaitingRotations<T> rotations_;
  Multiplier<T> multiply_;
};
extern template class SymmetricEigenvalues<float>;
extern template class SymmetricEigenvalues<double>;

}  // namespace gradus::library::factors
