/// Eigenvalues and eigenvectors of symmetric matrices, for kernels.
#pragma once
#include "gradus/backend/cpu/kernels/householder.h"

namespace gradus::library::factors {

/// True if the lower triangle of a: [n, n] is finite.
template <class T> bool are_symmetric_finite(const T* a, std::int64_t n) {
  bool all = true;
  for (std::int64_t i = 0; i < n; ++i) all &= are_finite(a + i * n, i + 1);
  return all;
}

template <class T> class SymmetricEigenvalues {
 public:
  SymmetricEigenvalues(Room& shared, Room& own, std::int64_t n, bool vectors);
  /// Reads the lower triangle of a: [n, n], which is finite. False if the iteration does not converge.
  bool run(const T* a, const Team& team);
  /// The ith eigenvalue in ascending order; for worker 0.
  T value(std::int64_t i) const { return static_cast<T>(d_[order_[i]] / static_cast<double>(power_)); }
  /// Eigenvectors [begin, end) as rows, in the order of their values.
  T* sorted_vectors(std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) std::copy_n(z_ + order_[i] * pitch_, width_, row(i));
    return row(begin);
  }
  std::int64_t pitch() const { return pitch_; }

 private:
  T* row(std::int64_t i) const { return a_ + i * pitch_; }
  void set(const T* a);
  void reduce_row(std::int64_t i, std::int64_t first, std::int64_t end);
  void reduce_panel(std::int64_t first, std::int64_t end);
  void reduce(const Team& team);
  void form_vectors(Columns own);
  Columns own_rows_to_form(const Team& team) const;

  std::int64_t n_, width_, pitch_;
  bool wants_vectors_;
  T power_ = 1;
  T *a_, *w_, *taus_, *coefficients_;
  double *d_, *e_;
  std::int64_t *order_, *ended_, *converged_;
  T* z_;
  ReflectionBlock<T> block_;
  WaitingRotations<T> rotations_;
  Multiplier<T> multiply_;
};
extern template class SymmetricEigenvalues<float>;
extern template class SymmetricEigenvalues<double>;

}  // namespace gradus::library::factors
