/// Gradients of determinants, at singular matrices too.
#include <gtest/gtest.h>
#include "gradus/gradus.h"

namespace gradus::det_test {
namespace {

/// x: f64 [n, n] of that rank, from factors of small whole numbers.
Tensor of_rank(int n, int rank) {
  const auto factor = [&](int seed) {
    return cast(random::integers({n, rank}, {.low = -3, .high = 4, .seed = static_cast<std::uint64_t>(seed)}), f64);
  };
  return matmul(factor(1), transpose(factor(2)));
}

/// The gradient is the matrix of cofactors, which singular matrices have, too; of full rank they are up to some 10^6.
TEST(Det, HasAGradientAtSingularMatrices) {
  for (int n = 1; n <= 8; ++n)
    for (int rank = std::max(1, n - 3); rank <= n; ++rank) {
      const Tensor x = of_rank(n, rank), got = gradient([](const Tensor& a) { return det(a); }, x);
      const std::vector<double> values = got.to_vector<double>();
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
          std::vector<int> rows, columns;
          for (int k = 0; k < n; ++k) {
            if (k != i) rows.push_back(k);
            if (k != j) columns.push_back(k);
          }
          const Tensor minor = gather(gather(x, constant(rows), 0), constant(columns), 1);
          const double expected = n == 1 ? 1 : ((i + j) % 2 ? -1 : 1) * det(minor).item();
          EXPECT_NEAR(values[static_cast<std::size_t>(i * n + j)], expected, 1e-6 + 1e-9 * std::abs(expected))
              << n << " rows, rank " << rank;
        }
    }
}

/// Of order 2: for x of 3 rows the second derivative is linear in x, so it exists at 0.
TEST(Det, HasSecondDerivativesAtSingularMatrices) {
  const auto norm = [](const Tensor& a) {
    return reduce_sum(gradient([](const Tensor& b) { return det(b); }, a) * (1 + 0 * a));
  };
  const auto f = [&](const Tensor& a) { return norm(a); };
  for (const int rank : {1, 2, 3}) {
    const Tensor x = of_rank(3, rank), got = gradient(f, x);
    for (int i = 0; i < 9; ++i) {
      const Tensor step = reshape(one_hot(constant(i), 9, f64), {3, 3});
      const double expected = (f(x + step).item() - f(x - step).item()) / 2;  // exact for a polynomial of degree 2
      EXPECT_NEAR(got.to_vector<double>()[static_cast<std::size_t>(i)], expected, 1e-9 * (1 + std::abs(expected)))
          << rank;
    }
  }
}

}  // namespace
}  // namespace gradus::det_test
