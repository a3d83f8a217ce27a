/// Branches and loops: values against plain C++, the same bits lazily, compiled, and with any number of threads,
/// symbolic sizes, nesting, mistakes.
#include <gtest/gtest.h>
#include <cmath>
#include <set>
#include "gradus/ops/control_ops.h"
#include "tests/errors.h"
#include "tests/gradients/control_functions.h"
#include "tests/threads.h"

namespace gradus::control_test {
namespace {

bool mentions(const std::string& message, std::string_view what) { return message.find(what) != std::string::npos; }

// ---------------------------------------------------------------- values

TEST(Cond, TakesOneOfTwo) {
  EXPECT_TRUE(bitwise_equal(magnitude(constant({1.0, 2.0})), constant({1.0, 4.0})));
  EXPECT_TRUE(bitwise_equal(magnitude(constant({-1.0, -2.0})), constant({3.0, 6.0})));
  const auto compiled = function([](Tensor x) { return magnitude(x); });
  for (const double sign : {1.0, -1.0, 1.0}) {
    const Tensor x = constant({sign, 2 * sign});
    EXPECT_TRUE(bitwise_equal(compiled(x), magnitude(x)));
  }
  EXPECT_EQ(compiled.explain().variants, 1);
}

TEST(Cond, GivesTuplesPairsAndArrays) {
  const Tensor x = constant(2.0);
  const auto [a, b] = cond(x > 1, [&] { return std::pair{x, x * 2}; }, [&] { return std::pair{-x, x * 0}; });
  EXPECT_EQ(a.item(), 2);
  EXPECT_EQ(b.item(), 4);
  const auto array = cond(x > 3, [&] { return std::array{x, x}; }, [&] { return std::array{x * 5, x * 6}; });
  EXPECT_EQ(array[1].item(), 12);
  const auto [p, q, r] = cond(x > 3, [&] { return std::tuple{x, x, x}; }, [&] { return std::tuple{x, x + 1, x + 2}; });
  EXPECT_EQ(r.item(), 4);
}

TEST(Cond, WhatIsNotTakenDoesNotFail) {
  const Tensor table = constant({1.0, 2.0, 3.0});
  const auto at = [&](Tensor i) {
    return cond(i < 3, [&] { return gather(table, i); }, [&] { return constant(-1.0); });
  };
  const auto compiled = function(at);
  for (const int i : {1, 7}) {
    EXPECT_EQ(at(constant(i)).item(), i < 3 ? 2 : -1);
    EXPECT_EQ(compiled(constant(i)).item(), i < 3 ? 2 : -1);
  }
}

TEST(WhileLoop, MatchesPlainCpp) {
  // Collatz: steps until 1.
  const auto steps = [](Tensor n) {
    return std::get<1>(while_loop([](Tensor k, Tensor) { return k > 1; },
                                  [](Tensor k, Tensor count) {
                                    return std::tuple{where(equal(mod(k, 2), 0), floor_divide(k, 2), 3 * k + 1),
                                                      count + 1};
                                  },
                                  std::tuple{n, constant(0)}));
  };
  const auto compiled = function(steps);
  for (int n : {1, 2, 6, 7, 27, 97}) {
    int k = n, count = 0;
    for (; k > 1; ++count) k = k % 2 == 0 ? k / 2 : 3 * k + 1;
    EXPECT_EQ(steps(constant(n)).item(), count) << n;
    EXPECT_EQ(compiled(constant(n)).item(), count) << n;
  }
}

TEST(WhileLoop, StopsAtItsBound) {
  const auto forever = [](Tensor) { return constant(true); };
  const auto twice = [](Tensor x) { return x * 2; };
  EXPECT_EQ(while_loop(forever, twice, constant(1.0), {.max_iterations = 10}).item(), 1024);
  EXPECT_EQ(while_loop([](Tensor x) { return x < 5; }, twice, constant(1.0), {.max_iterations = 10}).item(), 8);
}

TEST(WhileLoop, ZeroTripsAreTheIdentity) {
  const Tensor x = constant({3.0, 4.0}, f64);
  const auto never = [](Tensor t) { return reduce_sum(t) < 0; };
  for (const std::int64_t bound : {0, 5}) {
    const auto same = [&](Tensor t) {
      return while_loop(never, [](Tensor u) { return u * u; }, t, {.max_iterations = bound});
    };
    EXPECT_TRUE(bitwise_equal(same(x), x));
    EXPECT_TRUE(bitwise_equal(gradient([&](Tensor t) { return reduce_sum(same(t)); }, x), ones({2}, f64)));
  }
}

TEST(Scan, MatchesPlainCpp) {
  const std::vector<double> values{0.5, -1.0, 2.0, 0.25};
  const Tensor xs = from_values(values, Shape{4});
  const auto running = [](Tensor s, Tensor x) { return std::pair{s + x, s * x}; };
  const auto [last, all] = scan(running, constant(1.0, f64), xs);
  double s = 1;
  std::vector<double> expected;
  for (double x : values) {
    expected.push_back(s * x);
    s += x;
  }
  EXPECT_EQ(last.item(), s);
  EXPECT_EQ(all.to_vector<double>(), expected);
}

TEST(Scan, OverNothingKeepsTheState) {
  const auto [last, all] = scan([](Tensor s, Tensor x) { return std::pair{s + x, x * 2}; }, constant(3.0), zeros({0}));
  EXPECT_EQ(last.item(), 3);
  EXPECT_EQ(all.shape(), Shape{0});
}

TEST(Scan, StatesAreExchangedAndPassedThrough) {
  const auto [last, all] =
      scan([](Tensor a, Tensor b, Tensor c, Tensor x) { return std::pair{std::tuple{b, a + x, c}, c}; },
           std::tuple{constant(1.0), constant(10.0), constant(7)}, constant({1.0, 2.0, 3.0}));
  double a = 1, b = 10;
  for (double x : {1.0, 2.0, 3.0}) {
    const double next = a + x;
    a = b;
    b = next;
  }
  EXPECT_EQ(std::get<0>(last).item(), a);
  EXPECT_EQ(std::get<1>(last).item(), b);
  EXPECT_EQ(std::get<2>(last).item(), 7);
  EXPECT_TRUE(bitwise_equal(all, constant({7, 7, 7})));
}

// ---------------------------------------------------------------- nesting, sizes, threads, memory

Tensor nested(const Tensor& x) {
  const auto [last, all] = scan(
      [](Tensor s, Tensor row) {
        const Tensor inner = scan([](Tensor t, Tensor e) { return std::pair{t + e * e, t}; }, s, row).first;
        const Tensor chosen = cond(
            inner > 3,
            [&] { return while_loop([](Tensor v) { return v > 1; }, [](Tensor v) { return v / 2; }, inner); },
            [&] { return scan([](Tensor t, Tensor e) { return std::pair{t * e, e}; }, inner, row).first; });
        return std::pair{chosen, chosen * row};
      },
      constant(0.5, f64), x);
  return last + reduce_sum(all);
}
double nested_in_cpp(const std::vector<double>& x, std::size_t columns) {
  double s = 0.5, sum = 0;
  for (std::size_t r = 0; r < x.size() / columns; ++r) {
    for (std::size_t c = 0; c < columns; ++c) s += x[r * columns + c] * x[r * columns + c];
    if (s > 3) {
      while (s > 1) s /= 2;
    } else {
      for (std::size_t c = 0; c < columns; ++c) s *= x[r * columns + c];
    }
    for (std::size_t c = 0; c < columns; ++c) sum += s * x[r * columns + c];
  }
  return s + sum;
}

TEST(Control, NestsInEveryWay) {
  set_seed(5);
  const Tensor x = random::uniform({6, 3}, {.low = 0.2, .high = 1.4, .dtype = f64});
  const double expected = nested_in_cpp(x.to_vector<double>(), 3);
  EXPECT_NEAR(nested(x).item(), expected, 1e-12 * std::abs(expected));
  const auto compiled = function([](Tensor t) { return nested(t); });
  EXPECT_TRUE(bitwise_equal(compiled(x), nested(x)));
}

TEST(Control, SizesMayVary) {
  const auto step = function(
      [](Tensor xs) {
        const auto [last, all] =
            scan([](Tensor s, Tensor x) { return std::pair{s + reduce_sum(x), x * s}; }, constant(0.0), xs);
        const Tensor chosen = cond(last > 4, [&] { return all * 2; }, [&] { return all; });
        return std::pair{last, chosen};
      },
      {.input_signature = {{f32, {any_size, any_size}}}});
  for (const Shape& shape : {Shape{3, 2}, Shape{5, 7}, Shape{1, 1}, Shape{0, 2}}) {
    const auto [last, all] = step(ones(shape));
    EXPECT_EQ(last.item(), static_cast<double>(shape.size()));
    EXPECT_EQ(all.shape(), shape);
  }
  EXPECT_EQ(step.explain().variants, 1);
}

TEST(Control, SameBitsWithAnyNumberOfThreads) {
  set_seed(6);
  const Tensor h = random::normal({128}), w = random::normal({128, 128}, {.stddev = 0.1}),
               xs = random::normal({9, 128});
  const auto step = function([&](Tensor a, Tensor b, Tensor c) {
    GradientTape tape;
    for (const Tensor& t : {a, b, c}) tape.watch(t);
    const Tensor y = recurrent(a, b, c);
    const auto [da, db, dc] = tape.gradient(y, {a, b, c});
    return std::array{y, da, db, dc};
  });
  const Threads scope(1);
  const auto expected = step(h, w, xs);
  for (int threads : {2, 3, 8}) {
    const Threads scope(threads);
    const auto got = step(h, w, xs);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(bitwise_equal(got[i], expected[i])) << threads;
  }
}

/// Bodies that are worth dividing: loops in loops, branches, carries that are exchanged, results that are carries.
TEST(Control, TheTeamGoesThroughLoopsTogether) {
  set_seed(7);
  const Tensor x = random::normal({96, 128}), w = random::normal({128, 128}, {.stddev = 0.1}),
               xs = random::normal({6, 96, 128});
  const auto step = function([&](Tensor a, Tensor b, Tensor elements) {
    const auto inner = [&](Tensor t, std::int64_t bound) {
      return std::get<0>(while_loop([&](Tensor, Tensor n) { return n < bound; },
                                    [&](Tensor u, Tensor n) { return std::tuple{sin(matmul(u, b)), n + 1}; },
                                    std::tuple{t, constant(0)}));
    };
    const auto [state, all] = scan(
        [&](Tensor s, Tensor t, Tensor e) {
          const Tensor next = cond(reduce_sum(e) > 0, [&] { return inner(s + e, 3); }, [&] { return tanh(s * e); });
          return std::pair{std::tuple{t, next}, next};
        },
        std::tuple{a, a + 1}, elements);
    return std::array{std::get<0>(state), std::get<1>(state), all};
  });
  const Threads scope(1);
  const auto expected = step(x, w, xs);
  for (int threads : {2, 3, 8}) {
    const Threads scope(threads);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto got = step(x, w, xs);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(bitwise_equal(got[i], expected[i])) << threads;
    }
  }
}

TEST(Control, WhatFailsInALoopOfTheTeamStopsIt) {
  const Tensor w = ones({128, 128}), state = ones({96, 128});
  const auto step = function([&](Tensor s, Tensor b, Tensor indices) {
    const auto walk = [&](Tensor t, Tensor places) {
      return scan([&](Tensor u, Tensor i) { return std::pair{tanh(matmul(u, b)) + gather(u, i), i}; }, t, places).first;
    };
    return scan([&](Tensor t, Tensor places) { return std::pair{walk(t, places), reduce_sum(t)}; }, s, indices).first;
  });
  const Tensor good = zeros({3, 4}, i32), bad = constant({{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 99, 3, 98}});
  for (int threads : {1, 2, 3, 8}) {
    const Threads scope(threads);
    const Tensor before = step(state, w, good);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const std::string message = error_of([&] { step(state, w, bad).item(); });
      for (const char* part : {"index 99", "in iteration 1 of scan, in iteration 2 of scan"})
        EXPECT_TRUE(mentions(message, part)) << threads << ": " << message;
      EXPECT_TRUE(bitwise_equal(step(state, w, good), before));
    }
  }
}

