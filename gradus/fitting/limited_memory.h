/// The memory of L-BFGS-B: the last changes s of the parameters and y of the gradient, and the products with the
/// matrix B = theta I - W M W' that they stand for, W = [Y, theta S] (Byrd, Lu, Nocedal, Zhu 1995, section 3).
#pragma once
#include <deque>
#include "gradus/fitting/dense.h"

namespace gradus::detail::fitting {

class LimitedMemory {
 public:
  explicit LimitedMemory(std::size_t pairs) : most_(pairs) {}
  bool empty() const { return s_.empty(); }
  std::size_t pairs() const { return s_.size(); }
  double theta() const { return theta_; }
  void clear();
  /// Keeps a pair with s'y = `product` > 0; the oldest leaves if there are too many. `compact`: costs 2 n sums for each
  /// pair, and no pair is kept if M^-1 is singular.
  void add_pair(Vector s, Vector y, double product, bool compact);
  /// -B^-1 g, by two loops over the pairs.
  Vector newton_direction(const Vector& gradient) const;

  // The compact form, if add_pair was asked for it.
  /// Row i of W: 2 pairs() numbers.
  Vector row(std::size_t i) const;
  /// W' v.
  Vector project(const Vector& v) const;
  /// M v.
  Vector middle(const Vector& v) const;
  /// M^-1, of 2 pairs() rows.
  const Matrix& inverse_middle() const { return inverse_middle_; }

 private:
  void make_compact();

  std::size_t most_;
  double theta_ = 1;
  std::deque<Vector> s_, y_;
  std::deque<double> rho_;                  // 1 / s_i' y_i
  std::deque<std::deque<double>> sy_, ss_;  // s_i' y_j, s_i' s_j
  Matrix inverse_middle_;
  Factors middle_factors_;
};

}  // namespace gradus::detail::fitting
