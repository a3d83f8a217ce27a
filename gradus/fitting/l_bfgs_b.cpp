/// L-BFGS-B. Without bounds the direction is that of L-BFGS. With bounds the first minimum along the projected gradient
/// (the generalized Cauchy point) says which bounds hold, then the other parameters take the step of the model.
/// R. H. Byrd, P. Lu, J. Nocedal, C. Zhu: A limited memory algorithm for bound constrained optimization. SIAM J. Sci.
/// Comput. 16 (1995), 1190-1208. J. L. Morales, J. Nocedal: Remark on algorithm 778. ACM TOMS 38 (2011).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include "gradus/base/rooms.h"
#include "gradus/fitting/descent.h"
#include "gradus/fitting/limited_memory.h"

namespace gradus::detail::fitting {
namespace {

constexpr double epsilon_of_sums = std::numeric_limits<double>::epsilon();
constexpr double no_bound = std::numeric_limits<double>::infinity();

/// The generalized Cauchy point.
struct CauchyPoint {
  Vector x, c;                // the point, and W' (point - x)
  std::vector<bool> is_free;  // of parameters that are at no bound there
};

class ProjectedStep {
 public:
  ProjectedStep(const Descent& descent, const LimitedMemory& memory)
      : descent_(descent), memory_(memory), n_(descent.at.x.size()) {}

  /// The minimum of the model within the bounds.
  Vector target() const {
    CauchyPoint cauchy = cauchy_point();
    const bool any_is_free = std::ranges::count(cauchy.is_free, true) > 0;
    return memory_.empty() || !any_is_free ? std::move(cauchy.x) : subspace_minimum(cauchy);
  }

 private:
  CauchyPoint cauchy_point() const {
    const Vector &x = descent_.at.x, &g = descent_.at.gradient;
    Vector times(n_), d(n_);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < n_; ++i) {
      times[i] = g[i] == 0 ? no_bound : (x[i] - descent_.bound_towards(i, -g[i])) / g[i];
      if (times[i] > 0) d[i] = -g[i];
      if (times[i] > 0 && times[i] < no_bound) order.push_back(i);
    }
    std::ranges::sort(order, {}, [&](std::size_t i) { return times[i]; });

    CauchyPoint at{x, Vector(2 * memory_.pairs()), std::vector<bool>(n_, true)};
    for (std::size_t i = 0; i < n_; ++i) at.is_free[i] = times[i] > 0;
    Vector p = memory_.project(d);
    double slope = -dot(d, d), bend = -memory_.theta() * slope - dot(p, memory_.middle(p));
    const double least_bend = epsilon_of_sums * -memory_.theta() * slope;
    double step = slope == 0 ? 0 : -slope / bend, now = 0;
    for (const std::size_t b : order) {
      const double length = times[b] - now;
      if (step < length) break;
      at.x[b] = descent_.bound_towards(b, d[b]);
      at.is_free[b] = false;
      add(at.c, length, p);
      const double z = at.x[b] - x[b];
      const Vector w = memory_.row(b), mw = memory_.middle(w);
      slope += length * bend + g[b] * g[b] + memory_.theta() * g[b] * z - g[b] * dot(mw, at.c);
      bend += -memory_.theta() * g[b] * g[b] - 2 * g[b] * dot(mw, p) - g[b] * g[b] * dot(mw, w);
      bend = std::max(bend, least_bend);
      add(p, g[b], w);
      d[b] = 0;
      now = times[b];
      step = slope < 0 ? -slope / bend : 0;
    }
    for (std::size_t i = 0; i < n_; ++i)
      if (at.is_free[i]) at.x[i] += (now + step) * d[i];
    add(at.c, step, p);
    return at;
  }

  /// -B^-1 of the reduced gradient, for the free parameters; 0 for others (Byrd et al., section 5.1).
  Vector subspace_step(const CauchyPoint& cauchy) const {
    const double theta = memory_.theta();
    const Vector mc = memory_.middle(cauchy.c);
    const std::size_t k = 2 * memory_.pairs();
    Vector rest(n_), projected(k);
    Matrix inner = memory_.inverse_middle();
    for (std::size_t i = 0; i < n_; ++i) {
      if (!cauchy.is_free[i]) continue;
      const Vector w = memory_.row(i);
      rest[i] = -(descent_.at.gradient[i] + theta * (cauchy.x[i] - descent_.at.x[i]) - dot(w, mc));
      add(projected, rest[i], w);
      for (std::size_t j = 0; j < k; ++j) add(inner.row(j), -w[j] / theta, w.data(), k);
    }
    const Vector v = solved(factored(std::move(inner)), projected);  // (M^-1 - W'W / theta)^-1 W' rest
    Vector step = scaled(rest, 1 / theta);
    if (v.empty()) return step;
    for (std::size_t i = 0; i < n_; ++i)
      if (cauchy.is_free[i]) step[i] += dot(memory_.row(i), v) / (theta * theta);
    return step;
  }

