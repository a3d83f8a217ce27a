/// 0 times infinity, and gradients where values are NaN: what limits say, or what TensorFlow, JAX and PyTorch agree on.
/// behind_where_test.cpp looks at all ops.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include "gradus/autodiff/vjp.h"
#include "gradus/function/function.h"
#include "gradus/graph/context.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/crossentropy.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/scatter.h"
#include "gradus/ops/segment.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"

namespace gradus::infinities_test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
using Numbers = std::vector<double>;

Tensor vector_of(const Numbers& values, DType t = f64) {
  return cast(from_values(values, {static_cast<std::int64_t>(values.size())}), t);
}

void expect_numbers(const Tensor& got, const Numbers& want, const std::string& what) {
  const Numbers values = cast(got, f64).to_vector<double>();
  ASSERT_EQ(values.size(), want.size()) << what;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) EXPECT_TRUE(std::isnan(values[i])) << what << " element " << i << " is " << values[i];
    else if (std::isinf(want[i])) EXPECT_EQ(values[i], want[i]) << what << " element " << i;
    else EXPECT_NEAR(values[i], want[i], 2e-3) << what << " element " << i;
  }
}

/// The gradient of the sum of f(x), op by op and as one compiled program, in each type.
void expect_gradient(const std::string& what, const std::function<Tensor(const Tensor&)>& f, const Numbers& x,
                     const Numbers& want) {
  for (const DType t : {f64, f32, f16, bf16}) {
    const auto gradient = [&](const Tensor& at) {
      const RecordingScope keep;
      const Tensor y = f(at);
      return vjp(y, std::array{at}, ones_like(y))[0];
    };
    expect_numbers(gradient(vector_of(x, t)), want, text(what, ' ', t));
    auto compiled = function([&](Tensor at) { return gradient(at); });
    expect_numbers(compiled(vector_of(x, t)), want, text(what, ' ', t, " compiled"));
  }
}

TEST(Infinities, TheGradientOfLogsumexpOfNothingIsZero) {
  const auto whole = [](const Tensor& x) { return reduce_logsumexp(x); };
  expect_gradient("logsumexp", whole, {-inf, -inf, -inf}, {0, 0, 0});
  expect_gradient("logsumexp", whole, {-inf, 0, 0}, {0, 0.5, 0.5});
  expect_gradient("logsumexp", whole, {nan, 0}, {nan, nan});
  const auto rows = [](const Tensor& x) { return reduce_logsumexp(reshape(x, {2, 2}), {.axis = {1}}); };
  expect_gradient("logsumexp of rows", rows, {-inf, -inf, 1, 1}, {0, 0, 0.5, 0.5});
  EXPECT_EQ(reduce_logsumexp(vector_of({-inf, -inf})).item(), -inf);
  EXPECT_EQ(reduce_logsumexp(vector_of({inf, 1})).item(), inf);
  EXPECT_TRUE(std::isnan(reduce_logsumexp(vector_of({nan, 1})).item()));
  EXPECT_EQ(reduce_logsumexp(zeros({0})).item(), -inf);
}

TEST(Infinities, TheGradientOfAnExtremeOfNaNIsNaN) {
  const auto most = [](const Tensor& x) { return reduce_max(x); };
  const auto least = [](const Tensor& x) { return reduce_min(x); };
  expect_gradient("max", most, {1, nan, 3}, {nan, nan, nan});
  expect_gradient("min", least, {1, nan, 3}, {nan, nan, nan});
  expect_gradient("max", most, {1, 3, 3}, {0, 0.5, 0.5});
  expect_gradient("max", most, {-inf, -inf}, {0.5, 0.5});
  expect_gradient("min", least, {inf, 2, inf}, {0, 1, 0});
  expect_gradient("max of rows", [](const Tensor& x) { return reduce_max(reshape(x, {2, 2}), {.axis = {1}}); },
                  {nan, 1, 2, 1}, {nan, nan, 1, 0});
  expect_gradient("max of columns", [](const Tensor& x) { return reduce_max(reshape(x, {2, 2}), {.axis = {0}}); },
                  {nan, 1, 2, 3}, {nan, 0, nan, 1});
  // Behind a where that takes the other branch, nothing flows.
  expect_gradient("max, not taken",
                  [](const Tensor& x) { return where(fill({}, 0, boolean), reduce_max(x), fill({}, 0, x.dtype())); },
                  {1, nan}, {0, 0});
  const auto segments = [](const Tensor& x) { return unsorted_segment_max(x, constant({0, 0, 1, 1}), 2); };
  expect_gradient("segment max", segments, {nan, 1, 2, 1}, {nan, nan, 1, 0});
  const auto into = [](const Tensor& x) {
    return tensor_scatter_nd_min(x, constant({{0}, {1}}), fill({2}, 1, x.dtype()));
  };
  expect_gradient("scatter min", into, {nan, 0.5, 2}, {nan, 1, 1});
}

TEST(Infinities, CrossentropiesAreLimits) {
  const auto of = [](const Tensor& x, const Numbers& z) {
    return sigmoid_cross_entropy_with_logits(vector_of(z, x.dtype()), x);
  };
  const Numbers x{inf, inf, -inf, -inf, inf, nan}, z{1, 0, 0, 1, 0.5, 0};
  expect_numbers(of(vector_of(x), z), {0, inf, 0, inf, inf, nan}, "sigmoid");
  expect_gradient("sigmoid", [&](const Tensor& at) { return of(at, z); }, x, {0, 1, 0, -1, 0.5, nan});
  const auto weighted = [](const Tensor& at, const Numbers& targets) {
    return weighted_cross_entropy_with_logits(vector_of(targets, at.dtype()), at, fill({}, 2, at.dtype()));
  };
  expect_numbers(weighted(vector_of(x), z), {0, inf, 0, inf, inf, nan}, "weighted");
  expect_gradient("weighted", [&](const Tensor& at) { return weighted(at, z); }, x, {0, 1, 0, -2, 0.5, nan});
  const auto softmaxed = [](const Tensor& at, const Numbers& targets) {
    return softmax_cross_entropy_with_logits(vector_of(targets, at.dtype()), at, -1);
  };
  expect_numbers(softmaxed(vector_of({0, 0, -inf}), {1, 0, 0}), {std::log(2)}, "softmax");
  expect_numbers(softmaxed(vector_of({0, 0, -inf}), {0, 0, 1}), {inf}, "softmax");
  expect_gradient("softmax", [&](const Tensor& at) { return softmaxed(at, {1, 0, 0}); }, {0, 0, -inf}, {-0.5, 0.5, 0});
  const Tensor poisson = log_poisson_loss(vector_of({0, 1}), vector_of({-inf, -inf}), false);
  expect_numbers(poisson, {0, inf}, "log_poisson");
}

/// The branch of a where that is not taken has no part in the gradient.
TEST(Infinities, BranchesNotTakenHaveNoGradient) {
  expect_gradient("sparse_plus", [](const Tensor& x) { return sparse_plus(x); }, {inf, -inf, 0, 2}, {1, 0, 0.5, 1});
  const auto slope = [](const Tensor& a) { return prelu(vector_of({inf, -1, 2}, a.dtype()), a); };
  expect_gradient("the slope of prelu", slope, {0.25, 0.25, 0.25}, {0, -1, 0});
}

}  // namespace
}  // namespace gradus::infinities_test
