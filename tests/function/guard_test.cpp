/// C++ branches on tensor values in traced functions: guards, paths, what segments share, effects after the leaf.
#include <gtest/gtest.h>
#include <atomic>
#include <cmath>
#include <random>
#include <stdexcept>
#include <thread>
#include "gradus/function/function.h"
#include "gradus/function/variable.h"
#include "gradus/gradients/functional.h"
#include "gradus/gradients/tape.h"
#include "gradus/graph/graph.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/numeric.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_key.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus::guard_test {
namespace {

std::size_t count_of(const std::string& text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

const Tensor positive = constant({1.0, 2.0, 3.0}), negative = constant({-1.0, -2.0, -3.0});

TEST(Guard, EachPathIsTracedOnceAndBothStayCached) {
  int runs = 0;
  const auto f = function([&](Tensor x) {
    ++runs;
    if (reduce_sum(x) > 0) return x * 2;
    return x / 2;
  });
  EXPECT_EQ(f.explain().paths, 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(bitwise_equal(f(positive), constant({2.0, 4.0, 6.0})));
    EXPECT_EQ(f.explain().paths, i == 0 ? 1 : 2);
    EXPECT_TRUE(bitwise_equal(f(negative), constant({-0.5, -1.0, -1.5})));
  }
  EXPECT_EQ(runs, 2);
  const Explanation e = f.explain();
  EXPECT_EQ(e.paths, 2);
  EXPECT_EQ(e.variants, 1);
  EXPECT_NE(text(e).find("1 variant, 2 paths"), std::string::npos) << e;
}

TEST(Guard, AFunctionWithoutBranchesHasOnePathAVariant) {
  const auto f = function([](Tensor x, int) { return x + 1; });
  f(positive, 1);
  f(positive, 2);
  EXPECT_EQ(f.explain().paths, 2);
}

TEST(Guard, SegmentsShareWhatTheyCompute) {
  const Tensor w = random::normal({3, 3}, {.seed = 1});
  const auto body = [&](Tensor x) {
    const Tensor h = matmul(reshape(x, {1, 3}), w);
    if (reduce_sum(h) > 0) return reduce_sum(h * h);
    return reduce_sum(h * 3);
  };
  const auto f = function([&](Tensor x) { return body(x); });
  for (const Tensor& x : {positive, negative}) EXPECT_TRUE(bitwise_equal(f(x), body(x)));
  const Explanation e = f.explain();
  EXPECT_EQ(count_of(e.graph(), "matmul"), 1u) << e.graph();
  EXPECT_EQ(count_of(e.graph(), "# segment"), 3u) << e.graph();
  EXPECT_NE(e.graph().find("guard %"), std::string::npos) << e.graph();
  const Graph parsed = parse_graph(e.graph());
  verify(parsed);
  EXPECT_EQ(parsed.outputs.size(), 3u) << "a predicate and two results";
}

TEST(Guard, OfAPathThatNeedsMoreThanWasHandedOnTheRestIsComputedAgain) {
  const auto body = [](Tensor x) {
    const Tensor a = exp(x), b = tanh(a) + 1;
    if (reduce_sum(b) > 4) return a;
    return b * sin(a);
  };
  for (const bool first : {true, false}) {
    const auto f = function(body);
    for (const Tensor& x : {first ? positive : negative, first ? negative : positive, positive, negative})
      EXPECT_TRUE(bitwise_equal(f(x), body(x)));
    EXPECT_EQ(f.explain().paths, 2);
  }
}

TEST(Guard, NestedAndInSequence) {
  const auto body = [](Tensor x) {
    Tensor y = x;
    if (reduce_sum(x) > 0) {
      y = y * 3;
      if (reduce_max(y) > 8) y = y - 1;
      else y = y + 1;
    }
    if (reduce_min(y) < -2) y = square(y);
    return y + x;
  };
  const auto f = function(body);
  for (int round = 0; round < 2; ++round)
    for (const Tensor& x : {positive, negative, positive / 3.0f, negative / 3.0f, constant({9.0, -3.0, 0.0})})
      EXPECT_TRUE(bitwise_equal(f(x), body(x)));
  EXPECT_EQ(f.explain().paths, 5);
}

TEST(Guard, ALoopWhoseLengthDependsOnValues) {
  const auto newton = [](Tensor a) {
    Tensor r = a;
    while (abs(r * r - a) > 1e-5f) r = (r + a / r) / 2;
    return r;
  };
  const auto f = function(newton);
  for (double a : {2.0, 3.0, 100.0, 2.0, 1.0, 1e4}) {
    const Tensor x = constant(a);
    EXPECT_TRUE(bitwise_equal(f(x), newton(x))) << a;
    EXPECT_NEAR(f(x).item(), std::sqrt(a), 1e-3 * a);
  }
  EXPECT_EQ(f.explain().variants, 1);
}

TEST(Guard, OnWhatIsMadeWithNaNAsAConstantIsTheSameInEachRun) {
  int runs = 0;
  const auto f = function([&](Tensor x) {
    ++runs;
    if (median(x) > 0) return x * 2;
    return x / 2;
  });
  for (int i = 0; i < 3; ++i)
    for (const Tensor& x : {positive, negative}) f(x).observed();
  const Explanation e = f.explain();
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(e.variants, 1);
  EXPECT_EQ(e.paths, 2);
  EXPECT_TRUE(e.retraces.empty()) << e;
}

TEST(Guard, TheSameQuestionIsAskedOnce) {
  const auto f = function([](Tensor x) {
    const Tensor is_positive = reduce_sum(x) > 0;
    Tensor y = x;
    for (int i = 0; i < 5; ++i)
      if (is_positive) y = y + 1;
    return y;
  });
  EXPECT_EQ(f(positive).to_vector<float>()[0], 6);
  EXPECT_EQ(f(negative).to_vector<float>()[0], -1);
  EXPECT_EQ(f.explain().paths, 2);
  EXPECT_EQ(count_of(f.explain().graph(), "guard"), 1u);
}

TEST(Guard, APredicateThatDependsOnNothingIsNoGuard) {
  const auto f = function([](Tensor x) {
    const Tensor limit = full({2}, 3), other = constant({1.0, 2.0});
    if (reduce_sum(limit) > 5) x = x + 1;
    if (reduce_sum(other * 2) > 100) x = x * 1000;
    return x;
  });
  EXPECT_EQ(f(constant(1.0)).item(), 2);
  EXPECT_EQ(f(constant(5.0)).item(), 6);
  EXPECT_EQ(f.explain().paths, 1);
  EXPECT_EQ(f.explain().dispatches, 2) << "one a call: constants are computed outside of the function";
}

TEST(Guard, DependsOnVariablesAndCommitsAfterTheLeaf) {
  Variable w(constant({1.0, 1.0}), "w"), steps(constant(0), "steps");
  const auto step = function([&](Tensor x) {
    steps.assign_add(constant(1));
    w.assign_add(x);
    if (reduce_sum(w) > 5) w.assign(w.value() / 2);  // what was just assigned, not yet committed
    return w.value();
  });
  double expected = 2;
  for (int i = 0; i < 8; ++i) {
    expected += 2;
    if (expected > 5) expected /= 2;
    EXPECT_EQ(reduce_sum(step(ones({2}))).item(), expected) << i;
    EXPECT_EQ(reduce_sum(w).item(), expected) << i;
  }
  EXPECT_EQ(steps.value().item(), 8);
  EXPECT_EQ(step.explain().paths, 2);
}

TEST(Guard, AFailureOnAnyPathChangesNothing) {
  Variable w(ones({3}), "w");
  const auto f = function([&](Tensor indices, Tensor x) {
    w.assign(w.value() * 2);
    const Tensor picked = gather(x, indices);
    if (reduce_sum(picked) > 0) w.assign(gather(w, indices + 1));
    return w.value();
  });
  const Tensor x = constant({1.0, 2.0, 3.0});
  for (int round = 0; round < 2; ++round) {  // while tracing, and compiled
    EXPECT_THROW(f(constant({0, 1, 7}), x), OutOfRange) << "in the predicate";
    EXPECT_THROW(f(constant({0, 1, 2}), x), OutOfRange) << "in the leaf";
    EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>(3, static_cast<float>(1 << round))));
    f(constant({0, 1, 1}), -x);
  }
}

