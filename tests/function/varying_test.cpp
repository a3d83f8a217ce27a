/// Lazy evaluation of what varies from one observation to the next: indices, places and sizes are data, so that a loop
/// over them compiles a few programs, not one an iteration; values and errors are those of what is computed alone.
#include <gtest/gtest.h>
#include <map>
#include "gradus/function/function.h"
#include "gradus/function/program_cache.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/index.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "gradus/ops/strided.h"
#include "tests/errors.h"

namespace gradus {
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

}  // namespace
}  // namespace gradus
