/// Rows that indices choose, read where they lie: the bits of a copy, and the same errors.
#include <gtest/gtest.h>
#include <algorithm>
#include "gradus/function/function.h"
#include "gradus/function/variable.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/threads.h"

namespace gradus::lookups_test {
namespace {

using Formula = std::function<Tensor(const Tensor& x, const Tensor& indices)>;

Tensor compiled(const Formula& f, const Tensor& x, const Tensor& indices, std::vector<std::string> disable = {}) {
  const auto g = function([&](Tensor a, Tensor b) { return f(a, b); }, {.disable = std::move(disable)});
  const Tensor interpreted = g(x, indices), again = g(x, indices);
  EXPECT_TRUE(bitwise_equal(interpreted, again));
  return again;
}

bool is_copied(const Formula& f, const Tensor& x, const Tensor& indices, std::vector<std::string> disable = {}) {
  const auto g = function([&](Tensor a, Tensor b) { return f(a, b); }, {.disable = std::move(disable)});
  for (int call = 0; call < 2; ++call) g(x, indices).observed();
  return std::ranges::any_of(g.explain().kernels, [](const Kernel& kernel) { return kernel.name == "gather"; });
}

Tensor some_indices(std::int64_t n, const Shape& shape, DType dtype) {
  return cast(random::integers(shape, {.high = n, .seed = 9}), dtype);
}

Tensor normalised(const Tensor& x, const Tensor& indices) { return cast(gather(x, indices), f32) * 0.25 - 1; }

TEST(Lookups, HaveTheBitsOfACopy) {
  const Formula formulas[] = {
      normalised,
      [](const Tensor& x, const Tensor& i) { return reduce_sum(cast(gather(x, i), f32), {.axis = {-1}}); },
      [](const Tensor& x, const Tensor& i) { return reduce_sum(cast(gather(x, i), f32), {.axis = {0}}); },
      [](const Tensor& x, const Tensor& i) {
        const Tensor rows = reshape(cast(gather(x, i), f32), {i.shape().size(), x.shape().size() / x.shape()[0]});
        return (rows - reduce_mean(rows, {.axis = {1}, .keepdims = true})) * 3;
      },
      [](const Tensor& x, const Tensor& i) {
        return equal(expand_dims(gather(x, i), -1), expand_dims(x, -1).rows(0, 1));
      },
  };
  const auto expect_same = [&](DType dtype, const Shape& shape, const Spec& places) {
    const Tensor x = cast(random::uniform(shape, {.low = 0, .high = 100, .seed = 4}), dtype);
    const Tensor indices = some_indices(shape[0], places.shape, places.dtype);
    for (const Formula& f : formulas)
      EXPECT_TRUE(bitwise_equal(compiled(f, x, indices), compiled(f, x, indices, {"lookups"})))
          << x.spec() << " at " << indices.spec() << ", formula " << &f - formulas;
  };
  for (const DType dtype : {u8, i8, i32, i64, f32, f64, f16, bf16}) expect_same(dtype, {30, 33}, {i32, {21}});
  for (const Shape& shape : {Shape{50, 784}, Shape{7, 4, 5}, Shape{5, 16}, Shape{3, 40000}})
    expect_same(u8, shape, {i64, {19}});
  for (const Shape& places : {Shape{64}, Shape{3, 5}, Shape{1}, Shape{}, Shape{0}})
    expect_same(f32, {40, 3, 7}, {i64, places});
}

TEST(Lookups, AreOneKernel) {
  const Tensor x = cast(random::uniform({50, 28, 28}, {.high = 255, .seed = 1}), u8), i = some_indices(50, {64}, i64);
  EXPECT_FALSE(is_copied(normalised, x, i));
  EXPECT_TRUE(is_copied(normalised, x, i, {"lookups"}));
  EXPECT_TRUE(is_copied(normalised, x, i, {"fuse"}));
}

TEST(Lookups, DoNotDependOnThreads) {
  const Tensor x = random::normal({400, 200}, {.seed = 2}), i = some_indices(400, {1001}, i32);
  const Tensor one = [&] {
    const Threads scope(1);
    return compiled(normalised, x, i);
  }();
  for (const int threads : {2, 3, 8}) {
    const Threads scope(threads);
    EXPECT_TRUE(bitwise_equal(compiled(normalised, x, i), one)) << threads;
  }
}

TEST(Lookups, OfAnOpenNumberOfRows) {
  const auto f = function([](Tensor x, Tensor i) { return normalised(x, i); },
                          {.input_signature = {{f32, {any_size, 33}}, {i32, {any_size}}}});
  for (const auto& [rows, places] : {std::pair{40, 64}, {40, 17}, {5, 1}, {1, 9}, {3, 0}}) {
    const Tensor x = random::normal({rows, 33}, {.seed = 3}), i = some_indices(rows, {places}, i32);
    for (int call = 0; call < 2; ++call) EXPECT_TRUE(bitwise_equal(f(x, i), normalised(x, i))) << rows << " " << places;
  }
  EXPECT_EQ(f.explain().variants, 1);
}

TEST(Lookups, OutOfRangeAreTold) {
  const Tensor x = ones({10, 64});
  for (const std::vector<std::int64_t>& wrong :
       {std::vector<std::int64_t>{0, 3, 10, 11}, {1, 2, -1, 0}, {0, 1, 1 << 30, 2}}) {
    const Tensor indices = from_values(wrong, {4});
    for (const std::vector<std::string>& disable : {std::vector<std::string>(), {"lookups"}}) {
      const auto f = function([](Tensor a, Tensor b) { return normalised(a, b); }, {.disable = disable});
      for (int call = 0; call < 2; ++call) f(x, constant({9, 0, 3, 4})).observed();
      try {
        f(x, cast(indices, i32)).observed();
        ADD_FAILURE() << "something is read";
      } catch (const OutOfRange& error) {
        const std::string message = error.what();
        EXPECT_NE(message.find(text("gather: index ", wrong[2], " at position 2 of the indices is outside [0, 10)")),
                  std::string::npos)
            << message;
        EXPECT_EQ(message.find("check_indices"), std::string::npos) << message;
      }
    }
  }
}

/// A table that its own gradient updates: it is read before it is written.
TEST(Lookups, OfATableThatIsTrained) {
  const auto trained = [](std::vector<std::string> disable) {
    Variable table(random::normal({60, 48}, {.seed = 5})), weights(random::normal({48, 48}, {.seed = 6}));
    const auto step = function(
        [&](Tensor i) {
          GradientTape tape;
          const Tensor rows = gather(table, i);
          const Tensor loss = reduce_mean(square(matmul(tanh(rows * 2 + 1), weights)));
          const Gradients dy = tape.gradient(loss, Variables{table, weights});
          table.assign_sub(dy[0] * 0.1);
          weights.assign_sub(dy[1] * 0.1);
          return loss;
        },
        {.disable = std::move(disable)});
    for (const int n : {31, 31, 8, 31, 8, 64}) step(some_indices(60, {n}, i32));
    return std::pair{table.value(), weights.value()};
  };
  const auto [table, weights] = trained({});
  for (const std::vector<std::string>& disable :
       {std::vector<std::string>{"lookups"}, {"reuse"}, {"rederive", "remake"}}) {
    const auto [its_table, its_weights] = trained(disable);
    EXPECT_TRUE(bitwise_equal(its_table, table));
    EXPECT_TRUE(bitwise_equal(its_weights, weights));
  }
}

TEST(Lookups, InALoop) {
  const Tensor x = random::normal({20, 32}, {.seed = 7}), i = some_indices(20, {12, 6}, i32);
  const Formula f = [](const Tensor& table, const Tensor& indices) {
    return scan([&](Tensor sum, Tensor place) { return std::pair{sum * 0.5 + gather(table, place), reduce_sum(sum)}; },
                zeros({6, 32}), indices)
        .first;
  };
  EXPECT_TRUE(bitwise_equal(compiled(f, x, i), compiled(f, x, i, {"lookups"})));
}

}  // namespace
}  // namespace gradus::lookups_test