/// Neither the paths that are not taken nor a call that the user's own exception ends assign anything, in functions of
/// functions too.
TEST(Guard, OnlyThePathThatIsTakenToItsEndAssigns) {
  Variable positives(constant(0), "positives"), others(constant(0), "others"), calls(constant(0), "calls");
  const auto inner = function([&](Tensor x) {
    if (reduce_sum(x) > 0) {
      positives.assign_add(constant(1));
      return x * 2;
    }
    others.assign_add(constant(1));
    return x * 3;
  });
  bool throws = true;
  const auto outer = function([&](Tensor x) {
    const Tensor y = inner(x);
    calls.assign_add(constant(1));
    if (reduce_sum(y) > 100) {
      if (throws) throw std::runtime_error("the user's");
      return inner(-y);
    }
    return y;
  });
  const auto expect_counts = [&](int p, int o, int c) {
    EXPECT_EQ(positives.value().item(), p);
    EXPECT_EQ(others.value().item(), o);
    EXPECT_EQ(calls.value().item(), c);
  };
  outer(constant({1.0}));
  outer(constant({-1.0}));
  expect_counts(1, 1, 2);
  EXPECT_THROW(outer(constant({60.0})), std::runtime_error);
  expect_counts(1, 1, 2);
  throws = false;
  for (int call = 1; call <= 2; ++call) {  // traced, and compiled
    EXPECT_EQ(outer(constant({60.0})).to_vector<float>()[0], -360);
    expect_counts(1 + call, 1 + call, 2 + call);
  }
  outer(constant({1.0}));
  expect_counts(4, 3, 5);
}

