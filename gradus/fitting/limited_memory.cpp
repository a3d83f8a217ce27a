/// Two loops (Nocedal and Wright, algorithm 7.4), and the compact form.
#include "gradus/fitting/limited_memory.h"

namespace gradus::detail::fitting {

void LimitedMemory::clear() {
  theta_ = 1;
  s_.clear();
  y_.clear();
  rho_.clear();
  sy_.clear();
  ss_.clear();
  inverse_middle_ = {};
  middle_factors_ = {};
}

void LimitedMemory::add_pair(Vector s, Vector y, double product, bool compact) {
  theta_ = dot(y, y) / product;
  rho_.push_back(1 / product);
  s_.push_back(std::move(s));
  y_.push_back(std::move(y));
  if (s_.size() > most_) {
    s_.pop_front();
    y_.pop_front();
    rho_.pop_front();
    if (compact)
      for (auto* products : {&sy_, &ss_}) {
        products->pop_front();
        for (auto& row : *products) row.pop_front();
      }
  }
  if (compact) make_compact();
  if (compact && middle_factors_.is_singular) clear();
}

void LimitedMemory::make_compact() {
  const std::size_t k = s_.size(), last = k - 1;
  sy_.emplace_back();
  ss_.emplace_back();
  for (std::size_t j = 0; j < last; ++j) {
    sy_[j].push_back(dot(s_[j], y_[last]));
    ss_[j].push_back(dot(s_[j], s_[last]));
  }
  for (std::size_t j = 0; j < k; ++j) {
    sy_[last].push_back(dot(s_[last], y_[j]));
    ss_[last].push_back(dot(s_[last], s_[j]));
  }
  inverse_middle_ = Matrix(2 * k, 2 * k);
  for (std::size_t i = 0; i < k; ++i) {
    inverse_middle_(i, i) = -sy_[i][i];
    for (std::size_t j = 0; j < k; ++j) inverse_middle_(k + i, k + j) = theta_ * ss_[i][j];
    for (std::size_t j = 0; j < i; ++j) inverse_middle_(k + i, j) = inverse_middle_(j, k + i) = sy_[i][j];
  }
  middle_factors_ = factored(inverse_middle_);
}

/// Each pass over q changes it and finds the next product.
Vector LimitedMemory::newton_direction(const Vector& gradient) const {
  Vector q = scaled(gradient, -1);
  const std::size_t k = s_.size();
  if (k == 0) return q;
  Vector alpha(k);
  double product = dot(s_[k - 1], q);
  for (std::size_t i = k; i-- > 0;) {
    alpha[i] = rho_[i] * product;
    if (i > 0) product = add_and_dot(q, -alpha[i], y_[i], s_[i - 1]);
    else add(q, -alpha[i], y_[i]);
  }
  q = scaled(std::move(q), 1 / theta_);
  product = dot(y_[0], q);
  for (std::size_t i = 0; i < k; ++i) {
    const double step = alpha[i] - rho_[i] * product;
    if (i + 1 < k) product = add_and_dot(q, step, s_[i], y_[i + 1]);
    else add(q, step, s_[i]);
  }
  return q;
}

Vector LimitedMemory::row(std::size_t i) const {
  const std::size_t k = s_.size();
  Vector w(2 * k);
  for (std::size_t j = 0; j < k; ++j) {
    w[j] = y_[j][i];
    w[k + j] = theta_ * s_[j][i];
  }
  return w;
}

Vector LimitedMemory::project(const Vector& v) const {
  const std::size_t k = s_.size();
  Vector p(2 * k);
  for (std::size_t j = 0; j < k; ++j) {
    p[j] = dot(y_[j], v);
    p[k + j] = theta_ * dot(s_[j], v);
  }
  return p;
}

Vector LimitedMemory::middle(const Vector& v) const { return v.empty() ? v : solved(middle_factors_, v); }

}  // namespace gradus::detail::fitting
