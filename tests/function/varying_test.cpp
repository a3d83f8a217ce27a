/// Lazy evaluation of what varies from one observation to the next: indices, places and sizes are data, so that a loop
/// over them compiles a few programs, not one an iteration; values and errors are those of what is computed alone.
#include <gtest/gtest.h>
#include <map>
#include <thread>
#include "gradus/function/function.h"
#include "gradus/function/program_cache.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "gradus/ops/special.h"
#include "gradus/ops/strided.h"
#include "tests/errors.h"

namespace gradus::varying_test {
namespace {

constexpr std::int64_t rows = 2000, columns = 8;
constexpr std::int64_t most_compilations = 3;

Tensor table() {
  std::vector<float> values;
  for (int i = 0; i < rows * columns; ++i) values.push_back(static_cast<float>(i % 997) / 16 - 20);
  const Tensor x = from_values(values, {rows, columns});
  x.observed();
  return x;
}

float at(std::int64_t row, std::int64_t column) { return static_cast<float>((row * columns + column) % 997) / 16 - 20; }

/// What one iteration computes of the table, and element `k` of it for row i.
struct Loop {
  std::string name;
  std::function<Tensor(const Tensor& x, std::int64_t i)> body;
  std::function<float(std::int64_t i)> first;  // of the result; empty: it is compared with another way alone
  std::int64_t end = rows;
};

std::vector<Loop> loops() {
  return {
      {"x[i]", [](const Tensor& x, std::int64_t i) { return x[i]; }, [](std::int64_t i) { return at(i, 0); }},
      {"x[-1 - i]", [](const Tensor& x, std::int64_t i) { return x[-1 - i]; },
       [](std::int64_t i) { return at(rows - 1 - i, 0); }},
      {"x[i:i + 3]", [](const Tensor& x, std::int64_t i) { return slice(x, {i, 0}, {3, columns}); },
       [](std::int64_t i) { return at(i, 0); }, rows - 3},
      {"x[:, i] of the transposed table",
       [](const Tensor& x, std::int64_t i) { return slice(transpose(x), {0, i}, {columns, 1}); },
       [](std::int64_t i) { return at(i, 0); }},
      {"x[i, j]", [](const Tensor& x, std::int64_t i) { return x[i][i % columns]; },
       [](std::int64_t i) { return at(i, i % columns); }},
      {"gather(x, i)", [](const Tensor& x, std::int64_t i) { return gather(x, constant(i)); },
       [](std::int64_t i) { return at(i, 0); }},
      {"gather(x, {i, 0})", [](const Tensor& x, std::int64_t i) { return gather(x, constant({i, std::int64_t{0}})); },
       [](std::int64_t i) { return at(i, 0); }},
      {"strided_slice(x, i, step 2)",
       [](const Tensor& x, std::int64_t i) { return strided_slice(x, {i, 1}, {i + 8, 8}, {.strides = {2, 3}}); },
       [](std::int64_t i) { return at(i, 1); }, rows - 8},
      {"roll by i", [](const Tensor& x, std::int64_t i) { return slice(roll(x, i, 0), {0, 0}, {2, columns}); },
       [](std::int64_t i) { return at((rows - i) % rows, 0); }},
      {"x * i", [](const Tensor& x, std::int64_t i) { return slice(x, {0, 0}, {2, columns}) * static_cast<float>(i); },
       [](std::int64_t i) { return at(0, 0) * static_cast<float>(i); }},
      {"several ops behind the index",
       [](const Tensor& x, std::int64_t i) { return reduce_sum(square(x[i] - x[0]) * 2 + 1); },
       {}},
      {"a product behind the index",
       [](const Tensor& x, std::int64_t i) {
         return matmul(slice(x, {i, 0}, {4, columns}), transpose(slice(x, {0, 0}, {4, columns})));
       },
       {},
       rows - 4},
      {"softmax behind the index", [](const Tensor& x, std::int64_t i) { return softmax(x[i]); }, {}},
      {"full of i", [](const Tensor& x, std::int64_t i) { return x[1] + full({columns}, static_cast<float>(i)); },
       [](std::int64_t i) { return at(1, 0) + static_cast<float>(i); }},
      {"a growing prefix", [](const Tensor& x, std::int64_t i) { return slice(x, {0, 0}, {i + 1, columns}); },
       [](std::int64_t) { return at(0, 0); }},
      {"sums of a growing prefix",
       [](const Tensor& x, std::int64_t i) { return reduce_sum(slice(x, {0, 0}, {i + 1, columns}), {.axis = {0}}); },
       {}},
      {"softmax of lengths that vary",
       [](const Tensor& x, std::int64_t i) {
         const std::int64_t n = 2 + i * 37 % 61;
         return reduce_max(softmax(transpose(slice(x, {0, 0}, {n, columns}))) * static_cast<float>(n), {.axis = {-1}});
       },
       {}},
      {"products of lengths that vary",
       [](const Tensor& x, std::int64_t i) {
         const Tensor part = slice(x, {0, 0}, {2 + i * 37 % 61, columns});
         return matmul(part, transpose(part));
       },
       {}},
      {"one-hot of depths that vary",
       [](const Tensor&, std::int64_t i) { return one_hot(constant({1, 0, 2}), 3 + i * 37 % 61); },
       [](std::int64_t) { return 0.f; }},
      {"padding that varies",
       [](const Tensor& x, std::int64_t i) { return pad(slice(x, {0, 0}, {2, columns}), {{1 + i % 50, 2}, {1, 1}}); },
       [](std::int64_t) { return 0.f; }},
      {"broadcasts of sizes that vary",
       [](const Tensor& x, std::int64_t i) { return broadcast_to(x[0], {2 + i % 100, columns}) * 2; },
       [](std::int64_t) { return at(0, 0) * 2; }},
      {"range(i)", [](const Tensor&, std::int64_t i) { return cast(range(i + 2), f32) * 0.5f + 1; },
       [](std::int64_t) { return 1.f; }},
  };
}

std::int64_t compilations() { return program_cache_use().compilations; }

/// The same, at numbers that are fixed: a program of its own.
std::vector<float> computed_alone(const Loop& loop, const Tensor& x, std::int64_t i) {
  const auto f = function([&](Tensor in) { return loop.body(in, i); });
  f(x).observed();
  return f(x).to_vector<float>();
}

TEST(Varying, ALoopOverRowsCompilesAFewProgramsInTwoPasses) {
  const Tensor x = table();
  for (const Loop& loop : loops()) {
    const std::int64_t before = compilations();
    std::map<std::int64_t, std::vector<float>> seen;
    for (int pass = 0; pass < 2; ++pass)
      for (std::int64_t i = 0; i < loop.end; ++i) {
        const Tensor y = loop.body(x, i);
        const std::vector<float> values = y.to_vector<float>();
        ASSERT_EQ(static_cast<std::int64_t>(values.size()), y.shape().size()) << loop.name << " " << i;
        if (loop.first) { ASSERT_EQ(values[0], loop.first(i)) << loop.name << " " << i; }
        if (i < 24 || i % 211 == 0) {
          ASSERT_EQ(seen.try_emplace(i, values).first->second, values) << loop.name << " " << i;
        }
      }
    EXPECT_LE(compilations() - before, most_compilations) << loop.name;
    for (const std::int64_t i : {std::int64_t{0}, std::int64_t{5}, std::int64_t{23}, std::int64_t{211}})
      EXPECT_EQ(computed_alone(loop, x, i), seen.at(i)) << loop.name << " " << i;
  }
}

/// d/dx of the sum of squares of a row: 2 x there, 0 elsewhere.
TEST(Varying, GradientsOfRowsOnATape) {
  const Tensor x = table();
  const std::int64_t before = compilations();
  for (int pass = 0; pass < 2; ++pass)
    for (std::int64_t i = 0; i < rows; ++i) {
      GradientTape tape;
      tape.watch(x);
      const Tensor gradient = tape.gradient(reduce_sum(square(x[i])), x);
      const std::vector<float> values = gradient.to_vector<float>();
      for (const std::int64_t row : {i, (i + 1) % rows, (i + 997) % rows})
        ASSERT_EQ(values[static_cast<std::size_t>(row * columns + 3)], row == i ? 2 * at(i, 3) : 0.f) << i;
    }
  EXPECT_LE(compilations() - before, most_compilations);
}

/// Losses of training one example after the other, in batches of sizes that vary.
std::vector<double> losses_of_training(const Tensor& x, int steps) {
  Variable w(constant({0.5f, -1.f, 0.25f, 2.f, 0.f, 1.f, -0.5f, 0.125f}), "w");
  std::vector<double> losses;
  for (std::int64_t i = 0; i < steps; ++i) {
    GradientTape tape;
    const Tensor batch = slice(x, {i * 5 % 1900, 0}, {2 + i * 7 % 43, columns});
    const Tensor loss = reduce_mean(square(reduce_sum(batch * w, {.axis = {1}}) - 1));
    w.assign_sub(tape.gradient(loss, Variables(w))[0] * (0.001f / static_cast<float>(i + 1)));
    losses.push_back(loss.item());
  }
  return losses;
}

TEST(Varying, TrainingOnBatchesOfSizesThatVary) {
  const Tensor x = table();
  const std::int64_t before = compilations();
  const std::vector<double> first = losses_of_training(x, 300);
  EXPECT_LE(compilations() - before, most_compilations);
  EXPECT_EQ(losses_of_training(x, 300), first) << "interpreted at first, compiled now";
  EXPECT_LE(compilations() - before, most_compilations);
}

TEST(Varying, ASteadyLoopIsCompiledAtItsSecondSight) {
  const Tensor x = table();
  const std::int64_t before = compilations();
  const auto step = [&] { return reduce_sum(tanh(slice(x, {17, 1}, {31, 5})) * 3 - 4).item(); };
  const double value = step();
  EXPECT_EQ(compilations() - before, 0);
  EXPECT_EQ(step(), value);
  EXPECT_EQ(compilations() - before, 1);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(step(), value);
  EXPECT_EQ(compilations() - before, 1);
}

TEST(Varying, LargeSizesThatVary) {
  const Tensor x = random::normal({1 << 20}, {.stddev = 3});
  x.observed();
  const std::int64_t before = compilations();
  for (int pass = 0; pass < 2; ++pass)
    for (std::int64_t i = 0; i < 12; ++i) {
      const Tensor part = slice(x, {i * 11}, {900'000 + i * 1001});
      const double sum = reduce_sum(tanh(part) * sigmoid(part) + erf(part)).item();
      if (i % 5 != 0) continue;
      const auto alone = function([&](Tensor in) { return reduce_sum(tanh(in) * sigmoid(in) + erf(in)); });
      EXPECT_EQ(alone(part).item(), sum) << i;
    }
  EXPECT_LE(compilations() - before, most_compilations);
}

TEST(Varying, ErrorsNameTheNumbersOfTheirRun) {
  const Tensor x = table();
  for (std::int64_t i = 0; i < 100; ++i) {
    const Tensor part = slice(x, {0, 0}, {i + 1, columns});
    EXPECT_EQ(gather(part, constant(i)).to_vector<float>()[0], at(i, 0));
    if (i % 7 != 3) continue;
    const std::string message = error_of<OutOfRange>([&] { gather(part, constant(i + 1)).observed(); });
    expect_says(message, std::to_string(i + 1));
    expect_says(message, "[0, " + std::to_string(i + 1) + ")");
  }
  EXPECT_THROW(x[rows], OutOfRange);
  EXPECT_THROW(x[-rows - 1], OutOfRange);
  EXPECT_THROW(slice(x, {rows - 2, 0}, {3, columns}), OutOfRange);
}

TEST(Varying, SizesOfNothingAndOfOne) {
  const Tensor x = table();
  for (int pass = 0; pass < 2; ++pass)
    for (std::int64_t i = 0; i < 60; ++i) {
      const std::int64_t n = i % 3 == 0 ? i % 2 : i;
      const Tensor part = slice(x, {i, 0}, {n, columns}), sums = reduce_sum(part * 2, {.axis = {0}});
      float expected = 0;
      for (std::int64_t k = 0; k < n; ++k) expected += 2 * at(i + k, 1);
      EXPECT_EQ(part.to_vector<float>().size(), static_cast<std::size_t>(n * columns));
      EXPECT_NEAR(sums.to_vector<float>()[1], expected, 1e-2) << i;
    }
}

/// Lengths of a chain are no numbers in a structure: each is one of its own, and too rare to be compiled.
TEST(Varying, ChainsOfManyLengthsStayInterpretedUntilTheyPay) {
  const Tensor x = table()[7];
  const auto chain = [&](int length) {
    Tensor y = x;
    for (int k = 0; k < length; ++k) y = y * 0.5f + 1;
    return y.to_vector<float>()[2];
  };
  std::int64_t before = compilations();
  for (int pass = 0; pass < 2; ++pass)
    for (int length = 1; length <= 200; ++length) EXPECT_LT(std::abs(chain(length) - 2), 60) << length;
  EXPECT_LE(compilations() - before, most_compilations);
  before = compilations();
  for (int again = 0; again < 4; ++again) chain(150);
  EXPECT_EQ(compilations() - before, 1) << "back soon";
}

TEST(Varying, SeveralThreads) {
  const Tensor x = table();
  const std::int64_t before = compilations();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t i = t; i < rows; i += 4) {
        const Tensor y = slice(x, {i / 2, 0}, {1 + i % 900, columns}) - x[i];
        if (y.to_vector<float>()[1] != at(i / 2, 1) - at(i, 1)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(compilations() - before, 2 * most_compilations);
}

TEST(Varying, WhatIsKeptIsBounded) {
  const Tensor x = table();
  const ProgramCacheUse before = program_cache_use();
  set_program_cache_limit(before.bytes + 200'000);
  for (int pass = 0; pass < 2; ++pass)
    for (std::int64_t i = 0; i < rows; ++i) {
      EXPECT_EQ((slice(x, {i, 0}, {1, columns}) - 1).to_vector<float>()[0], at(i, 0) - 1);
      EXPECT_LE(program_cache_use().bytes, before.bytes + 200'000);
    }
  set_program_cache_limit(std::size_t{256} << 20);
}

}  // namespace
}  // namespace gradus::varying_test