TEST(Control, WhatFailsInALoopOfABranchIsToldOnce) {
  const Tensor w = ones({128, 128}), state = ones({96, 128});
  const auto step = function([&](Tensor p, Tensor s, Tensor b, Tensor indices) {
    const auto walk = [&] {
      return scan([&](Tensor u, Tensor i) { return std::pair{tanh(matmul(u, b)) + gather(u, i), i}; }, s, indices)
          .first;
    };
    return cond(p, walk, [&] { return s; });
  });
  const Tensor bad = constant({0, 1, 99, 3});
  for (int threads : {1, 2, 3, 8}) {
    const Threads scope(threads);
    for (int repeat = 0; repeat < 20; ++repeat) {
      const std::string message = error_of([&] { step(constant(true), state, w, bad).item(); });
      for (const char* part : {"index 99", "in iteration 2 of scan"})
        EXPECT_TRUE(mentions(message, part)) << threads << ": " << message;
    }
  }
}

/// The carry's rows belong to threads; an element that is handed through has no such rows.
TEST(Control, AScanHandsElementsThroughAsAWhole) {
  const auto step = function(
      [](Tensor s, Tensor xs) { return scan([](Tensor t, Tensor x) { return std::pair{tanh(t * x), x}; }, s, xs); });
  for (const Shape& shape : {Shape{1000}, Shape{200, 65}}) {
    const Tensor xs = reshape(cast(iota({shape.size()}), f32), shape), state = ones({32, 65});
    for (int threads : {1, 2, 3, 8}) {
      const Threads scope(threads);
      EXPECT_TRUE(bitwise_equal(step(state, xs).second, xs)) << threads << " threads, " << brackets(shape);
    }
  }
}

