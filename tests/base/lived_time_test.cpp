/// Deadlines that count only time in which the process ran, by a simulated clock.
#include "gradus/base/lived_time.h"
#include <gtest/gtest.h>

namespace gradus::lived_time_test {
namespace {

using namespace std::chrono_literals;

const LivedTime::Clock::time_point begin{1000s};

TEST(LivedTime, AGapOfMoreThanTwoSlicesIsMissedButForOne) {
  LivedTime time(100ms, begin);
  EXPECT_EQ(time.missed(begin + 50ms), 0ms);
  EXPECT_EQ(time.missed(begin + 250ms), 0ms);   // two slices: a busy machine
  EXPECT_EQ(time.missed(begin + 10s), 9650ms);  // 9.75 s, of which the process may have waited one slice
  EXPECT_EQ(time.missed(begin + 10s + 100ms), 0ms);
}

/// Waits like a waiting loop, while the process sleeps from `stop` to `go`; returns the moment when it gives up.
LivedTime::Clock::duration given_up(std::chrono::milliseconds patience, std::chrono::milliseconds stop,
                                    std::chrono::milliseconds go) {
  auto now = begin;
  LivedDeadline deadline(begin + patience, now);
  while (!deadline.has_passed(now)) {
    const auto next = std::max(deadline.next(now), now + 1ms);
    now = next > begin + stop && next < begin + go ? begin + go : next;
  }
  return now - begin;
}

TEST(LivedDeadline, IsSoMuchLaterAsItsProcessSlept) {
  EXPECT_EQ(given_up(2s, 1h, 1h), 2s);
  for (const auto slept : {300ms, 1000ms, 60'000ms}) {
    const auto lived = given_up(2s, 950ms, 950ms + slept) - slept;
    EXPECT_GE(lived, 1900ms);
    EXPECT_LE(lived, 2100ms);
  }
  EXPECT_GE(given_up(100ms, 50ms, 5s), 5s);  // it can still receive an answer that arrived meanwhile
}

}  // namespace
}  // namespace gradus::lived_time_test
