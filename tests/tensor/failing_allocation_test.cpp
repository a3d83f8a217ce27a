/// Allocations that are made to fail: which one, what is counted, and that the accounts stay exact.
#include "gradus/base/rooms.h"
#include "gradus/tensor/failing_allocation.h"
#include <gtest/gtest.h>
#include <optional>
#include <thread>
#include <vector>
#include "gradus/tensor/buffer.h"
#include "gradus/tensor/out_of_memory.h"
#include "tests/errors.h"

namespace gradus::failing_allocation_test {
namespace {

constexpr std::int64_t sizes[] = {0, 8, 0, 100000, 64, 3 << 20, 1};

std::int64_t live() { return static_cast<std::int64_t>(memory_use().live_bytes); }

TEST(FailingAllocation, IsTheOneOfThatNumber) {
  const std::int64_t before = live();
  for (std::int64_t number = 0; number < 7; ++number) {
    const Ref<Buffer> earlier = Buffer::allocate(500);
    std::optional<FailingAllocation> failing(number);
    std::int64_t held_bytes = 0;
    std::vector<Ref<Buffer>> held;
    for (std::int64_t i = 0; i < 7; ++i) {
      const std::int64_t bytes = sizes[i];
      if (i == number) {
        expect_says(error_of<OutOfMemory>([&] { Buffer::allocate(bytes, "a result"); }), "a result asks for");
        continue;
      }
      held.push_back(Buffer::allocate(bytes));
      held_bytes += bytes;
      held.push_back({});
    }
    EXPECT_EQ(failing->count(), 7);
    EXPECT_EQ(live(), before + 500 + held_bytes);
    failing.reset();
    EXPECT_NO_THROW(Buffer::allocate(8));
  }
  EXPECT_EQ(live(), before);
}

TEST(FailingAllocation, CountsWhatOtherThreadsAllocateAndWhatFollowsAFree) {
  const FailingAllocation counting(-1);
  for (int i = 0; i < 10; ++i) Buffer::allocate(1000 - 100 * i);
  EXPECT_EQ(counting.count(), 10);
  std::thread([] { Buffer::allocate(0), Buffer::allocate(8), Buffer::allocate(8); }).join();
  EXPECT_EQ(counting.count(), 13);
}

TEST(FailingAllocation, LeavesThePeakExact) {
  reset_peak_memory();
  const std::int64_t before = live();
  {
    const FailingAllocation counting(-1);
    { const Ref<Buffer> a = Buffer::allocate(5000), b = Buffer::allocate(3000); }
    Buffer::allocate(7000);
  }
  Buffer::allocate(100);
  EXPECT_EQ(static_cast<std::int64_t>(memory_use().peak_bytes), before + 8000);
}

}  // namespace
}  // namespace gradus::failing_allocation_test
