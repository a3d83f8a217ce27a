/// Singular values by what they are defined by, and layers made of them by what they compute.
#include "gradus/nn/low_rank.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::low_rank_test {
namespace {

Tensor random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  return random::normal({rows, columns}, {.dtype = f64, .seed = seed});
}
Tensor product_of(const SingularValues& parts) { return matmul(parts.left * parts.values, parts.right); }
double largest(const Tensor& x) { return x.shape().size() == 0 ? 0 : reduce_max(abs(x)).item(); }

TEST(SingularValues, AreADecompositionOfAnyMatrix) {
  const Tensor thin = random_matrix(12, 3, 1);
  const std::vector<std::pair<const char*, Tensor>> matrices{
      {"wide", random_matrix(5, 9, 1)},
      {"tall", random_matrix(40, 17, 2)},
      {"square", random_matrix(24, 24, 3)},
      {"row", random_matrix(1, 6, 4)},
      {"column", random_matrix(6, 1, 5)},
      {"one", constant({{-3.0}}, f64)},
      {"rank 3", matmul(thin, transpose(random_matrix(10, 3, 6)))},
      {"zero", zeros({4, 3}, f64)},
      {"equal values", eye(6, f64) * 2.0},
      {"huge", random_matrix(5, 4, 7) * 1e200},
      {"tiny", random_matrix(5, 4, 8) * 1e-200},
      {"graded", random_matrix(6, 6, 9) * constant({1.0, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15}, f64)},
      {"f32", random::normal({7, 5}, {.seed = 10})},
      {"f16", random::normal({7, 5}, {.dtype = f16, .seed = 10})}};
  for (const auto& [name, x] : matrices) {
    const SingularValues parts = singular_values(x);
    const std::int64_t n = std::min(x.shape()[0], x.shape()[1]);
    ASSERT_EQ(parts.values.spec(), (Spec{f64, {n}})) << name;
    ASSERT_EQ(parts.left.shape(), (Shape{x.shape()[0], n})) << name;
    ASSERT_EQ(parts.right.shape(), (Shape{n, x.shape()[1]})) << name;
    const std::vector<double> values = parts.values.to_vector<double>();
    EXPECT_TRUE(std::ranges::is_sorted(values, std::greater<>())) << name;
    EXPECT_GE(values.back(), 0) << name;
    const Tensor wide = cast(x, f64);
    EXPECT_LE(largest(product_of(parts) - wide), 3e-14 * values.front()) << name;
    std::int64_t rank = 0;
    while (rank < n && values[static_cast<std::size_t>(rank)] > 1e-13 * values.front()) ++rank;
    const Tensor left = slice(parts.left, {0, 0}, {-1, rank}), right = slice(parts.right, {0, 0}, {rank, -1});
    EXPECT_LE(largest(matmul(transpose(left), left) - eye(rank, f64)), 1e-13) << name;
    EXPECT_LE(largest(matmul(right, transpose(right)) - eye(rank, f64)), 1e-13) << name;
    if (std::string(name) == "rank 3") { EXPECT_EQ(rank, 3); }
  }
}

TEST(SingularValues, AsNumPy) {
  // numpy.linalg.svd(numpy.vander([1, 2, 3, 4], 3, increasing=True) - [[0, 0, 5]] * 4)
  const Tensor x = constant({{1.0, 1.0, -4.0}, {1.0, 2.0, -1.0}, {1.0, 3.0, 4.0}, {1.0, 4.0, 11.0}}, f64);
  const std::vector<double> expected{13.138337934603403, 3.9184041843339807, 0.17373820637713},
      found = singular_values(x).values.to_vector<double>();
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-13);
}

TEST(SingularValues, RefusesWhatHasNone) {
  for (const Tensor& x : {zeros({3}), zeros({2, 2, 2}), zeros({2, 2}, i32)})
    expect_says(error_of<InvalidArgument>([&] { singular_values(x); }), "matrix of floats");
  expect_says(error_of<InvalidArgument>([] { singular_values(constant({{1.f, std::nanf("")}})); }), "not finite");
  const auto traced = function([](Tensor x) { return singular_values(x).values; });
  expect_says(error_of<InvalidArgument>([&] { traced(ones({2, 2})); }), "traced");
  EXPECT_EQ(singular_values(zeros({0, 3})).right.shape(), (Shape{0, 3}));
}

