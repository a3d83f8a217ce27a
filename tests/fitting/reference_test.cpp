/// minimize() and least_squares() against SciPy: the same minimum, in at most 1.2 of its evaluations.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/fitting/scipy_values.h"

namespace gradus::reference_test {
namespace {

class AgainstScipy : public testing::TestWithParam<ReferenceMinimum> {};
class FitAgainstScipy : public testing::TestWithParam<ReferenceFit> {};

std::optional<Bounds<Tensor>> bounds_of(const std::vector<double>& low, const std::vector<double>& high) {
  if (low.empty()) return {};
  return Bounds<Tensor>{tensor_of_numbers(low), tensor_of_numbers(high)};
}

/// One more is the evaluation that a rounding more or less decides.
int most_evaluations(int of_scipy) { return std::max(of_scipy + 1, static_cast<int>(1.2 * of_scipy)); }

TEST_P(AgainstScipy, HasTheMinimum) {
  const ReferenceMinimum& want = GetParam();
  const TestProblem problem = minimum_problem(want.problem);
  MinimizeOptions<Tensor> options{.method = want.method, .bounds = bounds_of(want.low, want.high)};
  // Hundreds of steps along a narrow valley, where the last bits decide about the path.
  const bool is_pinn = want.problem == "pinn";
  if (is_pinn && want.method == MinimizeMethod::bfgs) options.gtol = 1e-2;
  const auto got = minimize(problem.f, problem.x0, options);
  EXPECT_LE(got.nfev, most_evaluations(want.nfev));
  EXPECT_LE(got.fun, is_pinn ? 1.02 * want.fun : want.fun + 1e-6 * std::max(1.0, std::abs(want.fun)));
  if (!want.x.empty()) { EXPECT_LE(max_abs_difference(got.x, tensor_of_numbers(want.x)), 2e-4) << got.x; }
  EXPECT_EQ(got.success, got.status <= MinimizeStatus::small_step);
  EXPECT_EQ(static_cast<int>(got.history.size()), got.nit + 1);
  EXPECT_TRUE(std::is_sorted(got.history.rbegin(), got.history.rend()));
  EXPECT_EQ(got.history.back(), got.fun);
}

TEST_P(FitAgainstScipy, HasTheFit) {
  const ReferenceFit& want = GetParam();
  const TestProblem problem = fit_problem(want.problem);
  const Tensor x0 = want.x0.empty() ? problem.x0 : tensor_of_numbers(want.x0);
  LeastSquaresOptions<Tensor> options{
      .method = want.method, .bounds = bounds_of(want.low, want.high), .loss = want.loss, .f_scale = want.f_scale};
  if (want.jac_scale) options.jac_scale = true;
  const auto got = least_squares(problem.f, x0, options);
  EXPECT_LE(got.nfev, most_evaluations(want.nfev));
  EXPECT_LE(got.cost, want.cost + 1e-6 * std::max(1e-6, want.cost));
  EXPECT_TRUE(got.success) << got.message;
  if (!want.x.empty() && want.problem != "powell") {
    EXPECT_LE(max_abs_difference(got.x, tensor_of_numbers(want.x)), 1e-5) << got.x;
  }
  if (!want.covariance.empty()) {
    const Tensor expected = reshape(tensor_of_numbers(want.covariance), got.covariance().shape());
    EXPECT_LE(max_abs_difference(got.covariance(), expected), 1e-3 * reduce_max(abs(expected)).item());
  }
}

std::string name_of_run(const std::string& problem, int method, std::size_t index) {
  return problem + "_" + std::to_string(method) + "_" + std::to_string(index);
}
INSTANTIATE_TEST_SUITE_P(Minimize, AgainstScipy, testing::ValuesIn(scipy_minima), [](const auto& row) {
  return name_of_run(row.param.problem, static_cast<int>(row.param.method), row.index);
});
INSTANTIATE_TEST_SUITE_P(LeastSquares, FitAgainstScipy, testing::ValuesIn(scipy_fits), [](const auto& row) {
  return name_of_run(row.param.problem, static_cast<int>(row.param.method), row.index);
});

}  // namespace
}  // namespace gradus::reference_test
