/// Factorizations of matrices of many rows: errors by the measures of LAPACK's tests, singular matrices, gradients.
#include <gtest/gtest.h>
#include <thread>
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"
#include "tests/threads.h"

namespace gradus::factorization_test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double most = 30;  // LAPACK's threshold of its test ratios

double norm_of(const Tensor& x) { return reduce_max(reduce_sum(abs(cast(x, f64)), {.axis = {-2}})).item(); }
double unit_of(DType t) { return t == f64 ? 0x1p-53 : 0x1p-24; }
Tensor wide_product(const Tensor& a, const Tensor& b) { return matmul(cast(a, f64), cast(b, f64)); }

/// Elements from a normal distribution.
Tensor normal(const Shape& shape, DType t, std::uint64_t seed) {
  return cast(random::normal(shape, {.seed = seed}), t);
}
/// Ill-conditioned: 1 / (1 + i + j) of Hilbert.
Tensor hilbert(std::int64_t n, DType t) {
  const Tensor i = cast(range(n), f64);
  return cast(1 / (1 + expand_dims(i, 0) + expand_dims(i, 1)), t);
}
/// From 1e-8 to 1e8.
Tensor graded_sizes(std::int64_t n, DType t) {
  const Tensor power = cast(range(n), f64) * (16.0 / static_cast<double>(n)) - 8;
  return cast(pow(constant(10.0, f64), power), t);
}

std::vector<Tensor> hard_matrices(std::int64_t n, DType t) {
  const Tensor x = normal({n, n}, t, 3), sizes = graded_sizes(n, t);
  return {x, hilbert(n, t), x * expand_dims(sizes, 1), x * expand_dims(sizes, 0)};
}

/// Their triangles are well-conditioned but for the sizes of rows or columns; those of normal numbers would overflow.
std::vector<Tensor> hard_triangles(std::int64_t n, DType t) {
  const Tensor near_one = eye(n, t) + normal({n, n}, t, 13) * (1.0 / static_cast<double>(n)),
               sizes = graded_sizes(n, t);
  return {near_one, hilbert(n, t) + eye(n, t), near_one * expand_dims(sizes, 1), near_one * expand_dims(sizes, 0)};
}

class ManyRows : public testing::TestWithParam<std::tuple<DType, std::int64_t>> {
 protected:
  const DType t = std::get<0>(GetParam());
  const std::int64_t n = std::get<1>(GetParam());
  const double unit = unit_of(t);
};

TEST_P(ManyRows, SolutionsHaveSmallBackwardErrors) {
  for (const Tensor& a : hard_matrices(n, t))
    for (const std::int64_t columns : {1, 7}) {
      const Tensor b = normal({n, columns}, t, 6), x = solve(a, b);
      const double rest = norm_of(cast(b, f64) - wide_product(a, x));
      EXPECT_LT(rest, most * static_cast<double>(n) * norm_of(a) * norm_of(x) * unit);
    }
}

TEST_P(ManyRows, TriangularSolutionsHaveSmallBackwardErrors) {
  for (const Tensor& matrix : hard_triangles(n, t))
    for (const bool lower : {true, false})
      for (const bool adjoint : {true, false}) {
        const Tensor a = lower ? tril(matrix) : triu(matrix), b = normal({n, 5}, t, 7);
        const Tensor x = triangular_solve(matrix, b, {.lower = lower, .adjoint = adjoint});
        const double rest = norm_of(cast(b, f64) - wide_product(adjoint ? transpose(a) : a, x));
        EXPECT_LT(rest, most * static_cast<double>(n) * norm_of(a) * norm_of(x) * unit);
      }
}

TEST_P(ManyRows, FactorsOfCholeskyMultiplyToTheMatrix) {
  for (const Tensor& x : {normal({n, n}, t, 8), normal({n, 3}, t, 9) * 100, normal({n, n}, t, 10) * 1e-3}) {
    const Tensor a = cast(wide_product(x, transpose(x)) + eye(n, f64), t), l = cholesky(a);
    EXPECT_TRUE(bitwise_equal(l, tril(l)));
    const double rest = norm_of(cast(a, f64) - wide_product(l, transpose(l)));
    EXPECT_LT(rest, most * static_cast<double>(n) * norm_of(a) * unit);
  }
}