TEST(Guard, AGuardedStepOverwritesItsVariablesInPlace) {
  Variable w(zeros({10000}), "w"), skipped(constant(0), "skipped");
  const auto step = function([&](Tensor x) {
    GradientTape tape;
    const Tensor loss = reduce_sum(square(w.value() - x));
    const Tensor g = tape.gradient(loss, w);
    if (reduce_sum(square(g)) < 1e9f) w.assign_sub(g * 0.25f);
    else skipped.assign_add(constant(1));
  });
  const Tensor x = ones({10000});
  step(x);
  step(x * 1e6f);
  step(x);
  const void* memory = w.value().host();
  for (int i = 0; i < 4; ++i) {
    step(i % 2 ? x * 1e6f : x);
    EXPECT_EQ(w.value().host(), memory) << i;
  }
  EXPECT_EQ(skipped.value().item(), 3);
  const Tensor held = w.value();
  const std::vector<float> before = held.to_vector<float>();
  step(x);
  EXPECT_EQ(held.to_vector<float>(), before);
  EXPECT_NE(w.value().to_vector<float>(), before);
}

TEST(Guard, OnRandomNumbersDrawsOneKeyACall) {
  const auto body = [](Tensor x) {
    const Tensor noise = random::uniform({});
    Tensor y = x * noise;
    if (noise > 0.5f) y = y + random::uniform({});
    else y = y - random::uniform({}) - random::uniform({});
    return y;
  };
  set_seed(7);
  const auto compiled = function(body);
  std::vector<double> wanted;
  for (int i = 0; i < 20; ++i) wanted.push_back(compiled(constant(1.0)).item());
  EXPECT_EQ(compiled.explain().paths, 2);
  set_seed(7);
  const auto eager = function(body, {.run_eagerly = true});
  for (double value : wanted) EXPECT_EQ(eager(constant(1.0)).item(), value);
}

