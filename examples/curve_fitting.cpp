// Shows: least_squares: a curve through measurements with outliers, by a robust loss; the parameters are a struct, with
//        bounds and deviations. minimize: the same parameters by their likelihood.
// Prints: the fits with and without the robust loss, the deviations, and the evaluations that they took.
#include <gradus/gradus.h>
using namespace gradus;

struct Peak {
  Tensor height, center, width, base;
};

Tensor values_of(const Peak& p, const Tensor& x) {
  return p.base + p.height * exp(-0.5 * square((x - p.center) / p.width));
}
double distance(const Peak& a, const Peak& b) {
  return std::max({max_abs_difference(a.height, b.height), max_abs_difference(a.center, b.center),
                   max_abs_difference(a.width, b.width), max_abs_difference(a.base, b.base)});
}
Peak peak(double height, double center, double width, double base) {
  return {constant(height, f64), constant(center, f64), constant(width, f64), constant(base, f64)};
}

int main() {
  set_seed(0);
  const Peak truth = peak(4.0, 1.5, 0.6, 0.5), start = peak(1.0, 0.0, 1.0, 0.0);
  const Tensor x = linspace(-2.0, 5.0, 120, f64);
  const Tensor is_outlier = cast(less(random::uniform({120}, {.dtype = f64}), 0.1), f64);
  const Tensor y = values_of(truth, x) + 0.05 * random::normal({120}, {.dtype = f64}) + 3.0 * is_outlier;
  const auto residuals = [&](const Peak& p) { return values_of(p, x) - y; };

  const auto plain = least_squares(residuals, start);
  const auto robust = least_squares(
      residuals, start,
      {.bounds = Bounds<Peak>{.lb = Peak{{}, {}, constant(0.01), {}}}, .loss = RobustLoss::soft_l1, .f_scale = 0.1});
  const Tensor deviations = sqrt(diag_part(robust.covariance()));  // in the order of the fields
  print("least squares:", plain.x.height, plain.x.center, plain.x.width, plain.x.base);
  print("robust:       ", robust.x.height, robust.x.center, robust.x.width, robust.x.base);
  print("deviations:   ", deviations);
  print("evaluations:  ", robust.nfev, "-", robust.message);
  check(robust.success && plain.success, "both have converged");
  check(distance(robust.x, truth) < 0.1, "outliers hardly move the robust fit");
  check(distance(plain.x, truth) > 2 * distance(robust.x, truth), "they move the other one");

  // Noise with heavy tails has a likelihood of its own: any scalar function has a minimum by minimize.
  const auto likelihood = [&](const Peak& p) { return reduce_sum(log(1 + square(residuals(p) / 0.1))); };
  std::vector<double> values;
  const auto likely = minimize(likelihood, robust.x,
                               {.method = MinimizeMethod::l_bfgs_b,
                                .callback = [&](const MinimizeStep<Peak>& step) { values.push_back(step.fun); }});
  print("likelihood:   ", likely.fun, "after", likely.nit, "iterations -", likely.message);
  check(likely.success && distance(likely.x, truth) < 0.1, "and it agrees");
  check(std::ssize(values) == likely.nit && values.back() == likely.fun, "the callback has seen each iteration");
}