TEST(LowRank, IsTheNearestProduct) {
  const Tensor kernel = cast(random_matrix(20, 12, 3), f32), x = random::normal({6, 20}, {.seed = 1});
  Dense layer(12, tanh, {.name = "scores"});
  layer.build({f32, {any_size, 20}});
  layer.kernel().assign(kernel);
  layer.bias().assign(random::normal({12}, {.seed = 5}));
  const std::vector<double> values = singular_values(kernel).values.to_vector<double>();
  double rest = 0;
  for (std::int64_t rank = 12; rank >= 1; --rank) {
    const Sequential both = low_rank(layer, {.rank = rank});
    const Variables parts = both.variables();
    EXPECT_EQ(parts.parameters(), rank * (20 + 12) + 12);
    EXPECT_EQ(parts[0].name(), "scores_narrow/kernel");
    EXPECT_EQ(parts[1].name(), "scores/kernel");
    const Tensor product = matmul(parts[0], parts[1]);
    // Eckart and Young: no matrix of this rank is nearer than the root of the squares of the other values.
    EXPECT_NEAR(norm(product - kernel).item(), std::sqrt(rest), 1e-5) << rank;
    EXPECT_LT(max_abs_difference(both(x), tanh(matmul(x, product) + layer.bias())), 1e-5);
    rest += values[static_cast<std::size_t>(rank - 1)] * values[static_cast<std::size_t>(rank - 1)];
  }
  EXPECT_LT(max_abs_difference(low_rank(layer, {.rank = 12})(x), layer(x)), 1e-5);
  EXPECT_LT(max_abs_difference(low_rank(layer, {.energy = 1})(x), layer(x)), 1e-5);
}

TEST(LowRank, FindsTheRankOfAnEnergy) {
  Dense layer(10, linear, {.use_bias = false, .dtype = f64});
  layer.build({f64, {any_size, 8}});
  const SingularValues some = singular_values(random_matrix(8, 10, 2));
  layer.kernel().assign(matmul(some.left * constant({4.0, 3.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0}, f64), some.right));
  // Squares 16, 9, 4, 1 of 30.
  for (const auto& [energy, rank] : std::vector<std::pair<double, std::int64_t>>{
           {0.01, 1}, {0.5, 1}, {0.6, 2}, {0.8, 2}, {0.9, 3}, {0.97, 4}, {1, 4}})
    EXPECT_EQ(low_rank(layer, {.energy = energy}).variables()[0].shape(), (Shape{8, rank})) << energy;
  const Tensor x = random::normal({3, 8}, {.dtype = f64, .seed = 1});
  EXPECT_LT(max_abs_difference(low_rank(layer, {.energy = 1})(x), layer(x)), 1e-13);
  EXPECT_EQ(low_rank(layer, {.energy = 0.9})(x).dtype(), f64);
}

TEST(LowRank, OfAModelReplacesWhatGetsSmaller) {
  Sequential model{Dense(64, relu), Dropout(0.2), Dense(48, relu), Dense(3)};
  model.build({f32, {any_size, 32}});
  const Sequential smaller = low_rank(model, {.rank = 8});
  std::vector<Shape> kernels;
  for (const Variable& kernel : prunable_variables(smaller)) kernels.push_back(kernel.shape());
  EXPECT_EQ(kernels, (std::vector<Shape>{{32, 8}, {8, 64}, {64, 8}, {8, 48}, {48, 3}}));
  EXPECT_LT(smaller.variables().parameters(), model.variables().parameters() / 2);
  EXPECT_TRUE(bitwise_equal(prunable_variables(smaller)[4], prunable_variables(model)[2]));
  const Sequential whole = low_rank(model, {.energy = 1});
  EXPECT_EQ(whole.variables().parameters(), model.variables().parameters()) << "full rank gets no smaller";
  const Tensor x = random::normal({5, 32}, {.seed = 2});
  EXPECT_TRUE(bitwise_equal(whole(x), model(x)));

  Sequential trained = smaller;
  SGD optimizer({.learning_rate = 0.05});
  const Tensor rows = random::normal({64, 32}, {.seed = 3});
  const History history = fit(trained, optimizer, MeanSquaredError(),
                              data::from_tensor_slices(rows, model(rows)).batch(16), {.epochs = 5, .verbose = false});
  EXPECT_LT(history.loss.back(), history.loss.front()) << "it goes on training";
}

TEST(LowRank, KeepsTheNumbersOfTheProgramAndWhatIsFrozen) {
  Dense layer(6, relu, {.bias_initializer = initializers::normal(1)});
  layer.build({f32, {any_size, 5}});
  layer.set_trainable(false);
  set_seed(3);
  const Tensor expected = random::normal({2});
  set_seed(3);
  const Sequential both = low_rank(layer, {.rank = 2});
  EXPECT_TRUE(bitwise_equal(random::normal({2}), expected)) << "nothing was drawn";
  EXPECT_EQ(both.trainable_variables().size(), 0u);
  EXPECT_TRUE(bitwise_equal(both.variables()[2], layer.bias()));
}

TEST(LowRank, RefusesWhatItCannotDo) {
  Dense layer(6);
  expect_says(error_of<InvalidArgument>([&] { low_rank(layer, {.rank = 2}); }), "not built");
  layer.build({f32, {any_size, 5}});
  for (const LowRankOptions options :
       {LowRankOptions{}, {.rank = 2, .energy = 0.5}, {.rank = -1}, {.energy = 1.5}, {.energy = std::nan("")}})
    EXPECT_THROW(low_rank(layer, options), InvalidArgument) << options.rank << ' ' << options.energy;
  expect_says(error_of<InvalidArgument>([&] { low_rank(layer, {.rank = 6}); }), "at most 5");
  expect_says(error_of<InvalidArgument>([] { low_rank(Sequential{Dense(2)}, {.rank = 1}); }), "not built");
}

}  // namespace
}  // namespace gradus::low_rank_test