TEST(Guard, WithSizesThatVary) {
  int runs = 0;
  const auto f = function(
      [&](Tensor x) {
        ++runs;
        const Tensor rows = reduce_sum(x, {.axis = {1}});
        if (reduce_max(rows) > 10) return reduce_sum(rows.rows(1, 3));
        return reduce_mean(square(rows));
      },
      {.input_signature = {{f32, {any_size, 2}}}});
  const auto call_all = [&] {
    for (int n : {3, 8, 5, 40}) {
      EXPECT_EQ(f(ones({n, 2})).item(), 4);
      EXPECT_EQ(f(full({n, 2}, 6)).item(), 24);
    }
  };
  call_all();
  EXPECT_EQ(f(ones({1, 2})).item(), 4);
  EXPECT_THROW(f(full({2, 2}, 6)), OutOfRange) << "the bound of the other path";
  const int before = runs;
  call_all();
  EXPECT_EQ(runs, before) << "each size is looked at once on each path";
  EXPECT_EQ(f.explain().paths, 2);
  EXPECT_EQ(f.explain().variants, 1);
}

TEST(Guard, APathThatMustKnowTheSizesFixesThem) {
  const auto f = function([](Tensor x) {
    if (reduce_sum(x) > 0) return reduce_sum(x);
    return reduce_sum(reshape(x, {2, -1})[1]);
  });
  for (int n : {2, 4, 6, 4}) {
    EXPECT_EQ(f(ones({n})).item(), n);
    EXPECT_EQ(f(full({n}, -1)).item(), -n / 2);
  }
  EXPECT_THROW(f(full({5}, -1)), InvalidArgument);
  EXPECT_EQ(f(ones({5})).item(), 5);
}

TEST(Guard, InAFunctionCalledFromAnother) {
  const auto inner = function([](Tensor x) {
    if (reduce_sum(x) > 0) return x * x;
    return -x;
  });
  const auto outer = function([&](Tensor x) { return inner(x) + inner(x - 2); });
  for (const Tensor& x : {positive, negative, constant({1.0, 1.0, 1.0})}) {
    const auto want = [](Tensor v) { return reduce_sum(v).item() > 0 ? v * v : -v; };
    EXPECT_TRUE(bitwise_equal(outer(x), want(x) + want(x - 2)));
  }
  EXPECT_EQ(outer.explain().paths, 2);
  EXPECT_EQ(inner.explain().variants, 0) << "traced along";
}

TEST(Guard, GradientsOfEveryOrderThroughIt) {
  const auto body = [](Tensor x) {
    if (x > 1) return x * x * x * x;
    return sin(x) * x;
  };
  const auto f = function(body);
  const auto d1 = function([&](Tensor x) { return gradient(f, x); });
  const auto d2 = function([&](Tensor x) { return gradient([&](Tensor v) { return gradient(f, v); }, x); });
  const auto d3 = function([&](Tensor x) {
    return gradient([&](Tensor u) { return gradient([&](Tensor v) { return gradient(f, v); }, u); }, x);
  });
  for (int round = 0; round < 2; ++round)
    for (double at : {2.0, 0.5, 3.0, -0.25}) {
      const Tensor x = constant(at, f64);
      const double s = std::sin(at), c = std::cos(at);
      EXPECT_NEAR(d1(x).item(), at > 1 ? 4 * std::pow(at, 3) : s + at * c, 1e-12);
      EXPECT_NEAR(d2(x).item(), at > 1 ? 12 * at * at : 2 * c - at * s, 1e-12);
      EXPECT_NEAR(d3(x).item(), at > 1 ? 24 * at : -3 * s - at * c, 1e-12);
      EXPECT_TRUE(bitwise_equal(d1(x), gradient(body, x)));
    }
  EXPECT_EQ(d3.explain().paths, 2);
}

