/// What ops outside of any function allocate once they have run before: nothing.
#include <gtest/gtest.h>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/function/function.h"
#include "gradus/graph/graph.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "tests/allocations.h"

namespace gradus::allocation_test {
namespace {

/// By this thread in one round, once everything that is kept from round to round is there.
template <class Round> int allocations_of(const Round& round) {
  for (int i = 0; i < 20; ++i) round();
  const int before = *allocations_so_far();
  round();
  return *allocations_so_far() - before;
}

TEST(Allocation, IsCounted) {
  if (!allocations_so_far()) GTEST_SKIP() << "sanitizers count";
  std::vector<int> kept;
  EXPECT_GT(allocations_of([&] { kept = std::vector<int>(1000); }), 0);
}

TEST(Allocation, AHundredOpsRecordedComputedAndDroppedNeedNone) {
  if (!allocations_so_far()) GTEST_SKIP() << "sanitizers count";
  const Tensor x = full({64}, 0.3), a = full({64}, 0.1), b = full({64}, 0.9);
  float seen = 0;
  const auto round = [&] {
    Tensor y = x;
    for (int i = 0; i < 100; ++i) y = i % 3 == 0 ? y + a : i % 3 == 1 ? y * b : tanh(y);
    seen = y.span<float>()[0];
  };
  EXPECT_EQ(allocations_of(round), 0);
  EXPECT_GT(seen, 0);
}

/// x, sin(x), sin(sin(x)), ...
Graph chain(int length) {
  Graph graph;
  graph.inputs.push_back(graph.add({.spec = {f32, {64}}}));
  const Tensor x = zeros({64});
  const AnyOp op = sin(x).node()->op;
  for (int i = 0; i < length; ++i) graph.add({.op = op, .in = {i}, .spec = {f32, {64}}});
  graph.outputs.push_back(length);
  return graph;
}

/// What is asked for to do `work` of 400 and of 1,600 parts: four times as much, not sixteen.
void expect_linear(const char* what, const std::function<void(int)>& work) {
  work(400);
  const auto of = [&](int parts) {
    const int before = *allocations_so_far();
    work(parts);
    return *allocations_so_far() - before;
  };
  const int few = of(400), many = of(1600);
  EXPECT_LT(many, 6 * few + 1000) << what << ": " << few << " of 400, " << many << " of 1600";
}

/// Among others: a graph that is checked is written only where something is wrong with it.
TEST(Allocation, GrowsWithTheLengthOfAFunctionAndNoFaster) {
  if (!allocations_so_far()) GTEST_SKIP() << "sanitizers count";
  expect_linear("verify", [](int n) { verify(chain(n)); });
  const Tensor x = full({64}, 0.3);
  expect_linear("a chain", [&](int n) {
    function([&](Tensor a) {
      for (int i = 0; i < n; ++i) a = i % 2 ? sin(a) : a * 1.5;
      return a;
    })(x);
  });
  expect_linear("terms side by side", [&](int n) {
    function([&](Tensor a) {
      Tensor sum = a;
      for (int i = 0; i < n; ++i) sum = sum + sin(a * (0.5 + i));
      return sum;
    })(x);
  });
}

}  // namespace
}  // namespace gradus::allocation_test
