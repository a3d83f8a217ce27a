/// Eigenvalues of symmetric matrices: reflections make a tridiagonal matrix, half of them by products in blocks (dsytrd
/// of LAPACK), and rotations of implicit QL its eigenvalues (dsteqr), applied to the vectors in strips that stay near.
/// Decisions 414 and 415 have the reasons.
#include <algorithm>
#include <numeric>
#include "gradus/backend/cpu/kernels/decompositions.h"
#include "gradus/backend/cpu/kernels/eigenvalues.h"
#include "gradus/backend/cpu/kernels/householder.h"

namespace gradus::library::factors {

/// Implicit QL on a tridiagonal matrix, block by block: from the end whose element is smaller, as is right for graded
/// ones. Rotations of the vectors go to `rotations`, if there are any, which `flush` applies.
template <class T, class Flush> class TridiagonalQl {
 public:
  TridiagonalQl(double* d, double* e, std::int64_t n, WaitingRotations<T>* rotations, Flush flush)
      : d_(d), e_(e), n_(n), sweeps_left_(most_sweeps_a_value * n), rotations_(rotations), flush_(flush) {}

  /// Makes eigenvalues of d. False if it does not converge.
  bool run() {
    for (std::int64_t first = 0, last = 0; first < n_; first = last + 1) {
      last = first;
      while (last + 1 < n_ && !is_negligible(last)) ++last;
      if (last + 1 < n_) e_[last] = 0;
      first_ = first, last_ = last;
      mirrored_ = std::abs(d_[last]) < std::abs(d_[first]);
      if (!solve_block()) return false;
    }
    if (rotations_) flush_();
    return true;
  }

 private:
  static constexpr std::int64_t most_sweeps_a_value = 60;
  static constexpr double epsilon = std::numeric_limits<T>::epsilon() / 2;

  /// True if e[i], between d[i] and d[i + 1], is as good as 0.
  bool is_negligible(std::int64_t i) const {
    const double size = std::abs(e_[i]);
    return size <= epsilon * std::sqrt(std::abs(d_[i])) * std::sqrt(std::abs(d_[i + 1])) || size < 1e-290;
  }

  // The block as seen from the end at which eigenvalues appear.
  std::int64_t place(std::int64_t k) const { return mirrored_ ? first_ + last_ - k : k; }
  std::int64_t between(std::int64_t k) const { return mirrored_ ? first_ + last_ - k - 1 : k; }
  double& d(std::int64_t k) { return d_[place(k)]; }
  double& e(std::int64_t k) { return e_[between(k)]; }

  bool solve_block() {
    for (std::int64_t k = first_; k <= last_;) {
      std::int64_t end = k;
      while (end < last_ && !is_negligible(between(end))) ++end;
      if (end < last_) e(end) = 0;
      if (end == k) {
        ++k;
        continue;
      }
      if (sweeps_left_-- == 0) return false;
      sweep(k, end);
    }
    return true;
  }

  /// One sweep over elements from `end` to `begin`, with Wilkinson's shift.
  void sweep(std::int64_t begin, std::int64_t end) {
    if (rotations_) {
      if (rotations_->is_full()) flush_();
      rotations_->begin(std::min(between(begin), between(end - 1)), end - begin, mirrored_);
    }
    double p = d(begin), g = (d(begin + 1) - p) / (2 * e(begin));
    g = d(end) - p + e(begin) / (g + std::copysign(hypotenuse(g, 1), g));
    double s = 1, c = 1;
    p = 0;
    for (std::int64_t k = end - 1; k >= begin; --k) {
      const double f = s * e(k), b = c * e(k), r = hypotenuse(f, g);
      c = r == 0 ? 1 : g / r, s = r == 0 ? 0 : f / r;
      if (k + 1 != end) e(k + 1) = r;
      g = d(k + 1) - p;
      const double step = (d(k) - g) * s + 2 * c * b;
      p = s * step;
      d(k + 1) = g + p;
      g = c * step - b;
      if (rotations_) rotations_->set(between(k), c, mirrored_ ? s : -s);
    }
    d(begin) -= p;
    e(begin) = g;
  }

  double *d_, *e_;
  std::int64_t n_, sweeps_left_, first_ = 0, last_ = 0;
  bool mirrored_ = false;
  WaitingRotations<T>* rotations_;
  Flush flush_;
};

template <class T>
SymmetricEigenvalues<T>::SymmetricEigenvalues(Room& shared, Room& own, std::int64_t n, bool vectors)
    : n_(n),
      width_(padded(n)),
      pitch_(pitch_for<T>(width_)),
      wants_vectors_(vectors),
      a_(shared.take<T>(width_ * pitch_)),
      w_(shared.take<T>(block_reflections * pitch_)),
      taus_(shared.take<T>(n)),
      coefficients_(own.take<T>(2 * block_reflections)),
      d_(shared.take<double>(n)),
      e_(shared.take<double>(n)),
      order_(shared.take<std::int64_t>(n)),
      ended_(shared.take<std::int64_t>(1)),
      converged_(shared.take<std::int64_t>(1)),
      z_(vectors ? shared.take<T>(n * pitch_) : nullptr),
      block_(own, n),
      rotations_(shared, vectors ? n : 0),
      multiply_(own, n) {}

/// The lower triangle, of which the blocks on the diagonal are made whole.
template <class T> void SymmetricEigenvalues<T>::set(const T* a) {
  T largest = 0;
  for (std::int64_t i = 0; i < n_; ++i) largest = std::max(largest, largest_size(a + i * n_, i + 1));
  power_ = power_into_range(largest);
  for (std::int64_t i = 0; i < width_; ++i) {
    T* const row = a_ + i * pitch_;
    std::fill_n(row, width_, T(0));
    for (std::int64_t j = 0; i < n_ && j <= i; ++j) row[j] = a[i * n_ + j] * power_;
    for (std::int64_t j = start_before(i); i < n_ && j < i; ++j) a_[j * pitch_ + i] = row[j];
  }
}

/// Row i of the block that begins with row `first`, of which rows behind i are done: v_i, d, e and w_i.
template <class T> void SymmetricEigenvalues<T>::reduce_row(std::int64_t i, std::int64_t first, std::int64_t end) {
  const auto& rows = row_functions<T>();
  T *const v = row(i), *const w = w_ + (i - first) * pitch_;
  const std::int64_t done = end - i - 1, width = padded(i + 1);
  const T *const later_v = row(i + 1), *const later_w = w + pitch_;
  T *const of_v = coefficients_, *const of_w = coefficients_ + block_reflections;
  for (std::int64_t p = 0; p < done; ++p) of_v[p] = -later_w[p * pitch_ + i], of_w[p] = -later_v[p * pitch_ + i];
  rows.add_rows(later_v, pitch_, done, of_v, width, v);
  rows.add_rows(later_w, pitch_, done, of_w, width, v);
  d_[i] = static_cast<double>(v[i]);
  taus_[i] = reflect(v[i - 1], v, i - 1);
  e_[i - 1] = static_cast<double>(v[i - 1]);
  v[i - 1] = 1;
  std::fill(v + i, v + width_, T(0));
  std::fill_n(w, width_, T(0));
  if (taus_[i] == 0) return;
  const std::int64_t inner = padded(i);
  rows.multiply_symmetric(a_, pitch_, inner, v, w);
  rows.dots(later_w, pitch_, done, v, inner, of_v);
  rows.dots(later_v, pitch_, done, v, inner, of_w);
  for (std::int64_t p = 0; p < done; ++p) of_v[p] = -of_v[p], of_w[p] = -of_w[p];
  rows.add_rows(later_v, pitch_, done, of_v, inner, w);
  rows.add_rows(later_w, pitch_, done, of_w, inner, w);
  std::fill(w + i, w + width_, T(0));
  for (std::int64_t j = 0; j < i; ++j) w[j] *= taus_[i];
  rows.add(taus_[i] * T(-0.5) * rows.dot(w, v, inner), v, w, inner);
}

/// From the last row on; row i becomes v_i, with 1 at i - 1. Worker 0 does the rows of a panel, all of them the blocks
/// of rows before it.
template <class T> void SymmetricEigenvalues<T>::reduce(const Team& team) {
  for (std::int64_t end = n_; end > 1;) {
    const std::int64_t first = std::max<std::int64_t>(1, end - block_reflections), count = end - first;
    if (team.worker() == 0) reduce_panel(first, end);
    team.meet();
    for (std::int64_t begin = team.worker() * block_rows; begin < first; begin += team.size() * block_rows) {
      const std::int64_t behind = std::min(first, begin + block_rows), columns = padded(behind);
      multiply_.add(behind - begin, columns, count, {row(first) + begin, 1, pitch_}, {w_, pitch_, 1}, row(begin),
                    pitch_);
      multiply_.add(behind - begin, columns, count, {w_ + begin, 1, pitch_}, {row(first), pitch_, 1}, row(begin),
                    pitch_);
    }
    team.meet();
    end = first;
  }
  if (team.worker() == 0) d_[0] = static_cast<double>(a_[0]);
}
template <class T> void SymmetricEigenvalues<T>::reduce_panel(std::int64_t first, std::int64_t end) {
  for (std::int64_t i = end - 1; i >= first; --i) reduce_row(i, first, end);
  for (std::int64_t p = 0; p < end - first; ++p)
    for (std::int64_t j = 0; j < width_; ++j) w_[p * pitch_ + j] = -w_[p * pitch_ + j];
}

/// Rows `own` of z become those of (H_(n - 1) ... H_1)', which for the first i reflections differ from unit vectors in
/// the first i rows and columns alone.
template <class T> void SymmetricEigenvalues<T>::form_vectors(Columns own) {
  if (own.count() == 0) return;
  clear(z_ + own.begin * pitch_, own.count(), width_, pitch_);
  for (std::int64_t i = own.begin; i < own.end; ++i) z_[i * pitch_ + i] = 1;
  for (std::int64_t first = 1; first < n_; first += block_reflections) {
    const std::int64_t count = std::min(block_reflections, n_ - first), rows = first + count - 1;
    if (n_ <= block_reflections) {
      for (std::int64_t i = first; i < n_; ++i) apply_reflection(row(i), taus_[i], padded(i), z_, pitch_, i);
      continue;
    }
    if (rows <= own.begin) continue;
    block_.set(row(first), pitch_, count, padded(rows), taus_ + first, multiply_);
    block_.apply(false, z_ + own.begin * pitch_, pitch_, std::min(rows, own.end) - own.begin, multiply_);
  }
}

template <class T> bool SymmetricEigenvalues<T>::run(const T* a, const Team& team) {
  if (team.worker() == 0) set(a);
  reduce(team);
  if (wants_vectors_) form_vectors(own_rows_to_form(team));
  const auto iterate = [&]<class Flush>(Flush flush) {
    *converged_ = TridiagonalQl<T, Flush>(d_, e_, n_, wants_vectors_ ? &rotations_ : nullptr, flush).run();
    if (*converged_ != 0) order_by(d_, n_, true, order_);
  };
  team.meet();
  const Columns own = own_columns(team, width_);
  iterate_together(team, ended_, iterate, [&] { rotations_.close(); }, [&] { rotations_.apply(z_, pitch_, own); });
  return *converged_ != 0;
}

/// Row i is changed by the reflections behind it.
template <class T> Columns SymmetricEigenvalues<T>::own_rows_to_form(const Team& team) const {
  if (n_ <= block_reflections) return team.worker() == 0 ? Columns{0, n_} : Columns{n_, n_};
  return own_rows(team, n_, [this](std::int64_t i) {
    const auto n = static_cast<double>(n_), row = static_cast<double>(i);
    return n * n - row * row + n;
  });
}

template class SymmetricEigenvalues<float>;
template class SymmetricEigenvalues<double>;

template <class T> RoomBytes Decompositions<T>::room_for_eigh(const MatrixSize& size, const Wanted& wanted) {
  return bytes_taken([&](Room& shared, Room& own) { SymmetricEigenvalues<T>(shared, own, size.n, wanted.vectors); });
}

template <class T>
void Decompositions<T>::eigh(const MatrixSize& size, const Wanted& wanted, const T* a, T* y, Room shared, Room own,
                             const Team& team) {
  const std::int64_t n = size.n, of_vectors = wanted.vectors ? n * n : 0;
  SymmetricEigenvalues<T> eigen(shared, own, n, wanted.vectors);
  if (!are_symmetric_finite(a, n) || !eigen.run(a, team)) return fill_with_nan(y, of_vectors + n, team);
  for (std::int64_t i = 0; team.worker() == 0 && i < n; ++i) y[of_vectors + i] = eigen.value(i);
  if (!wanted.vectors) return;
  const std::int64_t begin = n * team.worker() / team.size(), end = n * (team.worker() + 1) / team.size();
  transpose(eigen.sorted_vectors(begin, end), end - begin, n, eigen.pitch(), y + begin, n);
}

template RoomBytes Decompositions<float>::room_for_eigh(const MatrixSize&, const Wanted&);
template RoomBytes Decompositions<double>::room_for_eigh(const MatrixSize&, const Wanted&);
template void Decompositions<float>::eigh(const MatrixSize&, const Wanted&, const float*, float*, Room, Room,
                                          const Team&);
template void Decompositions<double>::eigh(const MatrixSize&, const Wanted&, const double*, double*, Room, Room,
                                           const Team&);

}  // namespace gradus::library::factors
