/// least_squares(): structures, Variables, large problems, covariances, the ends of runs, and what is refused.
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/fitting/least_squares.h"
#include "gradus/function/function.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/solve.h"
#include "tests/errors.h"

namespace gradus::least_squares_test {
namespace {

constexpr LeastSquaresMethod fit_methods[] = {LeastSquaresMethod::trf, LeastSquaresMethod::dogbox,
                                              LeastSquaresMethod::lm};

Tensor bent_valley(const Tensor& x) { return stack({10 * (x[1] - square(x[0])), 1 - x[0]}); }
const Tensor& start_of_fit() {
  static const Tensor x0 = constant({-1.2, 1.0}, f64);
  return x0;
}
const Tensor& times_of_decay() {
  static const Tensor t = linspace(0.0, 4.0, 30, f64);
  return t;
}

struct Decay {
  Tensor height, rate;
};

TEST(LeastSquares, TakesStructuresAndAnyShape) {
  const Tensor y = reshape(3 * exp(-0.7 * times_of_decay()), {5, 6});
  const auto f = [&](const Decay& d) {
    return cast(d.height, f64) * exp(-d.rate * reshape(times_of_decay(), {5, 6})) - y;
  };
  for (const LeastSquaresMethod method : fit_methods) {
    const auto fit = least_squares(f, Decay{constant(1.0), constant(1.0, f64)}, {.method = method});
    EXPECT_TRUE(fit.success) << fit.message;
    EXPECT_NEAR(fit.x.height.item(), 3, 1e-5);
    EXPECT_EQ(fit.x.height.dtype(), f32);
    EXPECT_NEAR(fit.x.rate.item(), 0.7, 1e-6);
    EXPECT_EQ(fit.fun.shape(), Shape({5, 6}));
    EXPECT_EQ(fit.jac.shape(), Shape({30, 2}));
  }
}

TEST(LeastSquares, FitsVariables) {
  Variable height(constant(1.0, f64), "height"), rate(constant(1.0, f64), "rate");
  const Tensor y = 3 * exp(-0.7 * times_of_decay());
  const auto fit =
      least_squares([&] { return height * exp(-rate.value() * times_of_decay()) - y; }, Variables{height, rate});
  EXPECT_TRUE(fit.success);
  EXPECT_NEAR(height.value().item(), 3, 1e-6);
  EXPECT_NEAR(rate.value().item(), 0.7, 1e-6);
  const auto fails = [](const LeastSquaresStep<Tensors>&) { throw std::runtime_error("of the callback"); };
  height.assign(constant(1.0, f64));
  EXPECT_THROW(least_squares([&] { return height * exp(-rate.value() * times_of_decay()) - y; },
                             Variables{height, rate}, {.callback = fails}),
               std::runtime_error);
  EXPECT_EQ(height.value().item(), 1);
}

TEST(LeastSquares, RepeatedFunctionsFitOtherData) {
  Variable y(3 * exp(-0.7 * times_of_decay()), "y");
  const auto residuals = repeated([&](const Decay& d) { return d.height * exp(-d.rate * times_of_decay()) - y; });
  const Decay start{constant(1.0, f64), constant(1.0, f64)};
  EXPECT_NEAR(least_squares(residuals, start).x.height.item(), 3, 1e-6);
  y.assign(5 * exp(-0.2 * times_of_decay()));
  const auto fit = least_squares(residuals, start, {.method = LeastSquaresMethod::lm});
  EXPECT_NEAR(fit.x.height.item(), 5, 1e-6);
  EXPECT_NEAR(fit.x.rate.item(), 0.2, 1e-6);
}

/// A linear problem of many parameters is solved by normal equations, a small one by singular values: both give the
/// solution of lstsq, and its covariance.
TEST(LeastSquares, LinearProblemsOfAllSizes) {
  for (const std::int64_t n : {1, 5, 64, 65, 90}) {
    const std::int64_t m = 2 * n + 3;
    const Tensor a = random::normal({m, n}, {.dtype = f64, .seed = 1}),
                 b = random::normal({m, 1}, {.dtype = f64, .seed = 2});
    const Tensor want = reshape(lstsq(a, b), {n});
    for (const LeastSquaresMethod method : fit_methods) {
      const auto f = [&](Tensor x) { return matvec(a, x) - reshape(b, {m}); };
      const auto fit = least_squares(f, ones({n}, f64), {.method = method});
      EXPECT_TRUE(fit.success);
      EXPECT_LE(max_abs_difference(fit.x, want), 1e-7) << n;
      const double variance = 2 * fit.cost / static_cast<double>(m - n);
      const Tensor covariance = variance * inverse(matmul(a, a, {.transpose_a = true}));
      EXPECT_LE(max_abs_difference(fit.covariance(), covariance), 1e-9) << n;
      EXPECT_LE(max_abs_difference(fit.covariance(true) * variance, fit.covariance()), 1e-12);
    }
  }
}

TEST(LeastSquares, FewerResidualsThanParameters) {
  const auto f = [](Tensor x) { return reshape(reduce_sum(square(x)) - 4, {1}); };
  for (const LeastSquaresMethod method : {LeastSquaresMethod::trf, LeastSquaresMethod::dogbox}) {
    const auto fit = least_squares(f, constant({1.0, 1.0, 3.0}, f64), {.method = method});
    EXPECT_TRUE(fit.success);
    EXPECT_LE(fit.cost, 1e-12);
    EXPECT_FALSE(std::isfinite(fit.covariance()[0][0].item()));
  }
}

TEST(LeastSquares, CallbacksSeeEachIterationAndStop) {
  for (const LeastSquaresMethod method : fit_methods) {
    int calls = 0;
    const auto callback = [&](const LeastSquaresStep<Tensor>& step) {
      EXPECT_EQ(step.nit, ++calls);
      EXPECT_NEAR(0.5 * reduce_sum(square(bent_valley(step.x))).item(), step.cost, 1e-9);
      step.stop = calls == 3;
    };
    const auto fit = least_squares(bent_valley, start_of_fit(), {.method = method, .callback = callback});
    EXPECT_EQ(fit.status, LeastSquaresStatus::stopped);
    EXPECT_EQ(fit.nit, 3);
    EXPECT_FALSE(fit.success);
  }
}

TEST(LeastSquares, BacksOffWhereResidualsAreNotFinite) {
  const auto f = [](Tensor x) { return log(x) + 0.1 * (x - 1); };  // NaN below 0, zero at 1
  for (const LeastSquaresMethod method : fit_methods) {
    const auto fit = least_squares(f, constant({30.0, 0.01}, f64), {.method = method});
    EXPECT_LE(max_abs_difference(fit.x, ones({2}, f64)), 1e-5) << fit.message;
  }
}

TEST(LeastSquares, EndsSayWhy) {
  for (const LeastSquaresMethod method : fit_methods) {
    const auto fit = least_squares(bent_valley, start_of_fit(), {.method = method, .max_nfev = 3});
    EXPECT_EQ(fit.status, LeastSquaresStatus::max_evaluations);
    EXPECT_EQ(fit.nfev, 3);
    const auto flat = least_squares(bent_valley, ones({2}, f64), {.method = method});
    EXPECT_EQ(flat.status, LeastSquaresStatus::small_gradient);
    const auto small = least_squares(bent_valley, start_of_fit(), {.method = method, .xtol = 0.5});
    EXPECT_EQ(small.status, LeastSquaresStatus::small_step);
  }
}

TEST(LeastSquares, BoundsHoldAndAreNamed) {
  for (const LeastSquaresMethod method : {LeastSquaresMethod::trf, LeastSquaresMethod::dogbox}) {
    const auto within = [&](const LeastSquaresStep<Tensor>& step) { EXPECT_GE(step.x[1].item(), 1.5); };
    const auto fit = least_squares(
        bent_valley, constant({-1.2, 2.0}, f64),
        {.method = method, .bounds = Bounds<>{.lb = constant({-HUGE_VAL, 1.5}, f64)}, .callback = within});
    EXPECT_TRUE(fit.success);
    EXPECT_NEAR(fit.x[1].item(), 1.5, 1e-6);
    EXPECT_EQ(fit.active_mask.to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, -1}));
  }
}

