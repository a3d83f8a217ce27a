/// A tape that stops, pauses and begins again; sources that the target does not depend on; tensors and Variables
/// together.
#include <gtest/gtest.h>
#include <cmath>
#include <optional>
#include <thread>
#include "gradus/distribute/strategy.h"
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/optimizers.h"
#include "tests/errors.h"

namespace gradus::tape_recording_test {
namespace {

TEST(StoppedTape, KnowsWhatItRecordedAndNothingElse) {
  const Tensor x = constant({1.0, 2.0});
  Variable w(constant({3.0, 5.0}), "w");
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = reduce_sum(x * x * w);
  tape.stop();
  tape.stop();
  const Tensor later = y * 2, other = reduce_sum(x * w);
  EXPECT_EQ(other.item(), 13);
  EXPECT_EQ(tape.gradient(y, x).to_vector<float>(), (std::vector<float>{6, 20}));
  EXPECT_EQ(tape.gradient(y, Variables{w})[0].to_vector<float>(), (std::vector<float>{1, 4}));
  for (const Tensor& target : {later, other})
    expect_error<InvalidArgument>([&] { tape.gradient(target, x); }, {"did not record when the target was made"});
  EXPECT_EQ(tape.gradient(y, x).to_vector<float>(), (std::vector<float>{6, 20}));
}

/// The mean of the parts is made when the gradient is asked for.
TEST(StoppedTape, KnowsTheMeanOfParts) {
  const Tensor x = constant({1.0, 2.0});
  Variable w(constant({3.0, 5.0}), "w");
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Loss loss = Loss::mean(x * w);
  loss += Loss::mean(w * 3);
  tape.stop();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(tape.gradient(loss, Variables{w})[0].to_vector<float>(), (std::vector<float>{1, 1.25}));
    EXPECT_EQ(tape.gradient(loss, w).to_vector<float>(), (std::vector<float>{1, 1.25}));
    EXPECT_EQ(tape.gradient(loss, x).to_vector<float>(), (std::vector<float>{0.75, 1.25}));
  }
}

TEST(StoppedTape, KeepsHistoryOfWhatIsComputedLater) {
  const Tensor x = constant(3.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = exp(x) * x;  // not computed yet
  tape.stop();
  const Tensor z = y + 1;
  EXPECT_GT(z.item(), y.item());
  EXPECT_FLOAT_EQ(tape.gradient(y, x).item(), std::exp(3.0F) * 4);
}

/// A call of a function is traced along where a tape records, and its C++ runs at each call.
TEST(StoppedTape, FunctionsAreCalledAsWithoutOne) {
  int runs = 0;
  auto f = function([&](const Tensor& x) {
    ++runs;
    return x * x;
  });
  const Tensor x = constant(3.0);
  f(x), f(x);
  const int traced = runs;
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = f(x);
  EXPECT_EQ(runs, traced + 1);
  {
    const PausedTape pause = tape.stop_recording();
    f(x);
    EXPECT_EQ(runs, traced + 1);
  }
  f(x);
  EXPECT_EQ(runs, traced + 2);
  tape.stop();
  f(x), f(x);
  EXPECT_EQ(runs, traced + 2);
  EXPECT_EQ(tape.gradient(y, x).item(), 6);
}

TEST(StoppedTape, AStrategyRunsWhereATapeHasStopped) {
  const Tensor rows = constant({{1.0}, {2.0}});
  MirroredStrategy strategy;
  GradientTape tape({.persistent = true});
  const auto doubled = [](const Tensor& x) { return x * 2; };
  expect_error<InvalidArgument>([&] { strategy.run(doubled, rows); }, {"tape"});
  tape.stop();
  EXPECT_EQ(strategy.run(doubled, rows).concat().to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST(StoppedTape, AnotherTapeRecordsOn) {
  const Tensor x = constant(2.0);
  GradientTape outer, inner;
  outer.watch(x);
  inner.watch(x);
  const Tensor y = x * x * x;
  inner.stop();
  const Tensor z = y * x;
  EXPECT_EQ(z.item(), 16);
  EXPECT_EQ(inner.gradient(y, x).item(), 12);
  EXPECT_EQ(outer.gradient(z, x).item(), 32);
}

TEST(StoppedTape, AnotherTapeMayBeDestroyedMeanwhile) {
  const Tensor x = constant(2.0);
  std::optional<GradientTape> other(std::in_place);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  tape.stop();
  other.reset();
  const Tensor z = y * y;
  EXPECT_EQ(z.item(), 16);
  EXPECT_EQ(tape.gradient(y, x).item(), 4);
}

TEST(StoppedTape, IsStoppedWithinAFunction) {
  const auto f = function([](const Tensor& x) {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    const Tensor y = x * x * x;
    tape.stop();
    const Tensor z = y * x;
    return tape.gradient(y, x) + z;
  });
  EXPECT_EQ(f(constant(2.0)).item(), 12 + 16);
}

TEST(PausedTape, WhatIsMadeMeanwhileIsAConstant) {
  const Tensor x = constant(3.0);
  Variable w(constant(5.0), "w");
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor factor;
  {
    const PausedTape pause = tape.stop_recording();
    const PausedTape within = tape.stop_recording();
    factor = x * w;
  }
  const Tensor y = factor * x;
  EXPECT_EQ(tape.gradient(y, x).item(), 15);
  expect_error<InvalidArgument>([&] { tape.gradient(y, Variables{w}); }, {"w"});
  EXPECT_EQ(tape.gradient(y * w, Variables{w})[0].item(), 45);
}

TEST(PausedTape, MayEndTheRecording) {
  const Tensor x = constant(3.0);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x;
  {
    const PausedTape pause = tape.stop_recording();
    tape.stop();
  }
  const Tensor z = y * x;
  EXPECT_EQ(tape.gradient(y, x).item(), 6);
  expect_error<InvalidArgument>([&] { tape.gradient(z, x); }, {"did not record"});
  expect_error<InvalidArgument>([&] { auto none = tape.stop_recording(); }, {"records no more"});
}

TEST(ResetTape, BeginsAgain) {
  const Tensor x = constant(3.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  tape.reset();
  expect_error<InvalidArgument>([&] { tape.gradient(y, x); }, {"was not watched"});
  tape.watch(x);
  expect_error<InvalidArgument>([&] { tape.gradient(y, x); }, {"does not depend"});
  EXPECT_EQ(tape.gradient(x * x * x, x).item(), 27);
  expect_error<InvalidArgument>([&] { tape.gradient(y, x); }, {"used up"});
  tape.reset();
  tape.watch(x);
  const Tensor z = y * x;
  tape.stop();
  EXPECT_EQ(tape.gradient(z, x).item(), 9);
  tape.reset();
  tape.watch(x);
  const PausedTape pause = tape.stop_recording();
  expect_error<InvalidArgument>([&] { tape.reset(); }, {"stop_recording() holds"});
}

TEST(StoppedTape, BelongsToItsThread) {
  GradientTape tape;
  std::thread([&] {
    expect_error<InvalidArgument>([&] { tape.stop(); }, {"another thread"});
    expect_error<InvalidArgument>([&] { auto none = tape.stop_recording(); }, {"another thread"});
    expect_error<InvalidArgument>([&] { tape.reset(); }, {"another thread"});
  }).join();
}

TEST(UnconnectedSources, AreNoneIfAsked) {
  const Tensor x = constant(3.0), unused = constant(4.0), unwatched = constant(5.0);
  Variable w(constant(2.0), "w"), idle(constant(1.0), "idle");
  GradientTape tape({.persistent = true});
  tape.watch(x);
  tape.watch(unused);
  const Tensor y = x * x * w;
  const GradientOptions none{.unconnected = Unconnected::none};
  EXPECT_EQ(tape.gradient(y, x, none).item(), 12);
  EXPECT_FALSE(tape.gradient(y, unused, none).defined());
  EXPECT_FALSE(tape.gradient(y * unwatched, unwatched, none).defined());
  EXPECT_FALSE(tape.gradient(y, idle, none).defined());
  const auto [by_unused, by_x] = tape.gradient(y, {unused, x}, none);
  EXPECT_FALSE(by_unused.defined());
  EXPECT_EQ(by_x.item(), 12);
  const Gradients gradients = tape.gradient(y, Variables{idle, w}, none);
  ASSERT_EQ(gradients.size(), 1u);
  EXPECT_EQ(gradients[w].item(), 9);
  expect_error<InvalidArgument>([&] { gradients[idle]; }, {"idle"});
  SGD optimizer({.learning_rate = 0.5});
  optimizer.apply_gradients(gradients);
  EXPECT_EQ(w.value().item(), 2 - 0.5 * 9);
  EXPECT_EQ(idle.value().item(), 1);
}

TEST(Sources, AreTensorsAndVariablesInTheirOrder) {
  const Tensor x = constant({1.0, 2.0}), unused = constant(1.0);
  Variable w(constant({3.0, 5.0}), "w"), idle(constant(1.0), "idle");
  GradientTape tape;
  tape.watch(x);
  tape.watch(unused);
  const Tensor y = reduce_sum(x * x * w);
  const Tensors found = tape.gradient(y, Sources{w, x, idle, unused, w}, {.unconnected = Unconnected::none});
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0].to_vector<float>(), (std::vector<float>{1, 4}));
  EXPECT_EQ(found[1].to_vector<float>(), (std::vector<float>{6, 20}));
  EXPECT_FALSE(found[2].defined() || found[3].defined());
  EXPECT_EQ(found[4].to_vector<float>(), (std::vector<float>{1, 4}));
  expect_error<InvalidArgument>([&] { tape.gradient(y, Sources{w, x}); }, {"used up"});
}

}  // namespace
}  // namespace gradus::tape_recording_test