  Vector subspace_minimum(const CauchyPoint& cauchy) const {
    const Vector step = subspace_step(cauchy);
    Vector projected = cauchy.x;
    for (std::size_t i = 0; i < n_; ++i)
      if (cauchy.is_free[i]) projected[i] = std::clamp(cauchy.x[i] + step[i], descent_.lower()[i], descent_.upper()[i]);
    if (dot(difference(projected, descent_.at.x), descent_.at.gradient) <= 0) return projected;
    double share = 1;  // of the step that stays within the bounds
    for (std::size_t i = 0; i < n_; ++i)
      if (step[i] != 0) share = std::min(share, (descent_.bound_towards(i, step[i]) - cauchy.x[i]) / step[i]);
    Vector cut = cauchy.x;
    add(cut, std::max(share, 0.0), step);
    return cut;
  }

  const Descent& descent_;
  const LimitedMemory& memory_;
  const std::size_t n_;
};

class LimitedDescent {
 public:
  explicit LimitedDescent(Descent& descent)
      : descent_(descent),
        settings_(descent.settings()),
        memory_(static_cast<std::size_t>(settings_.maxcor.value_or(10))) {
    is_boxed_ = descent.has_bounds();
    for (std::size_t i = 0; is_boxed_ && i < descent.lower().size(); ++i)
      is_boxed_ = std::isfinite(descent.lower()[i]) && std::isfinite(descent.upper()[i]);
  }

  MinimizeStatus run() {
    const double gtol = settings_.gtol.value_or(settings_.tol.value_or(1e-5));
    const double ftol = settings_.ftol.value_or(settings_.tol.value_or(2.2204460492503131e-09));
    const int maxiter = settings_.maxiter.value_or(15000), maxfun = settings_.maxfun.value_or(15000);
    if (projected_gradient() <= gtol) return MinimizeStatus::small_gradient;
    for (;;) {
      if (!step()) {
        if (memory_.empty()) return MinimizeStatus::precision_loss;
        memory_.clear();
        continue;
      }
      const auto end = descent_.finish_iteration(maxiter);
      if (end == MinimizeStatus::stopped) return *end;
      if (projected_gradient() <= gtol) return MinimizeStatus::small_gradient;
      const double value = descent_.at.value, before = descent_.before.value;
      const double size = std::max({std::abs(before), std::abs(value), 1.0});
      if (before - value <= ftol * size) return MinimizeStatus::small_reduction;
      if (end) return *end;
      if (descent_.objective().evaluations() > maxfun) return MinimizeStatus::max_evaluations;
      remember();
    }
  }

 private:
  /// The largest change that a step of -gradient, cut at the bounds, makes.
  double projected_gradient() const {
    const Vector &x = descent_.at.x, &g = descent_.at.gradient;
    if (!descent_.has_bounds()) return largest(g);
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double cut =
          g[i] < 0 ? std::max(x[i] - descent_.upper()[i], g[i]) : std::min(x[i] - descent_.lower()[i], g[i]);
      most = std::max(most, std::abs(cut));
    }
    return most;
  }

  double longest_step(const Vector& d) const {
    constexpr double most = 1e10;
    if (!descent_.has_bounds()) return most;
    if (descent_.iterations() == 0) return 1;
    double step = most;
    for (std::size_t i = 0; i < d.size(); ++i) {
      if (d[i] == 0) continue;
      const double room = descent_.bound_towards(i, d[i]) - descent_.at.x[i];
      step = std::min(step, std::max(room / d[i], 0.0));
    }
    return step;
  }

  /// One line search. False if it finds no lower value.
  bool step() {
    Vector d;
    if (descent_.has_bounds()) {
      target_ = ProjectedStep(descent_, memory_).target();
      d = difference(target_, descent_.at.x);
    } else {
      d = memory_.newton_direction(descent_.at.gradient);
    }
    const double slope = dot(descent_.at.gradient, d);
    if (!(slope < 0)) return false;
    const double most = longest_step(d);
    if (!(most > 0)) return false;
    const double first = descent_.iterations() == 0 && !is_boxed_ ? std::min(1 / norm(d), most) : 1;
    const LineRules rules{1e-3, 0.9, 0.1, 0, most, settings_.maxls.value_or(20)};
    const auto place = [&](double length) { return moved(d, length); };
    return descent_.search(rules, d, slope, std::min(first, most), place).step != 0;
  }

  Vector moved(const Vector& d, double length) const {
    if (length == 1 && descent_.has_bounds()) return target_;  // exactly at its bounds
    Vector x = descent_.at.x;
    add(x, length, d);
    for (std::size_t i = 0; i < descent_.lower().size(); ++i)  // rounding
      x[i] = std::clamp(x[i], descent_.lower()[i], descent_.upper()[i]);
    return x;
  }

  void remember() {
    const Place &now = descent_.at, &before = descent_.before;
    Vector s = difference(now.x, before.x), y = difference(now.gradient, before.gradient);
    const double curvature = dot(s, y), before_slope = -dot(before.gradient, s);
    if (curvature > epsilon_of_sums * before_slope)
      memory_.add_pair(std::move(s), std::move(y), curvature, descent_.has_bounds());
  }

  Descent& descent_;
  const MinimizeSettings& settings_;
  LimitedMemory memory_;
  bool is_boxed_ = false;  // every parameter has two bounds
  Vector target_;          // of the step, with bounds
};

}  // namespace

Minimum by_l_bfgs_b(Descent& descent) { return descent.ended(LimitedDescent(descent).run()); }

}  // namespace gradus::detail::fitting
