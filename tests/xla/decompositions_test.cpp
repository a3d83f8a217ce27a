/// Decompositions of what is on a device of a plugin: the processor computes them, with its bits, and brings them back.
#include "tests/xla/plugin.h"

namespace gradus::testing_plugin::decompositions_test {
namespace {

std::vector<Tensor> decompositions_of(const Tensor& x) {
  const auto [q, r] = qr(x);
  const auto [s, u, v] = svd(x, {.full_matrices = true});
  const auto [e, vectors] = eigh(x + transpose(x));
  const auto [factors, p] = lu(x);
  return {q, r, s, u, v, e, vectors, factors, cast(p, f64), pinv(x), matrix_exp(x), eigvalsh(x)};
}
Tensor slope_of_decompositions(const Tensor& x) {
  const auto loss = [](const Tensor& at) {
    Tensor sum = constant(0.0, f64);
    for (const Tensor& each : decompositions_of(at)) sum = sum + reduce_sum(sin(each));
    return sum;
  };
  return gradient(loss, x);
}

void expect_near_all(const Tensor& got, const Tensor& want) {
  const std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-9 * (1 + std::abs(b[i])));
}

using DecompositionsOnPlugin = WithPlugin;

TEST_F(DecompositionsOnPlugin, AreTheProcessors) {
  const Tensor x = cast(random::normal({2, 5, 5}, {.seed = 3}), f64);
  const std::vector<Tensor> want = decompositions_of(x);
  const Tensor slope = slope_of_decompositions(x);
  slope.observed();
  for (const Tensor& each : want) each.observed();
  const Tensor there = x.to(device());
  const auto traced = function([](Tensor at) { return slope_of_decompositions(at); });
  const auto check = [&] {
    const std::vector<Tensor> got = decompositions_of(there);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].device(), device()) << i;
      expect_near_all(got[i], want[i]);
    }
    for (int call = 0; call < 2; ++call) expect_near_all(traced(there), slope);
    expect_near_all(vectorized_map([](Tensor row) { return matrix_exp(row); }, there), want[10]);
  };
  check();
  const DeviceScope scope(device());
  check();
}

}  // namespace
}  // namespace gradus::testing_plugin::decompositions_test
