/// The parts of the methods by their properties: singular values, steps in a region, line searches, the two forms of
/// the limited memory, robust losses.
#include <gtest/gtest.h>
#include <cmath>
#include <numeric>
#include "gradus/base/rooms.h"
#include "gradus/fitting/dense.h"
#include "gradus/fitting/least_squares.h"
#include "gradus/fitting/limited_memory.h"
#include "gradus/fitting/line_search.h"
#include "gradus/fitting/linear_model.h"
#include "gradus/fitting/long_vectors.h"
#include "gradus/fitting/robust_loss.h"
#include "tests/threads.h"

namespace gradus::detail::fitting::parts_test {
namespace {

Matrix made(std::size_t rows, std::size_t columns, double seed = 1) {
  Matrix a(rows, columns);
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = std::sin(seed + 7.3 * static_cast<double>(i * i));
  return a;
}
Vector made_vector(std::size_t n, double seed) { return made(1, n, seed).values; }

TEST(FittingParts, DefaultBoundsStayWithinAnInt) {
  EXPECT_EQ(times_as_int(200, 0), 0);
  EXPECT_EQ(times_as_int(200, 3), 600);
  EXPECT_EQ(times_as_int(200, 10'737'418), 2'147'483'600);
  for (const std::size_t n : {std::size_t{10'737'419}, std::size_t{1} << 40})
    EXPECT_EQ(times_as_int(200, n), 2'147'483'600);
}

TEST(FittingParts, SingularValues) {
  const std::pair<std::size_t, std::size_t> sizes[] = {{1, 1}, {7, 3}, {3, 7}, {20, 20}, {50, 1}, {1, 6}};
  for (const auto& [m, n] : sizes) {
    const Matrix a = made(m, n);
    const Vector f = made_vector(m, 2), p = made_vector(n, 3);
    const SingularValues parts = singular_values(a, f);
    Vector of_parts(n), gradient = transposed_times(a, f);
    double square = 0;
    for (std::size_t i = 0; i < parts.values.size(); ++i) {
      const double* const v = parts.right.row(i);
      for (std::size_t j = 0; j < parts.values.size(); ++j)
        EXPECT_NEAR(dot(v, parts.right.row(j), n), i == j ? 1 : 0, 1e-13);
      add(of_parts.data(), parts.values[i] * parts.along[i], v, n);
      square += std::pow(parts.values[i] * dot(v, p.data(), n), 2);
      if (i > 0) { EXPECT_LE(parts.values[i], parts.values[i - 1]); }
    }
    EXPECT_LE(largest(difference(of_parts, gradient)), 1e-13 * static_cast<double>(m));
    EXPECT_NEAR(square, std::pow(norm(times(a, p)), 2), 1e-12 * static_cast<double>(m * n));
  }
}

TEST(FittingParts, SingularMatricesHaveValuesOfZero) {
  Matrix a = made(9, 4);
  for (std::size_t i = 0; i < 9; ++i) a(i, 3) = a(i, 0) - 2 * a(i, 1);
  EXPECT_LE(singular_values(a, Vector(9)).values[3], 1e-15 * 10);
  EXPECT_EQ(inverse_gram(a).rank, 3u);
  EXPECT_EQ(singular_values(Matrix(5, 2), Vector(5)).values, Vector(2));
}

/// Both models of one problem: steps of the length of the region, on which the gradient is parallel to the step.
TEST(FittingParts, StepsInARegion) {
  for (const std::size_t n : {4u, 70u}) {
    const std::size_t m = n + 30;
    const Matrix a = made(m, n);
    const Vector f = made_vector(m, 5), gradient = transposed_times(a, f);
    const Vector curvature(n, 0.25);
    for (const Vector& c : {Vector(), curvature}) {
      const auto model = linear_model(a, f, gradient, c);
      ASSERT_TRUE(model->has_full_rank());
      const Vector newton = model->newton_step();
      for (const double radius : {0.01, 0.3, 10.0 * norm(newton)}) {
        const RegionStep step = step_in_region(*model, gradient, radius, 0);
        EXPECT_LE(norm(step.p), radius * (1 + 1e-12));
        Vector rest = transposed_times(a, times(a, step.p));
        add(rest, 1, gradient);
        add(rest, step.alpha + (c.empty() ? 0 : 0.25), step.p);
        EXPECT_LE(norm(rest), 0.03 * norm(gradient));
        EXPECT_NEAR(model->product(step.p, newton), dot(times(a, step.p), times(a, newton)),
                    1e-9 * (1 + norm(newton) * norm(step.p)) * static_cast<double>(m));
      }
    }
  }
}

TEST(FittingParts, LineSearchesFindTheWolfeConditions) {
  struct Line {
    double (*f)(double);
    double (*slope)(double);
  };
  // The functions of Moré and Thuente's first three tests.
  const Line lines[] = {
      {[](double t) { return -t / (t * t + 2); }, [](double t) { return (t * t - 2) / ((t * t + 2) * (t * t + 2)); }},
      {[](double t) { return std::pow(t + 0.004, 5) - 2 * std::pow(t + 0.004, 4); },
       [](double t) { return 5 * std::pow(t + 0.004, 4) - 8 * std::pow(t + 0.004, 3); }},
      {[](double t) { return (t - 3) * (t - 3) + 0.3 * std::cos(9 * t); },
       [](double t) { return 2 * (t - 3) - 2.7 * std::sin(9 * t); }},
  };
  for (const Line& line : lines)
    for (const double first : {1e-3, 0.1, 10.0, 1e3})
      for (const double curvature : {0.1, 0.9}) {
        const LineRules rules{1e-3, curvature, 1e-10, 0, 1e10, 60};
        const LinePlace start{0, line.f(0), line.slope(0)};
        const auto at = [&](double t) { return LinePlace{t, line.f(t), line.slope(t)}; };
        const LineResult found = search_line(rules, start, first, at);
        EXPECT_TRUE(found.wolfe) << first;
        EXPECT_LE(line.f(found.step), start.value + 1e-3 * found.step * start.slope);
        EXPECT_LE(std::abs(line.slope(found.step)), curvature * std::abs(start.slope));
      }
}

TEST(FittingParts, LineSearchesKeepToFiniteValues) {
  const auto at = [](double t) { return LinePlace{t, t < 2 ? (t - 1) * (t - 1) : NAN, 2 * (t - 1)}; };
  const LineResult found = search_line({1e-4, 0.1, 1e-12, 0, 1e20, 50}, at(0), 1000, at);
  EXPECT_NEAR(found.step, 1, 0.2);
  const auto never = [](double t) { return LinePlace{t, NAN, NAN}; };
  EXPECT_EQ(search_line({1e-4, 0.1, 1e-12, 0, 1e20, 50}, at(0), 1, never).step, 0);
}

/// theta I - W M W' is the inverse of the matrix that the two loops multiply with.
TEST(FittingParts, BothFormsOfTheLimitedMemoryAgree) {
  constexpr std::size_t n = 8;
  LimitedMemory memory(3);
  for (int pair = 0; pair < 5; ++pair) {
    const Vector s = made_vector(n, pair);
    Vector y = scaled(s, 2);
    for (std::size_t i = 0; i < n; ++i) y[i] += 0.3 * static_cast<double>(i) * s[i];
    memory.add_pair(s, y, dot(s, y), true);
    const Vector g = made_vector(n, 10 + pair), d = memory.newton_direction(g);
    Vector bd = scaled(d, memory.theta());
    const Vector md = memory.middle(memory.project(d));
    for (std::size_t i = 0; i < n; ++i) bd[i] -= dot(memory.row(i), md);
    EXPECT_LE(largest(difference(bd, scaled(g, -1))), 1e-12);
  }
  EXPECT_EQ(memory.pairs(), 3u);
}

/// One pass that changes a vector and sums up has the bits of two; threads change none, and sums are right.
TEST(FittingParts, LongVectorsHaveTheBitsOfOneThread) {
  for (const std::size_t n : {std::size_t{7}, block_elements, block_elements + 1, 40 * block_elements + 5}) {
    const Vector x = made_vector(n, 1), other = made_vector(n, 2), start = made_vector(n, 3);
    std::vector<Vector> results;
    for (const int threads : {1, 2, 5}) {
      const Threads some(threads);
      Vector y = start, z = start;
      const double product = add_and_dot(y, 0.7, x, other);
      add(z, 0.7, x);
      EXPECT_EQ(y, z);
      EXPECT_EQ(product, dot(z, other));
      EXPECT_NEAR(product, std::inner_product(z.begin(), z.end(), other.begin(), 0.0), 1e-8);
      results.push_back(scaled(difference(y, x), 3));
      results.back().push_back(product);
    }
    EXPECT_EQ(results[1], results[0]);
    EXPECT_EQ(results[2], results[0]);
  }
}

TEST(FittingParts, FactorsSolveAnyRightSide) {
  const Matrix a = made(9, 9, 4);
  const Factors factors = factored(a);
  for (const double seed : {1.0, 2.0}) {
    const Vector b = made_vector(9, seed);
    EXPECT_LE(largest(difference(times(a, solved(factors, b)), b)), 1e-12);
  }
  EXPECT_TRUE(solved(factored(Matrix(3, 3)), Vector(3)).empty());
  EXPECT_TRUE(std::isnan(largest({1, std::nan(""), 2})));
}

/// Rows scaled by a loss give the gradient of its cost: differences.
TEST(FittingParts, RobustLossesHaveTheGradientOfTheirCost) {
  for (const RobustLoss loss :
       {RobustLoss::linear, RobustLoss::soft_l1, RobustLoss::huber, RobustLoss::cauchy, RobustLoss::arctan})
    for (const double f : {-3.0, -0.2, 0.01, 0.7, 40.0}) {
      Matrix j(1, 1);
      j(0, 0) = 1;
      Vector r{f};
      scale_rows(j, r, loss, 0.5);
      const double h = 1e-6 * std::max(1.0, std::abs(f));
      const double slope = (cost_of({f + h}, loss, 0.5) - cost_of({f - h}, loss, 0.5)) / (2 * h);
      EXPECT_NEAR(j(0, 0) * r[0], slope, 1e-6 * std::max(1.0, std::abs(slope)));
    }
}

}  // namespace
}  // namespace gradus::detail::fitting::parts_test
