/// What ops outside of any function allocate once they have run before: nothing.
#include <gtest/gtest.h>
#include <vector>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "tests/function/allocations.h"

namespace gradus {
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

}  // namespace
}  // namespace gradus