TEST(Control, TenThousandIterationsAndCallsKeepMemoryFlat) {
  const auto step = function([](Tensor x) {
    return while_loop([](Tensor, Tensor n) { return n < 100; },
                      [](Tensor t, Tensor n) { return std::tuple{t * 0.5 + 1, n + 1}; }, std::tuple{x, constant(0)});
  });
  const Tensor x = ones({1000});
  step(x);
  const std::size_t before = memory_use().live_bytes;
  reset_peak_memory();
  for (int i = 0; i < 10000; ++i) step(x);
  EXPECT_LE(memory_use().peak_bytes, before + 64 * KiB);
  // Lazily the body is traced at every call, and is always the same.
  const auto lazily = [&] {
    return while_loop([](Tensor, Tensor n) { return n < 3; },
                      [](Tensor t, Tensor n) { return std::tuple{t * 0.5 + 1, n + 1}; }, std::tuple{x, constant(0)});
  };
  for (int i = 0; i < 3; ++i) synchronize(), lazily();
  synchronize();
  const std::size_t records = OpTable::size(), live = memory_use().live_bytes;
  for (int i = 0; i < 2000; ++i) {
    const auto result = lazily();
    ASSERT_EQ(std::get<1>(result).item(), 3);
  }
  EXPECT_LE(OpTable::size(), records);
  EXPECT_LE(memory_use().live_bytes, live + 64 * KiB);
}