TEST(Guard, WhenCalledUnderATapeItIsTracedAlong) {
  const auto f = function([](Tensor x) {
    if (reduce_sum(x) > 0) return x * 2;
    return x / 2;
  });
  auto sum_of = [&](Tensor x) { return reduce_sum(f(x)); };
  EXPECT_TRUE(bitwise_equal(gradient(sum_of, positive), full({3}, 2)));
  EXPECT_TRUE(bitwise_equal(gradient(sum_of, negative), full({3}, 0.5)));
}

TEST(Guard, ATapeInsideAroundTheBranchAndBranchesOnGradients) {
  Variable w(constant({3.0, -1.0}), "w");
  const auto body = [&](Tensor x) {
    GradientTape tape;
    Tensor loss = reduce_sum(square(w.value() * x));
    if (loss > 10) loss = loss / 10;
    const Tensor g = tape.gradient(loss, w);
    if (reduce_sum(abs(g)) > 1) w.assign_sub(g * 0.1f);
    else w.assign_sub(g);
    return loss;
  };
  const auto step = function([&](Tensor x) { return body(x); });
  std::vector<float> traced, lazy;
  for (int pass = 0; pass < 2; ++pass) {
    w.assign(constant({3.0, -1.0}));
    for (int i = 0; i < 12; ++i) {
      const Tensor x = constant({i % 3 - 1.0f, i % 4 * 3.0f});
      (pass ? lazy : traced).push_back(static_cast<float>((pass ? body(x) : step(x)).item()));
      for (float value : w.value().to_vector<float>()) (pass ? lazy : traced).push_back(value);
    }
  }
  EXPECT_EQ(traced, lazy);
  EXPECT_GE(step.explain().paths, 3);
}

TEST(Guard, EqualTensorsOfOneRunAreNeverOne) {
  const auto f = function([](Tensor x) {
    GradientTape tape;
    const Tensor a = x * x, b = x * x, one = constant(1.0), two = constant(1.0);
    tape.watch(a);
    tape.watch(one);
    const Tensor y = x > 0 ? a * b * one * two : a + b + one * two;
    const auto [da, done] = tape.gradient(y, {a, one});
    return da * 1000 + done;
  });
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(f(constant(2.0)).item(), 4 * 1000 + 16);
    EXPECT_EQ(f(constant(-2.0)).item(), 1 * 1000 + 1);
  }
}

TEST(Guard, CppStateThatHasChangedIsNoticedWhenAnotherPathIsTraced) {
  Tensor factor = constant(2.0);
  const auto f = function([&](Tensor x) {
    const Tensor y = x * factor;
    if (y > 0) return y + 1;
    return y - 1;
  });
  EXPECT_EQ(f(constant(3.0)).item(), 7);
  factor = constant(10.0);
  EXPECT_EQ(f(constant(3.0)).item(), 7) << "a captured tensor is a constant";
  EXPECT_EQ(f(constant(-3.0)).item(), -31) << "the guard is another one now";
  EXPECT_EQ(f(constant(3.0)).item(), 31);
  const Explanation e = f.explain();
  ASSERT_EQ(e.retraces.size(), 1u);
  EXPECT_NE(e.retraces[0].reason.find("captured tensor"), std::string::npos) << e.retraces[0].reason;
}

