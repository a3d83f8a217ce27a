/// Random numbers: known answers, what they depend on and what they do not, and their distributions.
#include <gtest/gtest.h>
#include <cmath>
#include <map>
#include <thread>
#include "gradus/base/error.h"
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_key.h"
#include "gradus/ops/random_state.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/ops/reference_philox.h"

namespace gradus::random_test {
namespace {

/// From the test vectors that come with the paper (Random123, kat_vectors).
TEST(Philox, ReferenceGivesTheKnownAnswers) {
  EXPECT_EQ(rows::philox4x32({0, 0, 0, 0}, {0, 0}, 10), (rows::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(rows::philox4x32({0, 0, 0, 0}, {0, 0}, 7), (rows::Block{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  EXPECT_EQ(rows::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}, 10),
            (rows::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, SameSeedSameNumbers) {
  const Tensor a = random::normal({1000}, {.seed = 7}), b = random::normal({1000}, {.seed = 7});
  EXPECT_TRUE(bitwise_equal(a, b));
  EXPECT_FALSE(bitwise_equal(a, random::normal({1000}, {.seed = 8})));
}

TEST(Random, SetSeedStartsTheNumbersOver) {
  set_seed(5);
  const Tensor a = random::uniform({100}), b = random::uniform({100});
  set_seed(5);
  const Tensor c = random::uniform({100}), d = random::uniform({100});
  EXPECT_TRUE(bitwise_equal(a, c));
  EXPECT_TRUE(bitwise_equal(b, d));
  EXPECT_FALSE(bitwise_equal(a, b));
  set_seed(6);
  EXPECT_FALSE(bitwise_equal(a, random::uniform({100})));
}

TEST(Random, AnElementDependsOnItsIndexAlone) {
  const Tensor few = random::normal({10}, {.seed = 3}), many = random::normal({100, 10}, {.seed = 3});
  EXPECT_TRUE(bitwise_equal(few, many[0]));
}

TEST(Random, FoldedKeysDiffer) {
  const Tensor key = next_key(1);
  std::vector<std::int64_t> keys;
  for (std::uint64_t ordinal = 0; ordinal < 100; ++ordinal)
    keys.push_back(fold_key(key, ordinal).to_vector<std::int64_t>()[0]);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
  EXPECT_GE(keys.front(), 0);
  EXPECT_LT(keys.back(), std::int64_t{1} << 53);
}

struct Moments {
  double mean, variance, low, high;
};
Moments moments_of(const Tensor& x) {
  const Tensor wide = cast(x, f64);
  return {reduce_mean(wide).item(), reduce_variance(wide).item(), reduce_min(wide).item(), reduce_max(wide).item()};
}

TEST(Random, MomentsFitTheDistributions) {
  const Shape shape{1 << 18};
  for (DType t : {f32, f64}) {
    const Moments uniform = moments_of(random::uniform(shape, {.low = 2, .high = 4, .dtype = t, .seed = 1}));
    EXPECT_NEAR(uniform.mean, 3, 0.01);
    EXPECT_NEAR(uniform.variance, 1.0 / 3, 0.01);
    EXPECT_GE(uniform.low, 2);
    EXPECT_LT(uniform.high, 4);
    const Moments normal = moments_of(random::normal(shape, {.mean = 5, .stddev = 2, .dtype = t, .seed = 1}));
    EXPECT_NEAR(normal.mean, 5, 0.02);
    EXPECT_NEAR(normal.variance, 4, 0.05);
    EXPECT_LT(normal.low, 5 - 2 * 4);  // beyond four deviations: 3e-5 of them
    EXPECT_GT(normal.high, 5 + 2 * 4);
    const Moments truncated = moments_of(random::truncated_normal(shape, {.dtype = t, .seed = 1}));
    EXPECT_NEAR(truncated.mean, 0, 0.01);
    EXPECT_NEAR(truncated.variance, 0.774, 0.01);  // 1 - 4 density(2) / (1 - 2 tail(2))
    EXPECT_GE(truncated.low, -2);
    EXPECT_LE(truncated.high, 2);
  }
  const Moments integers = moments_of(random::integers(shape, {.low = -2, .high = 3, .seed = 1}));
  EXPECT_NEAR(integers.mean, 0, 0.02);
  EXPECT_NEAR(integers.variance, 2, 0.02);
  EXPECT_EQ(integers.low, -2);
  EXPECT_EQ(integers.high, 2);
}

TEST(Random, UniformNeverReachesItsUpperBound) {
  // 1 + u * 2^-24 rounds to one of the two ends: only the lower one is in the range.
  const Tensor x = random::uniform({1000}, {.low = 1, .high = 1 + 0x1p-23, .seed = 1});
  EXPECT_EQ(reduce_max(x).item(), 1);
}

/// How often each of `classes` numbers occurs in x, as shares.
std::vector<double> shares(const Tensor& x, int classes) {
  std::vector<double> found;
  for (int i = 0; i < classes; ++i) found.push_back(reduce_mean(cast(equal(cast(x, i32), i), f64)).item());
  return found;
}

TEST(Random, CategoricalDrawsByTheProbabilities) {
  const std::vector<double> probabilities{0.5, 0.25, 0.2, 0.05, 0};
  const Tensor logits = log(from_values(probabilities, {5})) + 3;  // one of them -infinity
  for (DType t : {f64, f32, f16, bf16}) {
    const Tensor drawn = random::categorical(cast(logits, t), 1 << 16, {.seed = 1});
    EXPECT_EQ(drawn.spec(), (Spec{i32, {1 << 16}}));
    const std::vector<double> found = shares(drawn, 5);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(found[i], probabilities[i], 0.01) << t << " class " << i;
    EXPECT_EQ(found[4], 0) << "a class of no probability";
  }
}

TEST(Random, CategoricalDrawsForEachRow) {
  const Tensor logits = where(equal(constant({{0, 1, 2}, {2, 1, 0}}), 2), zeros({2, 3}), -30.0);
  const Tensor drawn = random::categorical(logits, 7, {.dtype = i64, .seed = 1});
  EXPECT_EQ(drawn.spec(), (Spec{i64, {2, 7}}));
  EXPECT_TRUE(bitwise_equal(drawn, broadcast_to(constant({{2}, {0}}, i64), {2, 7})));
  EXPECT_EQ(random::categorical(zeros({4, 2, 3}), 5).shape(), (Shape{4, 2, 5}));
  EXPECT_FALSE(bitwise_equal(random::categorical(zeros({100}), 20), random::categorical(zeros({100}), 20)));
  EXPECT_TRUE(bitwise_equal(random::categorical(zeros({100}), 20, {.seed = 3}),
                            random::categorical(zeros({100}), 20, {.seed = 3})));
}

TEST(Random, CategoricalAndShuffleAreTheSameCompiled) {
  const auto drawn = [](const Tensor& logits) {
    return random::categorical(logits, 4, {.seed = 7}) + cast(random::shuffle(logits, {.seed = 8}) > 0, i32)[0][0];
  };
  const auto compiled = function([&](Tensor logits) { return drawn(logits); });
  for (std::int64_t n : {3, 5, 6, 9}) {  // the third size is a symbol
    const Tensor logits = random::normal({n, 2 * n}, {.seed = 2});
    EXPECT_TRUE(bitwise_equal(compiled(logits), drawn(logits))) << n;
  }
  const Tensor rows = vectorized_map([](Tensor row) { return random::categorical(row, 3); }, zeros({50, 8}));
  EXPECT_EQ(rows.shape(), (Shape{50, 3}));
  EXPECT_FALSE(bitwise_equal(rows[0], rows[1]) && bitwise_equal(rows[1], rows[2])) << "other numbers for each row";
}

TEST(Random, CategoricalRefusesWhatHasNoClasses) {
  EXPECT_THROW(random::categorical(constant({1, 2}), 1), InvalidArgument);
  EXPECT_THROW(random::categorical(constant(1.0), 1), InvalidArgument);
  EXPECT_THROW(random::categorical(zeros({3, 0}), 1), InvalidArgument);
  EXPECT_THROW(random::categorical(zeros({3}), 0), InvalidArgument);
  EXPECT_THROW(random::categorical(zeros({3}), 1, {.dtype = f32}), InvalidArgument);
}

TEST(Random, ShuffleKeepsRowsAndEveryOrderComes) {
  const Tensor x = reshape(range(6), {3, 2});
  std::map<std::vector<int>, int> orders;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Tensor y = random::shuffle(x, {.seed = seed});
    const std::vector<int> rows = y.to_vector<int>();
    for (std::size_t i = 0; i < 6; i += 2) EXPECT_TRUE(rows[i] % 2 == 0 && rows[i + 1] == rows[i] + 1) << "whole rows";
    ++orders[rows];
  }
  EXPECT_EQ(orders.size(), 6u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 100, 40);
  EXPECT_EQ(random::shuffle(zeros({0, 2}, boolean)).spec(), (Spec{boolean, {0, 2}}));
  EXPECT_THROW(random::shuffle(constant(1.0)), InvalidArgument);
}

TEST(Random, AScopeHasASequenceOfItsOwn) {
  set_seed(5);
  const std::uint64_t first = next_seed(), second = next_seed(), third = next_seed();
  set_seed(5);
  std::uint64_t state = random_state_of(5);
  EXPECT_EQ(state, random_state());
  EXPECT_EQ(next_seed(), first);
  {
    const SeedScope scope(state);
    EXPECT_EQ(next_seed(), first);
    {
      std::uint64_t inner = 7;
      const SeedScope nested(inner);
      set_seed(5);
      EXPECT_EQ(next_seed(), first);
      std::thread([&] { EXPECT_EQ(next_seed(), second) << "of the process"; }).join();
    }
    EXPECT_EQ(next_seed(), second);
    EXPECT_EQ(random_state(), state);
  }
  EXPECT_EQ(next_seed(), third);
  const SeedScope again(state);
  EXPECT_EQ(next_seed(), third) << "a sequence goes on where it stood";
}

}  // namespace
}  // namespace gradus::random_test