TEST(LeastSquares, RefusesWhatSciPyRefuses) {
  const Tensor& x0 = start_of_fit();
  const auto refused = [](auto call, std::initializer_list<const char*> parts) {
    expect_error<InvalidArgument>(call, parts);
  };
  constexpr LeastSquaresMethod lm = LeastSquaresMethod::lm;
  const auto one = [](Tensor x) { return reshape(reduce_sum(x), {1}); };
  refused([&] { least_squares(one, x0, {.method = lm}); }, {"1 residuals", "2 parameters", "lm", "trf"});
  refused([&] { least_squares(bent_valley, x0, {.method = lm, .loss = RobustLoss::huber}); }, {"lm", "linear"});
  refused([&] { least_squares(bent_valley, x0, {.method = lm, .bounds = Bounds<>{constant(-9.0), {}}}); },
          {"lm", "bounds"});
  refused([&] { least_squares(bent_valley, x0, {.bounds = Bounds<>{constant(0.0), {}}}); },
          {"x0", "-1.2", "parameter 0", "bounds"});
  refused([&] { least_squares(bent_valley, x0, {.bounds = Bounds<>{constant(-2.0), constant(-2.0)}}); },
          {"lower bound -2", "upper bound -2"});
  refused([&] { least_squares(bent_valley, x0, {.bounds = Bounds<>{constant({1.0, 1.0, 1.0}), {}}}); },
          {"lower bound", "f32[3]"});
  refused([&] { least_squares(bent_valley, x0, {.ftol = {}, .xtol = {}, .gtol = {}}); }, {"ftol, xtol and gtol"});
  refused([&] { least_squares(bent_valley, x0, {.method = lm, .gtol = {}}); }, {"lm", "gtol"});
  refused([&] { least_squares(bent_valley, x0, {.f_scale = 0.0}); }, {"f_scale"});
  refused([&] { least_squares(bent_valley, x0, {.x_scale = constant({1.0, 0.0})}); }, {"x_scale"});
  refused([&] { least_squares(bent_valley, x0, {.max_nfev = 0}); }, {"max_nfev"});
  refused([&] { least_squares([](Tensor x) { return log(x); }, x0); }, {"residuals", "not finite at x0"});
  refused([&] { least_squares([](Tensor x) { return cast(x, i32); }, x0); }, {"i32", "floating"});
  refused([&] { least_squares([](Tensor) { return constant({1.0}); }, x0); }, {"does not depend on"});
  refused([&] { function([](Tensor x) { return least_squares(bent_valley, x).x; })(x0); }, {"within"});
}

}  // namespace
}  // namespace gradus::least_squares_test
