/// How many threads are called for short work: fewer after losses, more again after a while, and what that costs.
#include "gradus/base/turnout.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <functional>

namespace gradus::turnout_test {
namespace {

constexpr double us = 1e3, ms = 1e6;  // nanoseconds
constexpr double slice = 4 * ms;      // after which a thread that has lost its core comes back

/// Steps of `cost` on one thread, half as long on two. `late`: whether this step of two threads waits for a slice.
struct Simulation {
  Turnout turnout;
  double cost, done = 0, waited = 0, alone = 0;  // all work, time lost, work by fewer
  explicit Simulation(int threads, double cost) : turnout(threads), cost(cost) {}

  void run(double work, const std::function<bool()>& late) {
    for (const double end = done + work; done < end; done += cost) {
      if (turnout.threads() == 1) {
        turnout.did_without(cost);
        alone += cost;
        continue;
      }
      const double lost = late() ? slice : 0;
      waited += lost;
      turnout.note(cost / 2, lost);
      turnout.did_without(cost);
    }
  }
};

/// Two threads that are called keep their cores for a slice or so, then one of them loses it.
std::function<bool()> late_each(int steps) {
  return [steps, step = 0]() mutable { return ++step % steps == 0; };
}
bool never() { return false; }

TEST(Turnout, CallsAllWhileTheyCome) {
  Simulation quiet(2, 50 * us);
  quiet.run(10'000 * ms, never);
  EXPECT_EQ(quiet.alone, 0);
  EXPECT_TRUE(quiet.turnout.is_good());
}

TEST(Turnout, ForgivesWhatHappensNowAndThen) {
  Simulation quiet(2, 50 * us);
  quiet.run(100 * ms, never);
  quiet.run(10'000 * ms, late_each(2'000));  // a slice in 50 ms: all in all two threads gain
  EXPECT_EQ(quiet.alone, 0);
}

TEST(Turnout, CountsALongWaitOnce) {
  Simulation quiet(2, 50 * us);
  for (int second = 0; second < 20; ++second) {
    quiet.run(1'000 * ms, never);
    quiet.turnout.note(0, 1'000 * ms);
  }
  EXPECT_EQ(quiet.alone, 0);
}

TEST(Turnout, CallsFewerWhereCoresAreTaken) {
  for (const double cost : {10 * us, 50 * us, 500 * us}) {
    Simulation loaded(2, cost);
    loaded.run(100 * ms, never);
    const int steps = std::max(1, static_cast<int>(slice / cost));
    loaded.run(50 * ms, late_each(steps));
    EXPECT_EQ(loaded.turnout.threads(), 1) << cost;
    EXPECT_FALSE(loaded.turnout.is_good());
    const double before = loaded.waited;
    loaded.run(10'000 * ms, late_each(steps));
    EXPECT_LT(loaded.waited - before, 0.05 * 10'000 * ms) << cost;
    EXPECT_GT(loaded.alone, 0.9 * 10'000 * ms) << cost;
  }
}

TEST(Turnout, CallsAllAgainSoonAfterTheLoadHasGone) {
  Simulation machine(2, 50 * us);
  machine.run(5'000 * ms, late_each(80));
  const double before = machine.alone;
  machine.run(5'000 * ms, never);
  EXPECT_LE(machine.alone - before, 600 * ms);
  EXPECT_TRUE(machine.turnout.is_good());
  machine.run(30 * ms, late_each(80));  // and does not hold the past against them
  machine.run(5'000 * ms, never);
  EXPECT_LE(machine.alone - before, 900 * ms);
}

TEST(Turnout, HalvesAndDoubles) {
  Turnout turnout(8);
  for (const int expected : {4, 2, 1, 1}) {
    for (int i = 0; turnout.threads() > expected && i < 10; ++i) turnout.note(0, 10 * ms);
    EXPECT_EQ(turnout.threads(), expected);
  }
  for (const int expected : {2, 4, 8}) {
    turnout.did_without(1000 * ms);
    EXPECT_EQ(turnout.threads(), expected);
    EXPECT_FALSE(turnout.is_good());
  }
  turnout.did_without(1000 * ms);
  EXPECT_EQ(turnout.threads(), 8);
  turnout.reset(3);
  EXPECT_EQ(turnout.threads(), 3);
  EXPECT_TRUE(turnout.is_good());
}

}  // namespace
}  // namespace gradus::turnout_test
