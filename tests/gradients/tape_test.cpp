/// GradientTape: what is watched, when it ends, orders above the first, and Variables that are assigned in between.
#include <gtest/gtest.h>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <thread>
#include "gradus/base/threads.h"
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/tensor/device.h"
#include "tests/errors.h"

namespace gradus::tape_test {
namespace {

/// The message of the Error of kind E that `f` throws.
TEST(Tape, GradientOfAWatchedTensor) {
  const Tensor x = constant({1.0, -2.0, 3.0});
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(reduce_sum(x * x * x), x).to_vector<float>(), (std::vector<float>{3, 12, 27}));
}

TEST(Tape, EndsWithTheFirstGradientUnlessPersistent) {
  const Tensor x = constant(3.0);
  GradientTape once, always({.persistent = true});
  once.watch(x);
  always.watch(x);
  const Tensor y = x * x, z = y * x;
  EXPECT_EQ(once.gradient(y, x).item(), 6);
  expect_says(error_of<InvalidArgument>([&] { once.gradient(z, x); }), "persistent");
  EXPECT_EQ(always.gradient(y, x).item(), 6);
  EXPECT_EQ(always.gradient(z, x).item(), 27);
  EXPECT_EQ(always.gradient(y, x).item(), 6);
}

TEST(Tape, APersistentTapeOutlivesAnObservedForward) {
  const Tensor x = constant({1.0, 2.0});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = exp(x), z = reduce_sum(y * y);
  EXPECT_GT(z.item(), 0);  // computes y and z
  const std::vector<float> g = tape.gradient(z, x).to_vector<float>();
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(g[static_cast<std::size_t>(i)], 2 * std::exp(2.0 * (i + 1)), 1e-4);
  const std::vector<float> by_y = tape.gradient(reduce_sum(y), x).to_vector<float>();
  EXPECT_NEAR(by_y[1], std::exp(2.0), 1e-5);
}

TEST(Tape, NestedTapesGiveHigherOrders) {
  const Tensor x = constant(2.0);
  GradientTape third;
  third.watch(x);
  Tensor d2;
  {
    GradientTape second;
    second.watch(x);
    Tensor d1;
    {
      GradientTape first;
      first.watch(x);
      d1 = first.gradient(x * x * x * x, x);
    }
    EXPECT_EQ(d1.item(), 32);
    d2 = second.gradient(d1, x);
  }
  EXPECT_EQ(d2.item(), 48);
  EXPECT_EQ(third.gradient(d2, x).item(), 48);
}

TEST(Tape, SecondOrderCompiledIsThatOfTheLazyCall) {
  const auto second = [](const Tensor& x) {
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    const Tensor g = inner.gradient(reduce_sum(tanh(x) * exp(x)), x);
    return outer.gradient(reduce_sum(g * g), x);
  };
  const Tensor x = random::normal({37}, {.dtype = f64, .seed = 1});
  const auto compiled = function([&](Tensor t) { return second(t); });
  EXPECT_TRUE(bitwise_equal(second(x), compiled(x)));
}

/// Two equal tensors are two tensors: merging them would give a gradient that is twice too large.
TEST(Tape, EqualIntermediatesStayApart) {
  const auto by_a = [](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor a = x * x, b = x * x;
    tape.watch(a);
    return tape.gradient(a * b, a);
  };
  const Tensor x = constant(3.0);
  EXPECT_EQ(by_a(x).item(), 9);
  const auto compiled = function([&](Tensor t) { return by_a(t); });
  EXPECT_EQ(compiled(x).item(), 9);
  EXPECT_EQ(compiled(x).item(), 9);
}

TEST(Tape, OneTensorInTwoPlacesOfAnOp) {
  const auto g = [](const Tensor& x) { return gradient([](const Tensor& t) { return reduce_sum(t * t); }, x); };
  const auto m = [](const Tensor& x) { return gradient([](const Tensor& t) { return reduce_sum(matmul(t, t)); }, x); };
  const Tensor x = constant({{1.0, 2.0}, {3.0, 4.0}});
  EXPECT_EQ(g(x).to_vector<float>(), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(m(x).to_vector<float>(), (std::vector<float>{7, 11, 9, 13}));  // row sums of x^T before, after
  EXPECT_TRUE(bitwise_equal(function([&](Tensor t) { return m(t); })(x), m(x)));
}

TEST(Tape, OneTensorInTwoArgumentsOfAFunction) {
  const auto product = function([](Tensor a, Tensor b) {
    GradientTape tape;
    tape.watch(a);
    return tape.gradient(reduce_sum(a * b), a);
  });
  const Tensor x = constant({2.0, 5.0});
  EXPECT_EQ(product(x, x).to_vector<float>(), (std::vector<float>{2, 5}));  // by a alone
}

TEST(Tape, OneTensorTwiceAmongTheSources) {
  const Tensor x = constant(3.0);
  GradientTape tape;
  tape.watch(x);
  const std::array<Tensor, 2> same = tape.gradient(x * x, {x, x});
  EXPECT_EQ(same[0].item(), 6);  // x * x by x: both places are the one tensor
  EXPECT_EQ(same[1].item(), 6);
  const std::array<Tensor, 2> each = gradient([](const Tensor& a, const Tensor& b) { return a * b; }, {x, x});
  EXPECT_EQ(each[0].item(), 3);  // by the first argument alone, whatever the second is
  EXPECT_EQ(each[1].item(), 3);
}

TEST(Tape, AFunctionCalledUnderATapeIsDifferentiable) {
  const auto f = function([](Tensor x) { return reduce_sum(sin(x) * x); });
  const Tensor x = random::normal({9}, {.dtype = f64, .seed = 2});
  GradientTape tape;
  tape.watch(x);
  const Tensor compiled = tape.gradient(f(x), x);
  const Tensor lazy = gradient([](const Tensor& t) { return reduce_sum(sin(t) * t); }, x);
  EXPECT_TRUE(bitwise_equal(compiled, lazy));
}

TEST(Tape, AVariableThatIsAssignedBeforeTheGradientKeepsItsLink) {
  Variable w(constant(3.0), "w");
  GradientTape tape;
  const Tensor y = w * w;
  w.assign(constant(100.0));
  EXPECT_EQ(tape.gradient(y, w).item(), 6);
  EXPECT_EQ(w.value().item(), 100);
}

TEST(Tape, AVariableThatIsAssignedBetweenTwoReadsGetsTheSumOverBoth) {
  const auto run = [](Variable& w) {
    GradientTape tape;
    const Tensor before = w * 5;
    w.assign(constant(7.0));
    return tape.gradient(before + w * w, w);  // 5 + 2 * 7
  };
  Variable w(constant(3.0)), v(constant(3.0));
  EXPECT_EQ(run(w).item(), 19);
  const auto compiled = function([&] { return run(v); });
  EXPECT_EQ(compiled().item(), 19);
  EXPECT_EQ(v.value().item(), 7);
}

/// What is read of a Variable ends a path; the tensor that it was assigned does not.
TEST(Tape, WhatAVariableWasAssignedKeepsItsGradient) {
  Variable w(constant(3.0)), state(constant(0.0));
  const auto gradients = [&] {
    GradientTape outer({.persistent = true});
    GradientTape tape({.persistent = true});
    const Tensor h = w * w;
    state.assign(h);
    const Tensor read = state;
    const Tensor again = state;
    const Tensor y = h + w + 5 * read + 2 * again;
    return std::array{tape.gradient(y, w), tape.gradient(y, state), tape.gradient(y, read), outer.gradient(y, w)};
  };
  const auto compiled = function([&] { return gradients(); });
  for (const auto& found : {gradients(), gradients(), compiled(), compiled()}) {
    EXPECT_EQ(found[0].item(), 7);
    EXPECT_EQ(found[1].item(), 7);
    EXPECT_EQ(found[2].item(), 7) << "all readers get the same tensor";
    EXPECT_EQ(found[3].item(), 7);
  }
  const Tensor given = constant(4.0);
  Variable copy(given);
  GradientTape tape({.persistent = true});
  tape.watch(given);
  const Tensor y = given * copy;
  EXPECT_EQ(tape.gradient(y, given).item(), 4);
  EXPECT_EQ(tape.gradient(y, copy).item(), 4);
}

/// As above, read in regions, which are traces of their own.
TEST(Tape, WhatAVariableWasAssignedIsReadWithinRegions) {
  Variable w(constant(3.0)), state(constant(0.0));
  const auto gradients = [&] {
    GradientTape tape({.persistent = true});
    const Tensor h = w * w;
    state.assign(h);
    const Tensor sum =
        scan([&](Tensor s, Tensor x) { return std::pair{s + x * state, x}; }, constant(0.0), constant({1.0, 2.0}))
            .first;
    const Tensor either = cond(sum > 0, [&] { return state * 4; }, [&] { return state * 1; });
    const Tensor y = h + w + sum + either;
    return std::array{tape.gradient(y, w), tape.gradient(y, state)};
  };
  const auto compiled = function([&] { return gradients(); });
  for (const auto& found : {gradients(), gradients(), compiled(), compiled()}) {
    EXPECT_EQ(found[0].item(), 7);
    EXPECT_EQ(found[1].item(), 7);
  }
}

/// Each path runs the C++ again and meets what it has made before.
TEST(Tape, WhatAVariableWasAssignedMayDecide) {
  Variable w(constant(3.0)), state(constant(0.0));
  const auto compiled = function([&](Tensor x) {
    GradientTape tape({.persistent = true});
    state.assign(w * x);
    const Tensor part = cond(x > 0, [&] { return state * 1; }, [&] { return state * 2; });
    if (reduce_sum(part) > 10) return std::array{tape.gradient(part * 3, state), tape.gradient(state * w, w)};
    return std::array{tape.gradient(part, state), tape.gradient(state * w, w)};
  });
  for (const double x : {1.0, 5.0, -1.0, 2.0, 7.0, -2.0}) {
    const auto found = compiled(constant(x));
    EXPECT_EQ(found[0].item(), x > 4 ? 3 : x > 0 ? 1 : 2) << x;
    EXPECT_EQ(found[1].item(), 3 * x) << x;
  }
  EXPECT_EQ(compiled.explain().paths, 2);
}

TEST(Tape, AnAssignedVariableIsOneTensorToAllWhoReadIt) {
  Variable w(constant({3.0, 4.0}));
  GradientTape tape({.persistent = true});
  w.assign(w * 2);
  const Tensor t = w;
  const Tensor y = t * w;
  EXPECT_EQ(tape.jacobian(y, w).to_vector<float>(), (std::vector<float>{12, 0, 0, 16}));
  EXPECT_EQ(tape.gradient(reduce_sum(y), t).to_vector<float>(), (std::vector<float>{12, 16}));
  EXPECT_EQ(t.node(), w.value().node());

  const auto of_argument = [&](Tensor x) {
    GradientTape outer({.persistent = true});
    outer.watch(x);
    w.assign(x);
    const Tensor z = w * w;
    const Tensor sum = scan([&](Tensor s, Tensor i) { return std::pair{s + i * w, i}; }, zeros({2}), ones({3})).first;
    return std::array{outer.jacobian(z, w), outer.gradient(reduce_sum(sum), w)};
  };
  const auto compiled = function(of_argument);
  for (const auto& found : {of_argument(constant({1.0, 2.0})), compiled(constant({1.0, 2.0}))}) {
    EXPECT_EQ(found[0].to_vector<float>(), (std::vector<float>{2, 0, 0, 4}));
    EXPECT_EQ(found[1].to_vector<float>(), (std::vector<float>{3, 3}));
  }
  w.assign(constant({6.0, 8.0}));

  GradientTape chosen({.watch_accessed_variables = false});
  w.assign(w * 2);
  chosen.watch(w);
  EXPECT_EQ(chosen.gradient(reduce_sum(w * w), w).to_vector<float>(), (std::vector<float>{24, 32}));
}

/// What it is assigned may be what a call begins with, which no op has made.
TEST(Tape, AVariableThatIsAssignedAnotherIsOneTensorToAllWhoReadIt) {
  const Variable v(constant({1.0, 2.0}));
  Variable w(constant({3.0, 4.0}));
  const auto slopes = [&] {
    const Tensor x = v;
    GradientTape tape({.persistent = true});
    tape.watch(x);
    w.assign(x);
    const Tensor held = w, z = held * w;
    return std::array{tape.jacobian(z, w), tape.gradient(reduce_sum(z), held)};
  };
  const auto compiled = function(slopes);
  for (const auto& found : {slopes(), compiled()}) {
    EXPECT_EQ(found[0].to_vector<float>(), (std::vector<float>{2, 0, 0, 4}));
    EXPECT_EQ(found[1].to_vector<float>(), (std::vector<float>{2, 4}));
  }
}

TEST(Tape, Unconnected) {
  Variable w(constant({1.0, 2.0}), "w"), unread(constant({{1.0, 2.0}}), "unread");
  expect_says(error_of<InvalidArgument>([&] {
                GradientTape tape;
                tape.gradient(reduce_sum(w * 2), unread);
              }),
              "unread");
  GradientTape tape;
  const Gradients g = tape.gradient(reduce_sum(w * 2), Variables{w, unread}, {.unconnected = Unconnected::zero});
  EXPECT_EQ(g[w].to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_EQ(g[unread].shape(), (Shape{1, 2}));
  EXPECT_EQ(g[unread].to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(Tape, StoppedGradientsAreUnconnected) {
  const Tensor x = constant(2.0);
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(x * stop_gradient(x), x).item(), 2);
}

TEST(Tape, RefusesWhatItCannotDifferentiate) {
  const Tensor x = constant({1.0, 2.0}), n = constant({1, 2});
  expect_says(error_of<InvalidArgument>([&] { GradientTape().gradient(reduce_sum(x), x); }), "not watched");
  expect_says(error_of<InvalidArgument>([&] {
                GradientTape tape;
                tape.watch(x);
                tape.gradient(x * 2, x);
              }),
              "not a scalar");
  expect_says(error_of<InvalidArgument>([&] { GradientTape().watch(n); }), "i32");
  expect_says(error_of<InvalidArgument>([&] {
                GradientTape tape;
                tape.watch(x);
                tape.gradient(x * 2, x, {.output_gradients = constant({1.0, 2.0, 3.0})});
              }),
              "output_gradients");
  expect_says(error_of<InvalidArgument>([&] { GradientTape().gradient(Tensor(), x); }), "empty");
}

/// Watched by a tape that is gone, or known to it as a Variable's value: to another tape it is any tensor.
TEST(Tape, ASourceOfADeadTapeIsToldOf) {
  const Tensor x = constant({1.0, 2.0});
  const Variable w(constant({3.0, 4.0}), "w");
  Tensor read;
  GradientTape alive;
  {
    GradientTape dead;
    dead.watch(x);
    read = w * x;
  }
  expect_says(error_of<InvalidArgument>([&] { alive.gradient(reduce_sum(x * x), x); }), "was not watched");
  Tensor before;
  {
    GradientTape dead;
    before = w * x;
  }
  GradientTape later;
  later.watch(x);
  expect_says(error_of<InvalidArgument>([&] { later.gradient(reduce_sum(before), w); }),
              "does not depend on variable w");
  GradientTape other;
  other.watch(x);
  EXPECT_EQ(other.gradient(reduce_sum(x * read), x).to_vector<float>(), (std::vector<float>{3, 8}));
}

TEST(Tape, OutputGradientsAreTheCotangent) {
  const Tensor x = constant({1.0, 2.0});
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(x * x, x, {.output_gradients = constant({10.0, 100.0})}).to_vector<float>(),
            (std::vector<float>{20, 400}));
}

TEST(Tape, VariablesCanBeLeftUnwatched) {
  Variable w(constant(2.0), "w");
  GradientTape tape({.watch_accessed_variables = false});
  const Tensor y = w * w;
  expect_says(error_of<InvalidArgument>([&] { tape.gradient(y, w); }), "w");
}

TEST(Tape, WhatWasMadeBeforeTheTapeIsConstant) {
  const Tensor x = constant(3.0), before = x * x;
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(before * x, x).item(), 9);
}

/// In bf16, 1 added to 256 is 256.
TEST(Tape, ManyTermsOfANarrowSourceAreRoundedOnce) {
  const auto times = [](const Tensor& w, int n) {
    Tensor y = w;
    for (int i = 1; i < n; ++i) y = y + w;
    return y;
  };
  for (const DType t : {f16, bf16})
    for (const int n : {1, 2, 3, 1000}) {
      Variable w(constant(1.0, t), "w"), assigned(constant(1.0, t), "assigned");
      const auto by_variable = [&] {
        GradientTape tape;
        const Tensor read = w;
        return tape.gradient(times(read, n), w);
      };
      const auto by_two_reads = [&] {
        GradientTape tape;
        const Tensor before = times(assigned.value(), n);
        assigned.assign(constant(2.0, t));
        return tape.gradient(before + times(assigned.value(), n), assigned);
      };
      const auto by_tensor = gradient([&](const Tensor& x) { return times(x, n); }, constant(1.0, t));
      const auto rounded = [&](double x) { return cast(constant(x), t); };
      EXPECT_TRUE(bitwise_equal(by_tensor, rounded(n))) << t << ", " << n;
      EXPECT_TRUE(bitwise_equal(by_variable(), rounded(n))) << t << ", " << n;
      EXPECT_TRUE(bitwise_equal(by_two_reads(), rounded(2 * n))) << t << ", " << n;
      if (n > 3) continue;
      EXPECT_TRUE(bitwise_equal(function([&] { return by_variable(); })(), rounded(n))) << t << ", " << n;
      EXPECT_TRUE(bitwise_equal(function([&] { return by_two_reads(); })(), rounded(2 * n))) << t << ", " << n;
    }
}

/// vjp(c * G) = c * vjp(G), at every scale.
TEST(Tape, IsLinearInTheCotangent) {
  const Tensor x = random::normal({33}, {.dtype = f64, .seed = 3});
  const auto by = [&](double scale) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = log(exp(x) + 1.0) * tanh(x);
    return tape.gradient(y, x, {.output_gradients = full({33}, scale, f64)});
  };
  const Tensor one = by(1);
  for (double scale : {1e-12, 1e-3, 1e3, 1e12})
    EXPECT_LT(max_abs_difference(by(scale) / full({}, scale, f64), one), 1e-14);
}

/// Threads that destroy a tape while its owner reads Variables, after that, or after the owner has ended.
TEST(Tape, MayDieOnAnotherThread) {
  const Variable v(constant(1.0)), w(constant(2.0));
  for (const bool is_used_up : {false, true}) {
    auto tape = std::make_unique<GradientTape>();
    const Tensor y = v.value() * 3;
    if (is_used_up) { EXPECT_EQ(tape->gradient(y, v).item(), 3); }
    std::thread([&] { tape.reset(); }).join();
    EXPECT_EQ((w.value() * 3).item(), 6);
    GradientTape after;
    EXPECT_EQ(after.gradient(w.value() * w.value(), w).item(), 4);
  }
  std::unique_ptr<GradientTape> left;
  std::thread([&] {
    left = std::make_unique<GradientTape>();
    EXPECT_EQ((v.value() + 1).item(), 2);
  }).join();
  left.reset();
  EXPECT_EQ((w.value() * 3).item(), 6);
}

TEST(Tape, GivesItsGradientOnAnotherThread) {
  const Variable v(constant(3.0));
  GradientTape tape;
  const Tensor y = v.value() * v.value();
  double slope = 0, of_own = 0;
  std::thread([&] {
    slope = tape.gradient(y, v).item();
    GradientTape own;  // its recording belongs to this thread
    const Tensor z = v.value() * 5;
    EXPECT_EQ(z.item(), 15);
    of_own = own.gradient(z, v).item();
  }).join();
  EXPECT_EQ(slope, 6);
  EXPECT_EQ(of_own, 5);
}

TEST(Tape, ManyDieElsewhereWhileTheirThreadReads) {
  const Variable v(constant(1.0));
  std::mutex guard;
  std::vector<std::unique_ptr<GradientTape>> given;
  std::atomic<bool> done = false;
  std::thread destroyer([&] {
    while (!done.load()) {
      std::vector<std::unique_ptr<GradientTape>> taken;
      const std::lock_guard lock(guard);
      taken.swap(given);
    }
  });
  for (int i = 0; i < 2000; ++i) {
    auto tape = std::make_unique<GradientTape>();
    EXPECT_EQ((v.value() + i).item(), 1 + i);
    const std::lock_guard lock(guard);
    given.push_back(std::move(tape));
  }
  done = true;
  destroyer.join();
  given.clear();
  GradientTape tape;
  EXPECT_EQ(tape.gradient(v.value() * 2, v).item(), 2);
}

/// A scope that moves to another thread and ends there prints a notice and changes neither thread.
TEST(Scopes, SayThatTheyEndElsewhere) {
  const auto said = [](auto make) {
    testing::internal::CaptureStderr();
    std::thread([&] {
      auto scope = make();
      std::thread([&] { scope.reset(); }).join();
    }).join();
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(said([] { return std::make_unique<DeviceScope>(cpu(0)); }).find("a DeviceScope ended on another thread"),
            std::string::npos);
  EXPECT_NE(said([] { return std::make_unique<OneThread>(); }).find("OneThread ended on another thread"),
            std::string::npos);
  EXPECT_EQ(said([] { return std::make_unique<GradientTape>(); }), "");
}

TEST(Functional, ValueAndGradient) {
  const auto [y, g] = value_and_gradient([](const Tensor& x) { return reduce_sum(x * x); }, constant({1.0, 2.0}));
  EXPECT_EQ(y.item(), 5);
  EXPECT_EQ(g.to_vector<float>(), (std::vector<float>{2, 4}));
  Variable w(constant(3.0));
  const LossAndGradients both = value_and_gradient([&] { return Loss::of(w * w); }, Variables{w});
  EXPECT_EQ(both.loss.item(), 9);
  EXPECT_EQ(both.gradients[0].item(), 6);
}

}  // namespace
}  // namespace gradus::tape_test