TEST(Control, ArenaCountsBodiesAndKernelsListThem) {
  const auto step = function([](Tensor xs) {
    return scan([](Tensor s, Tensor x) { return std::pair{tanh(matmul(s, s)) + x, reduce_sum(s)}; }, ones({64, 64}),
                xs);
  });
  step(ones({4, 64, 64}));
  const Explanation e = step.explain();
  EXPECT_GE(e.peak_bytes, std::size_t{64 * 64 * 4});
  int products = 0;
  for (const Kernel& kernel : e.kernels) products += kernel.name == "matmul";
  EXPECT_EQ(products, 1);
  EXPECT_EQ(to_text(parse_graph(e.graph())), e.graph());
}

TEST(Control, RandomNumbersDifferFromIterationToIteration) {
  const auto drawn = [](Tensor xs) {
    return scan([](Tensor s, Tensor x) { return std::pair{s, x * random::uniform({2})}; }, constant(0.0), xs).second;
  };
  const auto by_while = [](Tensor sum) {
    return std::get<0>(
        while_loop([](Tensor, Tensor n) { return n < 3; },
                   [](Tensor s, Tensor n) { return std::tuple{s * 10 + floor(5 * random::uniform({})), n + 1}; },
                   std::tuple{sum, constant(0)}));
  };
  const auto compiled = function([&](Tensor xs) { return std::pair{drawn(xs), by_while(constant(0.0))}; });
  std::set<float> numbers;
  for (const Tensor& all : {drawn(ones({4})), compiled(ones({4})).first, compiled(ones({4})).first})
    for (float x : all.to_vector<float>()) numbers.insert(x);
  EXPECT_EQ(numbers.size(), 24u);
  set_seed(3);
  const double first = by_while(constant(0.0)).item();
  set_seed(3);
  EXPECT_EQ(by_while(constant(0.0)).item(), first);
  // The gradient sees the numbers that were drawn.
  GradientTape tape;
  const Tensor xs = ones({4});
  tape.watch(xs);
  const Tensor all = drawn(xs), y = reduce_sum(all);
  EXPECT_LT(max_abs_difference(tape.gradient(y, xs), reduce_sum(all, {.axis = {1}})), 1e-6);
}

// ---------------------------------------------------------------- mistakes