TEST_P(ManyRows, InversesHaveSmallErrors) {
  const Tensor a = normal({2, n, n}, t, 11), x = inverse(a);
  for (const std::int64_t i : {0, 1}) {
    const Tensor rest = eye(n, f64) - wide_product(a[i], x[i]);
    EXPECT_LT(norm_of(rest), most * static_cast<double>(n) * norm_of(a[i]) * norm_of(x[i]) * unit);
  }
}

TEST_P(ManyRows, SingularMatricesHaveNoInverseAndNoDeterminant) {
  const Tensor a = normal({n, n}, t, 12), at_row = cast(equal(range(n), n / 2), t);
  const Tensor without_row = a * (1 - expand_dims(at_row, 1)), without_column = a * (1 - expand_dims(at_row, 0));
  for (const Tensor& singular : {without_row, without_column, zeros({n, n}, t)}) {
    EXPECT_EQ(det(singular).item(), 0);
    EXPECT_FALSE(reduce_any(is_finite(inverse(singular))).item() != 0);
    EXPECT_FALSE(reduce_any(is_finite(solve(singular, ones({n, 1}, t)))).item() != 0);
  }
  const Tensor with_nan = where(equal(a, a[n / 2][1]), fill_like(a, nan), a);
  EXPECT_TRUE(std::isnan(det(with_nan).item()));
  EXPECT_TRUE(reduce_all(is_nan(inverse(with_nan))).item() != 0);
  EXPECT_TRUE(std::isnan(cholesky(-eye(n, t))[n - 1][n - 1].item()));
}