TEST(Guard, TooManyOfThemNameTheOpsThatAreMadeForIt) {
  const auto endless = function([](Tensor x) {
    while (reduce_sum(x) > 0) x = x + 1;
    return x;
  });
  const auto many = function([](Tensor x) {
    Tensor left = x;
    while (left > 0) left = left - 1;
    return left;
  });
  const auto expect_named = [](const auto& call) {
    try {
      call();
      ADD_FAILURE() << "accepted";
    } catch (const ResourceExhausted& error) {
      for (const char* name : {"cond", "while_loop", "scan"})
        EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  };
  expect_named([&] { endless(positive); });
  expect_named([&] {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(many(constant(i * 1.0f)).item(), 0);
  });
  EXPECT_EQ(many(constant(5.0)).item(), 0) << "what is compiled stays of use";
}

TEST(Guard, ACallBeginsAnewIfAVariableItAssignsHasChangedSinceItWasRead) {
  Variable w(constant(1.0), "w");
  int runs = 0;
  const auto f = function([&](Tensor x) {
    const bool is_positive(w.value() > 0);
    if (++runs == 1) std::thread([&] { w.assign(constant(5.0)); }).join();  // not traced: another thread
    if (is_positive) w.assign(w.value() + x);
    return w.value();
  });
  EXPECT_EQ(f(constant(1.0)).item(), 6) << "neither the old value nor a lost assignment";
  EXPECT_EQ(f(constant(1.0)).item(), 7);
  EXPECT_EQ(runs, 1);
}

TEST(Guard, SeveralThreadsCallOneFunction) {
  std::atomic<int> runs = 0;
  const auto f = function([&](Tensor x) {
    ++runs;
    Tensor y = x;
    for (int bit = 0; bit < 3; ++bit)
      if (x[bit] > 0) y = y * 2;
      else y = y + 1;
    return reduce_sum(y);
  });
  std::vector<Tensor> inputs;
  std::vector<double> wanted;
  for (int k = 0; k < 8; ++k) {
    std::vector<float> values;
    for (int bit = 0; bit < 3; ++bit) values.push_back(k >> bit & 1 ? 1.0f : -1.0f);
    inputs.push_back(from_values(values, {3}));
    double sum = 0;
    for (double y : values) {
      for (int bit = 0; bit < 3; ++bit) y = k >> bit & 1 ? y * 2 : y + 1;
      sum += y;
    }
    wanted.push_back(sum);
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 60; ++i) {
        const std::size_t k = random() % 8;
        wrong += f(inputs[k]).item() != wanted[k];
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(f.explain().variants, 1);
  EXPECT_EQ(f.explain().paths, 8);
  EXPECT_EQ(runs, 8);
}

/// A program of random steps with branches; the same for the same seed.
Tensor random_program(unsigned seed, Tensor x, Variable& state) {
  std::mt19937 random(seed);
  std::vector<Tensor> values{x, state.value()};
  const auto any = [&] { return values[random() % values.size()]; };
  for (int i = 0; i < 12; ++i) {
    const Tensor a = any(), b = any();
    switch (random() % 7) {
      case 0: values.push_back(a + b); break;
      case 1: values.push_back(tanh(a * b)); break;
      case 2: values.push_back(a - 0.5f); break;
      case 3: values.push_back(reduce_sum(a, {.keepdims = true}) * 0.1f + b); break;
      case 4: values.push_back(sin(a) * constant({1.0, -2.0, 0.5})); break;
      case 5:
        if (reduce_sum(a) > reduce_sum(b)) values.push_back(a * 2);
        else values.push_back(cos(b));
        break;
      default:
        if (reduce_max(a) > 0.25f) state.assign(tanh(b));
        values.push_back(state);
    }
  }
  return values.back() + any();
}

TEST(Guard, AnyProgramGivesTheBitsOfTheLazyOneInAnyOrderOfPaths) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Variable traced(constant({0.5, -0.5, 0.25}), "traced"), lazy(traced);
    const auto f = function([&](Tensor x) { return random_program(seed, x, traced); });
    std::mt19937 random(1000 + seed);
    for (int call = 0; call < 6; ++call) {
      const Tensor x = random::normal({3}, {.seed = random()});
      ASSERT_TRUE(bitwise_equal(f(x), random_program(seed, x, lazy)));
      ASSERT_TRUE(bitwise_equal(traced, lazy));
    }
  }
}

}  // namespace
}  // namespace gradus::guard_test
