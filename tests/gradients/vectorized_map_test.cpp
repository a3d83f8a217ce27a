/// vectorized_map: what every op does with rows is tested by the op rows; here is what surrounds them.
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/philox.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"

namespace gradus::vectorized_map_test {
namespace {

/// f of each row, one by one.
Tensor looped(auto f, const Tensor& xs) {
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < xs.shape()[0]; ++i) rows.push_back(f(xs[i]));
  return stack(rows);
}

Tensor normed(const Tensor& x) { return x / norm(x); }

TEST(VectorizedMap, IsTheLoop) {
  const Tensor xs = random::normal({5, 4}, {.seed = 1});
  EXPECT_TRUE(bitwise_equal(vectorized_map(normed, xs), looped(normed, xs)));
}

TEST(VectorizedMap, CallsOnceAndSeesARow) {
  int calls = 0;
  const Tensor y = vectorized_map(
      [&](Tensor x) {
        ++calls;
        EXPECT_EQ(x.spec(), (Spec{f32, {4}}));
        return x;
      },
      zeros({5, 4}));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(y.spec(), (Spec{f32, {5, 4}}));
}

TEST(VectorizedMap, OfWhatDoesNotDependOnTheRow) {
  const Tensor c = constant({1, 2});
  EXPECT_TRUE(bitwise_equal(vectorized_map([&](Tensor) { return c + c; }, zeros({2, 3})), constant({{2, 4}, {2, 4}})));
}

TEST(VectorizedMap, IntegersAndBooleans) {
  const Tensor xs = constant({{3, 1}, {2, 5}});
  EXPECT_EQ(vectorized_map([](Tensor x) { return argmax(x); }, xs).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(vectorized_map([](Tensor x) { return x[0] < x[1]; }, xs).to_vector<bool>(),
            (std::vector<bool>{false, true}));
}

TEST(VectorizedMap, OfNoRows) {
  const Tensor y = vectorized_map([](Tensor x) { return matmul(x, transpose(x)); }, zeros({0, 3, 2}));
  EXPECT_EQ(y.shape(), (Shape{0, 3, 3}));
  EXPECT_TRUE(y.to_vector<float>().empty());
}

TEST(VectorizedMap, NestsOverDifferentOperands) {
  const Tensor a = random::normal({3, 4}, {.seed = 1}), b = random::normal({2, 4}, {.seed = 2});
  const Tensor outer =
      vectorized_map([&](Tensor x) { return vectorized_map([&](Tensor y) { return reduce_sum(x * y); }, b); }, a);
  EXPECT_LT(max_abs_difference(outer, matmul(a, transpose(b))), 1e-6);
  EXPECT_TRUE(bitwise_equal(
      outer, looped([&](Tensor x) { return looped([&](Tensor y) { return reduce_sum(x * y); }, b); }, a)));
}

TEST(VectorizedMap, IsDifferentiable) {
  const Tensor xs = random::normal({5, 4}, {.seed = 1});
  const auto sum_of = [&](Tensor x) { return reduce_sum(square(normed(x) - 1)); };
  const Tensor outside = gradient([&](Tensor x) { return reduce_sum(vectorized_map(sum_of, x)); }, xs);
  const Tensor inside = vectorized_map([&](Tensor x) { return gradient(sum_of, x); }, xs);
  EXPECT_LT(max_abs_difference(outside, inside), 1e-6);
  EXPECT_TRUE(bitwise_equal(inside, looped([&](Tensor x) { return gradient(sum_of, x); }, xs)));
}

TEST(VectorizedMap, WithinAFunctionOfAnySize) {
  const auto f =
      function([](Tensor xs) { return vectorized_map(normed, xs); }, {.input_signature = {{f32, {any_size, 4}}}});
  for (const std::int64_t n : {5, 2, 0}) {
    const Tensor xs = random::normal({n, 4}, {.seed = 1});
    EXPECT_TRUE(bitwise_equal(f(xs), vectorized_map(normed, xs))) << n;
  }
  EXPECT_EQ(f.explain().variants, 1);
}

TEST(VectorizedMap, OfACompiledFunction) {
  const auto f = function(normed);
  const Tensor xs = random::normal({5, 4}, {.seed = 1});
  EXPECT_TRUE(bitwise_equal(vectorized_map(f, xs), vectorized_map(normed, xs)));
}

TEST(VectorizedMap, VariablesAreReadFromOutside) {
  Variable w(constant({1.0, 2.0}), "w");
  const Tensor xs = constant({{1.0, 1.0}, {3.0, 5.0}});
  const auto f = [&](Tensor x) { return x * w; };
  EXPECT_TRUE(bitwise_equal(vectorized_map(f, xs), constant({{1.0, 2.0}, {3.0, 10.0}})));
  w.assign(constant({0.0, 1.0}));
  EXPECT_TRUE(bitwise_equal(vectorized_map(f, xs), constant({{0.0, 1.0}, {0.0, 5.0}})));
  GradientTape tape;
  const Tensor y = reduce_sum(vectorized_map(f, xs));
  EXPECT_TRUE(bitwise_equal(tape.gradient(y, w), constant({4.0, 6.0})));
}

TEST(VectorizedMap, VariablesWithinAFunctionAreReadAtEachCall) {
  Variable w(constant(2.0), "w");
  const auto f = function([&](Tensor xs) {
    w.assign_add(constant(1.0));
    return vectorized_map([&](Tensor x) { return x * w; }, xs);
  });
  EXPECT_EQ(f(constant({1.0, 2.0})).to_vector<float>(), (std::vector<float>{3, 6}));
  EXPECT_EQ(f(constant({1.0, 2.0})).to_vector<float>(), (std::vector<float>{4, 8}));
}

TEST(VectorizedMap, AssigningIsAMistake) {
  Variable w(constant(2.0), "kernel");
  const auto assigning = [&](Tensor x) {
    w.assign(x);
    return x;
  };
  expect_says(error_of<InvalidArgument>([&] { vectorized_map(assigning, constant({1.0, 2.0})); }),
              "kernel: each row of a vectorized_map");
  expect_says(error_of<InvalidArgument>(
                  [&] { function([&](Tensor x) { return vectorized_map(assigning, x); })(constant({1.0, 2.0})); }),
              "kernel: each row of a vectorized_map");
  EXPECT_EQ(w.value().item(), 2);
}

TEST(VectorizedMap, BranchingIsAMistakeThatNamesCond) {
  const auto choose = [&](Tensor x) { return bool(x > 0) ? x : -x; };
  expect_says(error_of<InvalidArgument>([&] { vectorized_map(choose, constant({1.0, -2.0})); }), "use cond(");
}

TEST(VectorizedMap, SymbolsThatEscapeAreNamed) {
  Tensor kept;
  vectorized_map([&](Tensor x) { return kept = x + 1; }, constant({1.0, 2.0}));
  expect_says(error_of<InvalidArgument>([&] { kept.item(); }), "symbolic");
  expect_says(error_of<InvalidArgument>([&] { kept + 1; }), "symbolic");
}

TEST(VectorizedMap, OtherMistakes) {
  expect_says(error_of<InvalidArgument>([&] { vectorized_map(normed, constant(1.0)); }),
              "vectorized_map: xs is f32[], which has no rows");
  expect_says(error_of<InvalidArgument>([&] { vectorized_map([](Tensor) { return Tensor(); }, zeros({2, 3})); }),
              "empty tensor");
}

TEST(VectorizedMap, IndicesAreCheckedInEachRow) {
  const Tensor xs = random::normal({2, 3}, {.seed = 1}), at = constant({{0, 2}, {1, 3}});
  const auto pick = [&](Tensor row) { return gather(xs[0], row); };
  const auto own = [&](Tensor row) { return gather(cast(row, f32), row); };
  expect_says(error_of<OutOfRange>([&] { vectorized_map(pick, at).to_vector<float>(); }), "3");
  // 3 lies within the two rows of two elements, but outside of its own row.
  expect_says(error_of<OutOfRange>([&] { vectorized_map(own, at).to_vector<float>(); }), "outside");
}

// ---------------------------------------------------------------- random numbers

Tensor noisy(Tensor x) { return x + random::uniform(x.shape()); }

TEST(VectorizedMap, RowsDrawTheirOwnNumbers) {
  set_seed(7);
  const Tensor y = vectorized_map(noisy, zeros({4, 3}));
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < i; ++k) EXPECT_FALSE(bitwise_equal(y[i], y[k])) << i << " and " << k;
  set_seed(7);
  EXPECT_TRUE(bitwise_equal(vectorized_map(noisy, zeros({4, 3})), y));
  EXPECT_FALSE(bitwise_equal(vectorized_map(noisy, zeros({4, 3})), y));
}

/// Row i has the key that follows from the op's key and i: a loop that folds keys so draws the same numbers.
TEST(VectorizedMap, KeysAreFoldedWithTheRow) {
  set_seed(7);
  const Tensor y = vectorized_map(noisy, zeros({4, 3}));
  set_seed(7);
  const Tensor key = next_key({});
  for (int i = 0; i < 4; ++i) {
    const Tensor bits = philox(range(3, i64), fold_key(key, static_cast<std::uint64_t>(i)), 0);
    EXPECT_TRUE(bitwise_equal(y[i], cast(floor_divide(bits, std::int64_t{1} << 29), f32) * 0x1p-24));
  }
}

TEST(VectorizedMap, ASeedOfOnesOwnIsTheSameForAllRows) {
  const Tensor y = vectorized_map([](Tensor x) { return x + random::uniform(x.shape(), {.seed = 3}); }, zeros({2, 3}));
  EXPECT_TRUE(bitwise_equal(y[0], y[1]));
  EXPECT_TRUE(bitwise_equal(y[0], random::uniform({3}, {.seed = 3})));
}

TEST(VectorizedMap, NestedRowsDrawTheirOwnNumbers) {
  const Tensor y = vectorized_map([](Tensor x) { return vectorized_map(noisy, x); }, zeros({2, 3, 1}));
  const std::vector<float> all = y.to_vector<float>();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(all[i], all[k]);
}

TEST(VectorizedMap, ACompiledFunctionDrawsAnewAtEachCall) {
  const auto f = function([](Tensor xs) { return vectorized_map(noisy, xs); });
  const Tensor first = f(zeros({4, 3})), second = f(zeros({4, 3}));
  EXPECT_FALSE(bitwise_equal(first, second));
  EXPECT_FALSE(bitwise_equal(first[0], first[1]));
}

}  // namespace
}  // namespace gradus::vectorized_map_test
