/// Matrices of derivatives within a number of bytes: the same bits, and no more memory than was allowed.
#include <gtest/gtest.h>
#include <functional>
#include <string>
#include "gradus/function/function.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/functional.h"
#include "gradus/nn/layers.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/tensor/memory.h"
#include "tests/errors.h"

namespace gradus::jacobian_budget_test {
namespace {

/// The most bytes that were live above those before and the result.
std::size_t extra_bytes(const std::function<Tensor()>& make, Tensor& result) {
  result = {};
  synchronize();
  reset_peak_memory();
  const std::size_t before = memory_use().live_bytes;
  result = make();
  synchronize();
  return memory_use().peak_bytes - before - result.bytes();
}

/// The smallest budget that the error names.
std::size_t smallest_budget(const std::function<Tensor(std::size_t)>& make) {
  const std::string message = error_of<ResourceExhausted>([&] { make(1); });
  const std::size_t at = message.find("takes ");
  EXPECT_NE(at, std::string::npos) << message;
  return std::stoull(message.substr(at + 6));
}

struct Workload {
  std::string name;
  std::function<Tensor(const Tensor&, JacobianOptions)> make;
  Shape x;
};
void PrintTo(const Workload& w, std::ostream* out) { *out << w.name; }

Tensor weights(std::int64_t rows, std::int64_t columns) { return random::normal({rows, columns}, {.seed = 5}) * 0.1; }
Tensor wide(Tensor x) { return matmul(tanh(matmul(x, weights(32, 64))), weights(64, 16)); }   // [n, 32] -> [n, 16]
Tensor narrow(Tensor x) { return matmul(tanh(matmul(x, weights(8, 64))), weights(64, 32)); }  // [n, 8] -> [n, 32]

const std::vector<Workload> workloads{
    {"batch_jacobian, reverse",
     [](const Tensor& x, JacobianOptions o) { return batch_jacobian(wide, x, o); },
     {100, 32}},
    {"batch_jacobian, forward",
     [](const Tensor& x, JacobianOptions o) { return batch_jacobian(narrow, x, o); },
     {100, 8}},
    {"jacobian, reverse", [](const Tensor& x, JacobianOptions o) { return jacobian(wide, x, o); }, {10, 32}},
    {"jacobian, forward", [](const Tensor& x, JacobianOptions o) { return jacobian(narrow, x, o); }, {10, 8}},
    {"hessian",
     [](const Tensor& x, JacobianOptions o) { return hessian([](Tensor t) { return reduce_sum(wide(t)); }, x, o); },
     {8, 32}},
    {"from a tape",
     [](const Tensor& x, JacobianOptions o) {
       GradientTape tape;
       tape.watch(x);
       return tape.batch_jacobian(wide(x), x, o);
     },
     {100, 32}},
};

class Budget : public ::testing::TestWithParam<Workload> {};

TEST_P(Budget, ChangesNoBitAndIsKept) {
  const Workload& w = GetParam();
  const Tensor x = random::normal(w.x, {.seed = 1});
  x.bytes();
  synchronize();
  const Tensor whole = w.make(x, {});
  whole.observed();
  const std::size_t least = smallest_budget([&](std::size_t bytes) { return w.make(x, {.max_bytes = bytes}); });
  for (const std::size_t budget : {least, least + least / 2, 3 * least}) {
    Tensor result;
    for (int sight = 0; sight < 2; ++sight) {
      const std::size_t extra = extra_bytes([&] { return w.make(x, {.max_bytes = budget}); }, result);
      EXPECT_LE(extra, budget + 65536) << sight;  // beside small allocations of the tape and the weights
      EXPECT_TRUE(bitwise_equal(result, whole)) << budget;
    }
  }
  expect_says(error_of<ResourceExhausted>([&] { w.make(x, {.max_bytes = least - 1}); }), "smallest budget that works");
}

TEST_P(Budget, WithinAFunction) {
  const Workload& w = GetParam();
  const Tensor x = random::normal(w.x, {.seed = 1});
  const std::size_t least = smallest_budget([&](std::size_t bytes) { return w.make(x, {.max_bytes = bytes}); });
  const auto f = function([&](Tensor t) { return w.make(t, {.max_bytes = 2 * least}); });
  EXPECT_TRUE(bitwise_equal(f(x), w.make(x, {})));
}

INSTANTIATE_TEST_SUITE_P(Matrices, Budget, ::testing::ValuesIn(workloads));

TEST(JacobianBudget, ExamplesThatMixAreFoundOnTheWhole) {
  const auto mixing = [](Tensor x) { return x - reduce_mean(x, {.axis = {0}}); };
  expect_says(error_of<InvalidArgument>([&] { batch_jacobian(mixing, zeros({64, 8}), {.max_bytes = 512}); }),
              "examples mix");
}

TEST(JacobianBudget, OfOneRow) {
  const auto f = [](Tensor x) { return reduce_sum(exp(matmul(x, weights(32, 32)))); };
  const Tensor x = random::normal({4, 32}, {.seed = 1});
  expect_says(error_of<ResourceExhausted>([&] { jacobian(f, x, {.max_bytes = 16}); }), "jacobian: max_bytes is 16");
  EXPECT_TRUE(bitwise_equal(jacobian(f, x, {.max_bytes = 1 << 16}), jacobian(f, x)));
}

TEST(JacobianBudget, NeedsKnownSizes) {
  const auto f = [](Tensor x) { return tanh(x) * reduce_sum(x); };
  const auto matrix = [&](Tensor x) { return jacobian(f, x, {.max_bytes = 256 * KiB}); };
  const auto open = function(matrix, {.input_signature = {{f32, {any_size}}}});
  const auto free = function(matrix);
  for (const std::int64_t n : {3, 60, 70}) {  // each size is a variant
    const Tensor x = random::normal({n}, {.seed = 1});
    EXPECT_TRUE(bitwise_equal(free(x), jacobian(f, x))) << n;
    EXPECT_TRUE(bitwise_equal(open(x), jacobian(f, x))) << n;
  }
  EXPECT_EQ(free.explain().variants, 3);
  EXPECT_EQ(open.explain().variants, 3);
  EXPECT_NE(open.explain().retraces.back().reason.find("max_bytes needs sizes that are known"), std::string::npos);
}

TEST(JacobianBudget, DerivativesGoThroughIt) {
  const Tensor x = random::normal({6, 3}, {.dtype = f64, .seed = 1});
  const auto f = [](Tensor t) { return tanh(t) * t; };
  const auto norm_of = [&](JacobianOptions options) {
    return [&f, options](Tensor t) { return reduce_sum(square(batch_jacobian(f, t, options))); };
  };
  const std::size_t least =
      smallest_budget([&](std::size_t bytes) { return batch_jacobian(f, x, {.max_bytes = bytes}); });
  EXPECT_LE(max_abs_difference(gradient(norm_of({.max_bytes = least}), x), gradient(norm_of({}), x)), 1e-12);
}

}  // namespace
}  // namespace gradus::jacobian_budget_test
