/// A lock for short sections: one thread at a time, however it was taken.
#include "gradus/base/short_lock.h"
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace gradus::short_lock_test {
namespace {

TEST(ShortLock, LetsOneThreadInAtATime) {
  ShortLock lock;
  std::int64_t sections = 0;  // plain: only the lock keeps the threads apart
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20'000; ++i) {
        if ((i + t) % 16 == 0) lock.lock_long();
        else lock.lock();
        const std::lock_guard held(lock, std::adopt_lock);
        sections = sections + 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sections, 80'000);
}

/// However it was taken, and however long that takes.
TEST(ShortLock, OthersWaitForWhoHoldsItLong) {
  for (const bool is_long : {true, false}) {
    ShortLock lock;
    std::atomic<int> starts = 0, are_in = 0;
    if (is_long) lock.lock_long();
    else lock.lock();
    const auto enter = [&](auto take) {
      ++starts;
      take();
      const std::lock_guard held(lock, std::adopt_lock);
      ++are_in;
    };
    std::thread one([&] { enter([&] { lock.lock(); }); }), other([&] { enter([&] { lock.lock_long(); }); });
    while (starts < 2) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(are_in, 0);
    lock.unlock();
    one.join();
    other.join();
    EXPECT_EQ(are_in, 2);
    const std::lock_guard again(lock);
  }
}

}  // namespace
}  // namespace gradus::short_lock_test