/// Past the range of the type, where the determinant itself is infinite or 0.
TEST_P(ManyRows, LogarithmsOfDeterminantsNeedNoDeterminant) {
  for (const double scale : {1e-3, 1.0, 1e3}) {
    const Tensor a = normal({2, n, n}, t, 14) * scale, definite = matmul(a, transpose(a));
    const auto [sign, size] = slogdet(a);
    const auto [sign_of_square, size_of_square] = slogdet(definite);
    EXPECT_TRUE(reduce_all(equal(sign_of_square, 1)).item() != 0);
    EXPECT_TRUE(reduce_all(equal(abs(sign), 1)).item() != 0);
    const double wanted = (slogdet(cast(a[0], f64)).log_abs_determinant * 2).item();
    EXPECT_NEAR(size[0].item() * 2, wanted, 1e-3 * std::abs(wanted));
    EXPECT_NEAR(size_of_square[0].item(), wanted, 0.05 * std::abs(wanted));
  }
  const auto [none, least] = slogdet(zeros({n, n}, t));
  EXPECT_EQ(none.item(), 0);
  EXPECT_EQ(least.item(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(slogdet(eye(n, t)).log_abs_determinant.item(), 0);
}

/// Exchanges alone: row i of the matrix is row (i + shift) of the identity, of which the sign is known.
TEST_P(ManyRows, DeterminantsOfPermutationsAreSigns) {
  for (const std::int64_t shift : {std::int64_t{0}, std::int64_t{1}, n / 2}) {
    const Tensor p = roll(eye(n, t), shift, 0);
    const double sign = (n - 1) * shift % 2 == 0 ? 1 : -1;
    EXPECT_EQ(det(p).item(), sign) << shift;
    EXPECT_TRUE(bitwise_equal(inverse(p) + 0, transpose(p)));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ManyRows, testing::Combine(testing::Values(f32, f64), testing::Values(8, 65, 129, 257)),
                         [](const auto& of) { return text(std::get<0>(of.param), "x", std::get<1>(of.param)); });

/// In a loop, whose team works on each matrix together, and by several callers at a time.
TEST(ManyRowsTeams, HaveTheBitsOfOneThread) {
  constexpr std::int64_t n = 210;
  const Tensor x = normal({3, n, n}, f32, 1);
  const auto in_loop = function([](Tensor matrices) {
    const auto step = [&](Tensor i, Tensor sum) {
      const Tensor m = gather(matrices, i, 0), factor = cholesky(matmul(m, transpose(m)));
      return std::tuple{i + 1, sum + inverse(m) + solve(m, factor) * det(m * 0.1) + triangular_solve(factor, m)};
    };
    return std::get<1>(
        while_loop([](Tensor i, Tensor) { return i < 3; }, step, std::tuple{constant(0), zeros({n, n})}));
  });
  const auto alone = function([](Tensor matrices) { return inverse(matrices); });
  std::vector<Tensor> expected;
  for (const int threads : {1, 2, 3, 7}) {
    const Threads scope(threads);
    const std::vector<Tensor> got{in_loop(x), alone(x), in_loop(x), alone(x)};
    if (expected.empty()) expected = got;
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(bitwise_equal(got[i], expected[i])) << threads << " " << i;
  }
  const Threads scope(3);
  std::vector<Tensor> got(3);
  {
    std::vector<std::jthread> callers;
    for (Tensor& each : got) callers.emplace_back([&] { (each = in_loop(x)).observed(); });
  }
  for (const Tensor& each : got) EXPECT_TRUE(bitwise_equal(each, expected[0]));
}

/// The cofactors of a regular matrix by blocks, those of a singular one without its inverse.
TEST(ManyRowsGradients, OfDeterminantsAreCofactors) {
  for (const DType t : {f32, f64})
    for (const std::int64_t n : {64, 65, 140}) {
      const auto gradient_at = [](const Tensor& a) { return gradient([](const Tensor& x) { return det(x); }, a); };
      const Tensor x = eye(n, f64) + normal({n, n}, f64, 1) * (0.5 / std::sqrt(static_cast<double>(n)));
      const Tensor wanted = transpose(inverse(x)) * det(x), got = cast(gradient_at(cast(x, t)), f64);
      EXPECT_LT(norm_of(got - wanted), most * static_cast<double>(n) * unit_of(t) * norm_of(wanted)) << n;
      // With the last row 0 the cofactors of that row alone are not 0, and do not depend on it.
      const Tensor is_last = cast(equal(expand_dims(range(n), 1), n - 1), f64);
      const Tensor of_last = wanted * is_last, singular = x * (1 - is_last);
      const Tensor cofactors = cast(gradient_at(cast(singular, t)), f64);
      EXPECT_LT(norm_of(cofactors - of_last), most * static_cast<double>(n) * unit_of(t) * norm_of(wanted)) << n;
    }
}

/// Gradients of order 2, past one block, against differences of the first gradient.
TEST(ManyRowsGradients, OfOrderTwo) {
  constexpr std::int64_t n = 70;
  const Tensor x = normal({n, n}, f64, 1) * 0.02, direction = normal({n, n}, f64, 2), one = eye(n, f64);
  const std::vector<std::pair<const char*, std::function<Tensor(const Tensor&)>>> functions{
      {"solve", [&](const Tensor& a) { return reduce_sum(square(solve(a + one, a[0] * one))); }},
      {"inverse", [&](const Tensor& a) { return reduce_sum(square(inverse(a + one))); }},
      {"triangular", [&](const Tensor& a) { return reduce_sum(square(triangular_solve(a + one, one + a * a))); }},
      {"cholesky", [&](const Tensor& a) { return reduce_sum(pow(cholesky(matmul(a, transpose(a)) + one), 3.0)); }},
      {"slogdet", [&](const Tensor& a) { return square(slogdet(a + one).log_abs_determinant + 1); }}};
  for (const auto& [name, f] : functions) {
    const auto slope = [&](const Tensor& a) { return reduce_sum(gradient(f, a) * direction); };
    const double got = reduce_sum(gradient(slope, x) * direction).item(), step = 1e-4;
    const double expected = (slope(x + direction * step).item() - slope(x - direction * step).item()) / (2 * step);
    EXPECT_NEAR(got, expected, 1e-5 * (1 + std::abs(expected))) << name;
  }
}

}  // namespace
}  // namespace gradus::factorization_test
