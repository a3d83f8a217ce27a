/// Gamma and beta numbers: their distributions, their implicit gradients, and draws by seeds that are tensors.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include "gradus/gradus.h"
#include "tests/errors.h"
#include "tests/threads.h"

namespace gradus::random_parameters_test {
namespace {

/// The largest distance between the shares of sorted numbers in [0, 1] and the uniform distribution (Kolmogorov and
/// Smirnov), times sqrt(n): above 2 for one of 3000 draws. The seeds are fixed.
double distance_from_uniform(const Tensor& probabilities) {
  std::vector<double> p = cast(probabilities, f64).to_vector<double>();
  std::sort(p.begin(), p.end());
  double distance = 0;
  const auto n = static_cast<double>(p.size());
  for (std::size_t i = 0; i < p.size(); ++i)
    distance = std::max({distance, static_cast<double>(i + 1) / n - p[i], p[i] - static_cast<double>(i) / n});
  return distance * std::sqrt(n);
}

TEST(Gamma, HasItsDistribution) {
  std::uint64_t seed = 1;
  for (const double alpha : {0.1, 0.5, 1.0, 1.7, 8.0, 500.0})
    for (const double rate : {1.0, 4.0}) {
      SCOPED_TRACE(text("alpha ", alpha, ", rate ", rate));
      const Tensor x = random::gamma({4000}, constant(alpha, f64), {.beta = constant(rate, f64), .seed = seed++});
      EXPECT_LT(distance_from_uniform(igamma(alpha, x * rate)), 2);
    }
}

TEST(Beta, HasItsDistribution) {
  std::uint64_t seed = 50;
  for (const double a : {0.02, 0.5, 1.0, 3.0})
    for (const double b : {0.3, 2.0, 40.0}) {
      SCOPED_TRACE(text("alpha ", a, ", beta ", b));
      const Tensor x = random::beta({4000}, a, b, {.dtype = f64, .seed = seed++});
      EXPECT_TRUE(all_finite(x).item());
      EXPECT_LT(distance_from_uniform(betainc(constant(a, f64), constant(b, f64), x)), 2);
    }
}

TEST(Gamma, FollowsParametersInShapeAndType) {
  const Tensor alpha = constant({0.5, 2.0, 30.0}), rate = constant({{1.0}, {2.0}});
  EXPECT_EQ(random::gamma({4}, alpha, {.beta = rate}).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(random::gamma({}, alpha).shape(), (Shape{3}));
  EXPECT_EQ(random::gamma({5}, 2.0, {.dtype = bf16}).dtype(), bf16);
  EXPECT_EQ(random::stateless_gamma({4, 3}, constant(1), alpha).shape(), (Shape{4, 3}));
  const Tensor odd = random::gamma({2}, constant({-1.0, 0.0, std::nan(""), 1.0}), {.seed = 3});
  EXPECT_EQ(is_nan(odd[1]).to_vector<bool>(), (std::vector<bool>{true, true, true, false}));
  expect_error<InvalidArgument>([&] { random::stateless_gamma({4}, constant(1), alpha); }, {"f32[3]", "(4)"});
  expect_error<InvalidArgument>([] { random::gamma({2}, constant({1, 2})); }, {"random::gamma", "i32[2]"});
  expect_error<InvalidArgument>([&] { random::beta({2}, alpha, constant({1.0}, f64)); }, {"random::beta", "f64[1]"});
}

TEST(Gamma, IsTheSameForAnyThreadsTierAndNeighbours) {
  const auto draw = [](const Tensor& alpha) { return random::gamma({}, alpha, {.seed = 9}); };
  const Tensor alpha = broadcast_to(constant({0.3, 1.0, 5.0, 700.0}), {5000, 4});
  const Tensor x = draw(alpha);
  EXPECT_TRUE(bitwise_equal(draw(alpha.rows(0, 10)), x.rows(0, 10)));
  auto compiled = function(draw);
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(bitwise_equal(compiled(alpha), x));
  const Tensor two = vectorized_map(draw, stack({alpha.rows(0, 10), alpha.rows(0, 10)}));
  EXPECT_TRUE(bitwise_equal(two[1], x.rows(0, 10)));
}

/// Along curves of the same probability P(alpha, z) the number z moves with alpha.
TEST(Gamma, GradientHoldsTheProbability) {
  for (const double a : {0.05, 0.4, 1.0, 3.5, 60.0}) {
    SCOPED_TRACE(a);
    const auto draw = [](const Tensor& alpha) { return random::gamma({}, alpha, {.seed = 21}); };
    const Tensor alpha = full({40}, a, f64), z = draw(alpha);
    const Tensor slope = gradient([&](const Tensor& at) { return reduce_sum(draw(at)); }, alpha);
    const auto outer = [&](const Tensor& at) {
      return reduce_sum(gradient([&](const Tensor& b) { return reduce_sum(draw(b)); }, at));
    };
    const Tensor curvature = gradient(outer, alpha);
    // z(alpha + h) by its Taylor series has the same probability up to h^3.
    const double h = a * 1e-4;
    for (const double step : {h, -h}) {
      const Tensor moved = z + slope * step + curvature * (step * step / 2);
      const Tensor before = igamma(alpha, z), after = igamma(alpha + step, moved);
      EXPECT_LT(reduce_max(abs(after - before)).item(), 1e-9) << step;
      EXPECT_GT(reduce_max(abs(igamma(alpha + step, z) - before)).item(), 1e-6) << step;
    }
  }
}

/// Values of JAX, by jax/make_gamma_gradients.py at the numbers that the seed gives.
TEST(Gamma, GradientsAreThoseOfJax) {
  struct Known {
    double alpha, number[3], slope[3];
  };
  constexpr Known all_known[] = {
      {0.05,
       {0.24886725891726982, 3.6633660175605493e-07, 2.209321638802574e-11},
       {6.9891772735510065, 0.00010493253001300452, 1.062149296094322e-08}},
      {0.4,
       {1.4099116072474238, 0.19027830671003, 0.03862883766690893},
       {2.5481673087716854, 0.9244921773175482, 0.31889146142670965}},
      {1,
       {1.2145483028948068, 0.7586172955949734, 0.42702518606372725},
       {1.293090874710791, 1.0162212431553705, 0.7365556030209532}},
      {3.5,
       {4.232746814937184, 3.3624017285072436, 2.6024807932061518},
       {1.1516614246663455, 1.027818508529903, 0.9007138035322523}},
      {60,
       {63.95329435383731, 60.50325506776919, 57.09376593778106},
       {1.0351153482911077, 1.006976128133841, 0.9780941267581601}},
  };
  for (const Known& known : all_known) {
    const auto draw = [](const Tensor& at) { return random::gamma({}, at, {.seed = 21}); };
    const Tensor alpha = full({3}, known.alpha, f64), z = draw(alpha);
    const Tensor slope = gradient([&](const Tensor& at) { return reduce_sum(draw(at)); }, alpha);
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(z[i].item() / known.number[i], 1, 1e-13) << known.alpha;
      EXPECT_NEAR(slope[i].item() / known.slope[i], 1, 1e-12) << known.alpha;
    }
  }
}

TEST(Beta, GradientsHoldTheProbabilityOnAverage) {
  const Tensor a = full({20000}, 1.5, f64), b = full({20000}, 0.75, f64);
  const auto mean = [](const Tensor& alpha, const Tensor& beta) {
    return reduce_mean(random::beta({}, alpha, beta, {.seed = 5}));
  };
  const auto slopes = gradient(mean, {a, b});
  const double sum = 1.5 + 0.75;  // the mean is a / (a + b)
  EXPECT_NEAR(reduce_sum(slopes[0]).item(), 0.75 / (sum * sum), 0.005);
  EXPECT_NEAR(reduce_sum(slopes[1]).item(), -1.5 / (sum * sum), 0.005);
}

TEST(Stateless, FollowsFromTheSeedAlone) {
  const Tensor seed = constant({3, 7}), other = constant({3, 8});
  const auto all_draws = [](const Tensor& key) {
    return std::vector<Tensor>{random::stateless_normal({50}, key),
                               random::stateless_truncated_normal({50}, key, {.dtype = f64}),
                               random::stateless_uniform({50}, key, {.low = -1, .high = 2}),
                               random::stateless_integers({50}, key, {.high = 1 << 20}),
                               random::stateless_categorical(zeros({2, 9}), 30, key),
                               random::stateless_shuffle(range(50), key),
                               random::stateless_gamma({50}, key, 0.7),
                               random::stateless_beta({50}, key, 0.7, 2.0),
                               random::stateless_fold_in(key, 4),
                               random::stateless_split(key, 3)};
  };
  set_seed(1);
  const auto first = all_draws(seed);
  set_seed(2);
  const auto again = all_draws(seed), others = all_draws(other), of_scalar = all_draws(constant(3));
  int traces = 0;
  auto compiled = function([&](Tensor key) {
    ++traces;
    std::vector<Tensor> flat;
    for (const Tensor& x : all_draws(key)) flat.push_back(cast(reshape(x, {-1}), f64));
    return concat(flat);
  });
  const auto joined = [](const std::vector<Tensor>& draws) {
    std::vector<Tensor> flat;
    for (const Tensor& x : draws) flat.push_back(cast(reshape(x, {-1}), f64));
    return concat(flat);
  };
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(bitwise_equal(first[i], again[i])) << i;
    EXPECT_FALSE(bitwise_equal(first[i], others[i])) << i;
    EXPECT_FALSE(bitwise_equal(first[i], of_scalar[i])) << i;
  }
  EXPECT_TRUE(bitwise_equal(compiled(seed), joined(first)));
  EXPECT_TRUE(bitwise_equal(compiled(other), joined(others)));
  EXPECT_TRUE(bitwise_equal(compiled(seed), joined(first)));
  EXPECT_EQ(traces, 1);
  const Tensor rows =
      vectorized_map([&](const Tensor& key) { return random::stateless_normal({50}, key); }, stack({seed, other}));
  EXPECT_TRUE(bitwise_equal(rows[0], first[0]));
  EXPECT_TRUE(bitwise_equal(rows[1], others[0]));
}

TEST(Stateless, SplitSeedsAreApart) {
  for (const DType dtype : {i32, u32, i64, u64, u8}) {
    const Tensor seeds = random::stateless_split(constant({1, 2}, dtype), 4);
    EXPECT_EQ(seeds.shape(), (Shape{4, 2}));
    EXPECT_EQ(seeds.dtype(), dtype);
  }
  const Tensor seeds = random::stateless_split(constant({1, 2}, i64), 1000);
  EXPECT_EQ(unique(seeds).values.shape()[0], 2000);
  EXPECT_FALSE(
      bitwise_equal(random::stateless_fold_in(constant({1, 2}), 0), random::stateless_fold_in(constant({1, 2}), 1)));
}

TEST(Stateless, SaysWhatIsWrong) {
  expect_error<InvalidArgument>([] { random::stateless_normal({2}, constant({1, 2, 3})); },
                                {"random::stateless_normal", "i32[3]", "a scalar or [2]"});
  expect_error<InvalidArgument>([] { random::stateless_uniform({2}, constant(0.5)); }, {"f32[]", "integers"});
  expect_error<InvalidArgument>([] { random::stateless_normal({2}, constant(1), {.seed = 3}); }, {"two seeds"});
  expect_error<InvalidArgument>([] { random::stateless_split(constant(1), 0); }, {"num is 0"});
}

}  // namespace
}  // namespace gradus::random_parameters_test
