/// Singular values of bidiagonal matrices by rotations.
#pragma once
#include <algorithm>
#include "gradus/backend/cpu/kernels/householder.h"

namespace gradus::library::factors {

/// The lesser singular value of (f g; 0 h) (dlas2 of LAPACK).
inline double lesser_singular_value(double f, double g, double h) {
  const double fa = std::abs(f), ga = std::abs(g), ha = std::abs(h), least = std::min(fa, ha), most = std::max(fa, ha);
  if (least == 0) return 0;
  const double sum = 1 + least / most, difference = (most - least) / most;
  if (ga < most) {
    const double ratio = ga / most * (ga / most);
    return least * (2 / (std::sqrt(sum * sum + ratio) + std::sqrt(difference * difference + ratio)));
  }
  const double ratio = most / ga;
  if (ratio == 0) return least * most / ga;
  const double c = 1 / (hypotenuse(1, sum * ratio) + hypotenuse(1, difference * ratio));
  return 2 * (least * c) * ratio;
}

/// Implicit QR on an upper bidiagonal matrix with diagonal d and e above it (Demmel and Kahan 1990; dbdsqr of LAPACK):
/// with a shift of 0 where small values ask for it, and away from the end whose element is larger. Rotations of the
/// rows of U' and V' are handed out as sweeps, which `flush` applies to both.
template <class T, class Flush> class BidiagonalQr {
 public:
  BidiagonalQr(double* d, double* e, std::int64_t n, WaitingRotations<T>* left, WaitingRotations<T>* right, Flush flush)
      : d_(d), e_(e), n_(n), left_(left), right_(right), flush_(flush), sweeps_left_(most_sweeps_a_value * n) {}

  /// Makes singular values of d, up to their signs. False if it does not converge.
  bool run() {
    find_threshold();
    for (std::int64_t end = n_ - 1; end > 0;) {
      const std::int64_t begin = begin_of_block(end);
      if (begin == end) {
        --end;
        continue;
      }
      choose_direction(begin, end);
      if (has_converged(begin, end)) continue;
      if (sweeps_left_-- == 0) return false;
      const double shift = shift_of(begin, end);
      start_sweep(begin, end);
      if (shift == 0) down_ ? sweep_down(begin, end) : sweep_up(begin, end);
      else down_ ? sweep_down(begin, end, shift) : sweep_up(begin, end, shift);
    }
    if (left_) flush_();
    return true;
  }

 private:
  static constexpr std::int64_t most_sweeps_a_value = 60;
  static constexpr double epsilon = std::numeric_limits<T>::epsilon() / 2;
  static constexpr double tolerance = sizeof(T) == 8 ? 10 * epsilon : epsilon;

  struct Rotation {
    double c, s, r;
  };
  /// (c s; -s c) (f, g) = (r, 0).
  static Rotation rotation(double f, double g) {
    if (g == 0) return {1, 0, f};
    if (f == 0) return {0, 1, g};
    const double r = hypotenuse(f, g);
    return {f / r, g / r, r};
  }

  void find_threshold() {
    double least = std::abs(d_[0]), mu = least;
    for (std::int64_t i = 1; i < n_ && least != 0; ++i) {
      mu = std::abs(d_[i]) * (mu / (mu + std::abs(e_[i - 1])));
      least = std::min(least, mu);
    }
    threshold_ = std::max(tolerance * least / std::sqrt(static_cast<double>(n_)), 1e-290);
  }
  /// The first element of the block that ends with `end`, before which e is 0.
  std::int64_t begin_of_block(std::int64_t end) {
    largest_ = std::abs(d_[end]);
    for (std::int64_t i = end; i-- > 0;) {
      if (std::abs(e_[i]) <= threshold_) {
        e_[i] = 0;
        return i + 1;
      }
      largest_ = std::max({largest_, std::abs(d_[i]), std::abs(e_[i])});
    }
    return 0;
  }
  void choose_direction(std::int64_t begin, std::int64_t end) {
    if (begin > old_end_ || end < old_begin_) down_ = std::abs(d_[begin]) >= std::abs(d_[end]);
    old_begin_ = begin, old_end_ = end;
  }
  /// True if an element of e has become 0; else least_ is a bound below the singular values.
  bool has_converged(std::int64_t begin, std::int64_t end) {
    const std::int64_t last = down_ ? end - 1 : begin;
    if (std::abs(e_[last]) <= tolerance * std::abs(d_[down_ ? end : begin])) return e_[last] = 0, true;
    double mu = std::abs(d_[down_ ? begin : end]);
    least_ = mu;
    for (std::int64_t k = 0; k < end - begin; ++k) {
      const std::int64_t i = down_ ? begin + k : end - 1 - k;
      if (std::abs(e_[i]) <= tolerance * mu) return e_[i] = 0, true;
      mu = std::abs(d_[down_ ? i + 1 : i]) * (mu / (mu + std::abs(e_[i])));
      least_ = std::min(least_, mu);
    }
    return false;
  }
  double shift_of(std::int64_t begin, std::int64_t end) const {
    if (static_cast<double>(n_) * tolerance * (least_ / largest_) <= std::max(epsilon, 0.01 * tolerance)) return 0;
    const double start = std::abs(d_[down_ ? begin : end]);
    const double shift = down_ ? lesser_singular_value(d_[end - 1], e_[end - 1], d_[end])
                               : lesser_singular_value(d_[begin], e_[begin], d_[begin + 1]);
    return start > 0 && shift / start * (shift / start) < epsilon ? 0 : shift;
  }

  void start_sweep(std::int64_t begin, std::int64_t end) {
    if (!left_) return;
    if (left_->is_full()) flush_();
    left_->begin(begin, end - begin, down_);
    right_->begin(begin, end - begin, down_);
  }
  /// Rotations of rows i and i + 1.
  void keep(std::int64_t i, double left_c, double left_s, double right_c, double right_s) {
    if (!left_) return;
    left_->set(i, left_c, left_s);
    right_->set(i, right_c, right_s);
  }

  void sweep_down(std::int64_t begin, std::int64_t end) {
    double c = 1, old_c = 1, old_s = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const Rotation right = rotation(d_[i] * c, e_[i]);
      c = right.c;
      if (i > begin) e_[i - 1] = old_s * right.r;
      const Rotation left = rotation(old_c * right.r, d_[i + 1] * right.s);
      old_c = left.c, old_s = left.s, d_[i] = left.r;
      keep(i, left.c, left.s, right.c, right.s);
    }
    const double h = d_[end] * c;
    d_[end] = h * old_c, e_[end - 1] = h * old_s;
  }
  void sweep_up(std::int64_t begin, std::int64_t end) {
    double c = 1, old_c = 1, old_s = 0;
    for (std::int64_t i = end; i > begin; --i) {
      const Rotation left = rotation(d_[i] * c, e_[i - 1]);
      c = left.c;
      if (i < end) e_[i] = old_s * left.r;
      const Rotation right = rotation(old_c * left.r, d_[i - 1] * left.s);
      old_c = right.c, old_s = right.s, d_[i] = right.r;
      keep(i - 1, left.c, -left.s, right.c, -right.s);
    }
    const double h = d_[begin] * c;
    d_[begin] = h * old_c, e_[begin] = h * old_s;
  }
  static double first_of(double d, double shift) { return (std::abs(d) - shift) * (std::copysign(1.0, d) + shift / d); }
  void sweep_down(std::int64_t begin, std::int64_t end, double shift) {
    double f = first_of(d_[begin], shift), g = e_[begin];
    for (std::int64_t i = begin; i < end; ++i) {
      const Rotation right = rotation(f, g);
      if (i > begin) e_[i - 1] = right.r;
      f = right.c * d_[i] + right.s * e_[i];
      e_[i] = right.c * e_[i] - right.s * d_[i];
      g = right.s * d_[i + 1];
      d_[i + 1] = right.c * d_[i + 1];
      const Rotation left = rotation(f, g);
      d_[i] = left.r;
      f = left.c * e_[i] + left.s * d_[i + 1];
      d_[i + 1] = left.c * d_[i + 1] - left.s * e_[i];
      if (i + 1 < end) g = left.s * e_[i + 1], e_[i + 1] = left.c * e_[i + 1];
      keep(i, left.c, left.s, right.c, right.s);
    }
    e_[end - 1] = f;
  }
  void sweep_up(std::int64_t begin, std::int64_t end, double shift) {
    double f = first_of(d_[end], shift), g = e_[end - 1];
    for (std::int64_t i = end; i > begin; --i) {
      const Rotation left = rotation(f, g);
      if (i < end) e_[i] = left.r;
      f = left.c * d_[i] + left.s * e_[i - 1];
      e_[i - 1] = left.c * e_[i - 1] - left.s * d_[i];
      g = left.s * d_[i - 1];
      d_[i - 1] = left.c * d_[i - 1];
      const Rotation right = rotation(f, g);
      d_[i] = right.r;
      f = right.c * e_[i - 1] + right.s * d_[i - 1];
      d_[i - 1] = right.c * d_[i - 1] - right.s * e_[i - 1];
      if (i > begin + 1) g = right.s * e_[i - 2], e_[i - 2] = right.c * e_[i - 2];
      keep(i - 1, left.c, -left.s, right.c, -right.s);
    }
    e_[begin] = f;
  }

  double *d_, *e_;
  std::int64_t n_;
  WaitingRotations<T>*left_, *right_;
  Flush flush_;
  std::int64_t sweeps_left_, old_begin_ = -1, old_end_ = -1;
  bool down_ = true;
  double threshold_ = 0, largest_ = 0, least_ = 0;
};

}  // namespace gradus::library::factors
