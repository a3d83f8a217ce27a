/// Running extremes and log-sums along a size that is not known when tracing: values and gradients of every call equal
/// those of known sizes.
#include <gtest/gtest.h>
#include "gradus/base/rooms.h"
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus::running_test {
namespace {

Tensor weighted(const Tensor& y) { return reduce_sum(y * cos(iota(y.shape(), y.dtype()))); }

/// The gradient of a weighted sum of f.
auto slope_of(Tensor (*f)(const Tensor&)) {
  return [f](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(weighted(f(x)), x);
  };
}

void check(Tensor (*f)(const Tensor&)) {
  auto value = function([f](Tensor x) { return f(x); });
  auto slope = function([f](Tensor x) { return slope_of(f)(x); });
  for (const std::int64_t n : {4, 7, 1, 9}) {
    const Tensor x = round(random::normal({2, n, 3}, {.stddev = 2, .dtype = f64, .seed = 3}));  // with ties
    EXPECT_LE(max_abs_difference(value(x), f(x)), 1e-12) << n;
    EXPECT_LE(max_abs_difference(slope(x), slope_of(f)(x)), 1e-12) << n;
  }
}

TEST(RunningOps, OfUnknownSize) {
  check([](const Tensor& x) { return cummax(x, 1); });
  check([](const Tensor& x) { return cummin(x, 1); });
  check([](const Tensor& x) { return cumulative_logsumexp(x, 1); });
  check([](const Tensor& x) {
    return cumulative_logsumexp(x, CumulativeOptions{.axis = 1, .exclusive = true, .reverse = true});
  });
}

}  // namespace
}  // namespace gradus::running_test