TEST(ControlMistakes, SayWhatWasExpected) {
  const Tensor x = constant({1.0, 2.0});
  const auto yes = [&] { return x; };
  EXPECT_TRUE(mentions(error_of([&] { cond(x[0] > 0, yes, [&] { return reduce_sum(x); }); }),
                       "cond: if_true gives (f32[2]), if_false gives (f32[])"));
  EXPECT_TRUE(mentions(error_of([&] { cond(x > 0, yes, yes); }), "expected one bool"));
  EXPECT_TRUE(mentions(error_of([&] { cond(x[0], yes, yes); }), "expected one bool"));
  const auto always = [](Tensor) { return constant(true); };
  EXPECT_TRUE(mentions(error_of([&] { while_loop(always, [](Tensor t) { return concat({t, t}); }, x); }),
                       "while_loop: tensor 0 of the state is f32[2] before an iteration and f32[4] after it"));
  EXPECT_TRUE(mentions(error_of([&] { while_loop(always, [](Tensor t) { return cast(t, f64); }, x); }), "f64[2]"));
  EXPECT_TRUE(mentions(error_of([&] { while_loop([](Tensor t) { return t > 0; }, [](Tensor t) { return t; }, x); }),
                       "what the condition gives is bool[2], expected one bool"));
  EXPECT_TRUE(mentions(error_of([&] { while_loop(always, [](Tensor t) { return t; }, x, {.max_iterations = -1}); }),
                       "max_iterations must not be negative"));
  EXPECT_TRUE(mentions(error_of([&] { while_loop(always, [](Tensor t) { return t; }, Tensor()); }), "empty"));
  const auto running = [](Tensor s, Tensor e) { return std::pair{s + e, e}; };
  EXPECT_TRUE(mentions(error_of([&] { scan(running, constant(0), x); }), "i32"));
  EXPECT_TRUE(mentions(error_of([&] { scan(running, constant(0.0), constant(1.0)); }), "xs is a scalar"));
  EXPECT_TRUE(mentions(
      error_of([&] { scan([](Tensor s, Tensor e) { return std::pair{stack({s, s}), e}; }, constant(0.0), x); }),
      "scan: tensor 0 of the state is f32[] before an iteration and f32[2] after it"));
}

TEST(ControlMistakes, AssigningAndBranchingInside) {
  Variable v(constant(1.0), "counter");
  const Tensor x = constant(1.0);
  const auto assigning = [&] {
    v.assign_add(x);
    return x;
  };
  EXPECT_TRUE(
      mentions(error_of([&] { cond(x > 0, assigning, assigning); }), "variable counter: it happens inside cond"));
  EXPECT_TRUE(mentions(
      error_of([&] { while_loop([](Tensor t) { return t < 3; }, [&](Tensor t) { return v.assign(t), t + 1; }, x); }),
      "inside while_loop"));
  EXPECT_TRUE(mentions(
      error_of([&] { scan([&](Tensor s, Tensor e) { return v.assign(e), std::pair{s, e}; }, x, constant({1.0})); }),
      "inside scan"));
  EXPECT_TRUE(mentions(
      error_of([&] { scan([&](Tensor s, Tensor e) { return std::pair{e > 0 ? s : -s, e}; }, x, constant({1.0})); }),
      "cond(predicate"));
  EXPECT_EQ(v.value().item(), 1);
}

TEST(ControlMistakes, DataErrorsNameOpIndexScopeAndIteration) {
  Variable v(constant(1.0), "v");
  const Tensor table = constant({1.0, 2.0, 3.0});
  const auto look_up = [&](Tensor indices) {
    return scan(
               [&](Tensor s, Tensor i) {
                 const NameScope scope("lookup");
                 return std::pair{s + gather(table, i), s};
               },
               constant(0.0), indices)
        .first;
  };
  const auto step = function([&](Tensor indices) {
    const Tensor y = look_up(indices);
    v.assign(y);
    return y;
  });
  EXPECT_EQ(step(constant({0, 1})).item(), 3);
  for (const bool compiled : {true, false}) {
    const std::string message = error_of([&] {
      const Tensor bad = constant({0, 9});
      (compiled ? step(bad) : look_up(bad)).item();
    });
    for (const char* part : {"gather", "index 9", "lookup", "in iteration 1 of scan"})
      EXPECT_TRUE(mentions(message, part)) << message;
  }
  EXPECT_EQ(v.value().item(), 3);
}

}  // namespace
}  // namespace gradus::control_test
