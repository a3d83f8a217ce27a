/// What data sets compute while a tape records, or in the midst of a trace, is part of neither, on the same thread.
#include <gtest/gtest.h>
#include <set>
#include <thread>
#include "gradus/data/dataset.h"
#include "gradus/function/function.h"
#include "gradus/function/mode.h"
#include "gradus/function/pending.h"
#include "gradus/function/trace.h"
#include "gradus/gradients/tape.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_state.h"

namespace gradus::apart_test {
namespace {

/// What the user's function of a data set found around it.
struct Found {
  std::set<std::thread::id> threads;
  bool is_outside = true;

  void look() {
    threads.insert(std::this_thread::get_id());
    is_outside = is_outside && !Context::current() && !Trace::current() && !Pending::mine().is_recording() &&
                 !ReadListener::is_there() && current_mode() == CallMode::unsaid && current_scope() == 0 &&
                 !DeviceScope::current().is_named();
  }
  void expect_outside_on_this_thread() const {
    EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
    EXPECT_TRUE(is_outside);
  }
};

/// x, 2x, 3x.
auto multiples(const Tensor& x, Found& found) {
  return data::from_generator({f32, {}}, [x, &found, n = 0]() mutable -> std::optional<Tensor> {
    found.look();
    if (n == 3) return std::nullopt;
    return x * static_cast<float>(++n);
  });
}

TEST(Apart, WhatIsComputedIsNoHistoryOfATape) {
  Found found;
  const Tensor x = constant(3.f);
  const ModeScope mode(CallMode::training);
  const NameScope name("step");
  Tensor slope;
  {
    const DeviceScope scope(cpu(1));
    GradientTape tape;
    tape.watch(x);
    const Tensor squared = x * x;  // waits while the elements are made
    Tensor sum = constant(0.f);
    for (const Tensor y : multiples(x, found)) {
      EXPECT_TRUE(y.node()->is_leaf());
      sum = sum + squared * y;
    }
    EXPECT_TRUE(Pending::mine().is_recording());
    EXPECT_EQ(current_mode(), CallMode::training);
    EXPECT_EQ(scope_path(current_scope()), "step");
    EXPECT_TRUE(DeviceScope::current().is_named());
    slope = tape.gradient(sum, x);
  }
  EXPECT_EQ(slope.item(), 2 * 3 * (3 + 6 + 9)) << "elements are constants";
  found.expect_outside_on_this_thread();
}

TEST(Apart, WhatIsComputedInTheMidstOfATraceIsNoneOfIt) {
  Found found;
  const auto numbers = multiples(constant(3.f), found);
  const auto add_all = function([&](Tensor x) {
    for (const Tensor y : numbers) x = x + y;
    return x;
  });
  EXPECT_EQ(add_all(constant(1.f)).item(), 19);
  found.expect_outside_on_this_thread();
}

/// What is computed apart flushes what waits around, and keeps its history.
TEST(Apart, WhatWaitsAroundKeepsItsHistory) {
  const Tensor x = constant(3.f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  {
    const Apart apart;
    EXPECT_EQ((y * 2.f).item(), 18);
  }
  EXPECT_EQ(tape.gradient(y, x).item(), 6);
}

TEST(Apart, FailuresLeaveEverythingAsItWas) {
  const auto failing =
      data::from_generator({f32, {}}, []() -> std::optional<Tensor> { throw InvalidArgument("no more of them"); });
  const Tensor x = constant(3.f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  EXPECT_THROW(failing.first(), InvalidArgument);
  EXPECT_TRUE(Pending::mine().is_recording());
  EXPECT_EQ(tape.gradient(y, x).item(), 6);
}

/// As many as one thread makes of its own sequence, wherever they are made.
TEST(Apart, RandomNumbersAreThoseOfTheElement) {
  const auto noise = data::range(4).map([](Tensor n) { return cast(n, f32) + random::normal({}); });
  const auto read = [&] {
    std::vector<double> all;
    for (const Tensor y : noise.epoch(0)) all.push_back(y.item());
    return all;
  };
  const std::vector<double> wanted = read();
  std::uint64_t state = random_state_of(5);
  const SeedScope seeds(state);
  const GradientTape tape;
  EXPECT_EQ(read(), wanted);
}

}  // namespace
}  // namespace gradus::apart_test
