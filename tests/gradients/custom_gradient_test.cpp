/// Gradients of one's own, and recomputation.
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/gradus.h"

namespace gradus::custom_gradient_test {
namespace {

const auto log1pexp = [] {
  return custom_gradient(
      [](Tensor x) { return std::pair{log(1 + exp(x)), [=](Tensor dy) { return dy * (1 - 1 / (1 + exp(x))); }}; });
};

template <class F> std::string message_of(F f) {
  try {
    f();
  } catch (const InvalidArgument& error) { return error.what(); }
  return "no InvalidArgument";
}

TEST(CustomGradient, GivesTheGradientThatItSays) {
  const auto straight_through =
      custom_gradient([](Tensor x) { return std::pair{round(x), [](Tensor dy) { return dy; }}; });
  const Tensor x = constant({0.4, 1.6});
  EXPECT_TRUE(bitwise_equal(straight_through(x), constant({0.0, 2.0})));
  const Tensor own = gradient([&](Tensor t) { return reduce_sum(3 * straight_through(t)); }, x);
  EXPECT_TRUE(bitwise_equal(own, full({2}, 3)));
}

TEST(CustomGradient, PullbackIsDifferentiable) {
  const auto f = log1pexp();
  const auto slope = [&](Tensor x) { return gradient(f, x); };
  const auto bend = [&](Tensor x) { return gradient(slope, x); };
  const Tensor x = constant(0.3, f64);
  const double s = 1 / (1 + std::exp(-0.3));
  EXPECT_NEAR(slope(x).item(), s, 1e-14);
  EXPECT_NEAR(gradient(slope, x).item(), s * (1 - s), 1e-14);
  EXPECT_NEAR(gradient(bend, x).item(), s * (1 - s) * (1 - 2 * s), 1e-14);
  EXPECT_EQ(gradient(f, constant(100.0)).item(), 1);
}

TEST(CustomGradient, OfSeveralArgumentsAsArrayOrTuple) {
  const auto array = custom_gradient(
      [](Tensor a, Tensor b) { return std::pair{a * b, [=](Tensor dy) { return std::array{dy * b, -dy * a}; }}; });
  const auto tuple = custom_gradient(
      [](Tensor a, Tensor b) { return std::pair{a * b, [=](Tensor dy) { return std::tuple{dy * b, -dy * a}; }}; });
  for (const auto& [da, db] :
       {gradient(array, {constant(2.0), constant(5.0)}), gradient(tuple, {constant(2.0), constant(5.0)})}) {
    EXPECT_EQ(da.item(), 5);
    EXPECT_EQ(db.item(), -2);
  }
}

TEST(CustomGradient, SameInFunctionAndUnderTape) {
  const auto f = log1pexp();
  const Tensor x = constant({-2.0, 0.5, 3.0});
  const auto slope = [&](Tensor t) { return gradient([&](Tensor u) { return reduce_sum(f(u)); }, t); };
  const auto compiled = function(slope);
  EXPECT_TRUE(bitwise_equal(compiled(x), slope(x)));
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = reduce_sum(f(x) * x);
  EXPECT_TRUE(std::isfinite(y.item()));  // computed in the midst of recording
  const Tensor expected = f(x) + x * (1 - 1 / (1 + exp(x)));
  EXPECT_LT(max_abs_difference(tape.gradient(y, x), expected), 1e-6);
}

TEST(CustomGradient, OnRowsItIsALoopOverThem) {
  Variable w(constant({1.0, -2.0}), "w");
  const auto twisted = custom_gradient(
      [](Tensor x, Tensor y) { return std::pair{x * y, [=](Tensor dy) { return std::pair{dy * y * y, -dy * x}; }}; });
  set_seed(1);
  const Tensor xs = random::normal({5, 2}), seeds = random::normal({5, 2});
  const auto slope = [&](Tensor x) { return gradient([&](Tensor t) { return reduce_sum(twisted(t, w)); }, x); };
  std::vector<Tensor> each;
  for (int i = 0; i < 5; ++i) each.push_back(slope(xs[i]));
  EXPECT_TRUE(bitwise_equal(vectorized_map(slope, xs), stack(each)));
  // The gradient of the mapped function, by a row argument and by the one that all rows share.
  const auto total = [&](Tensor x) {
    return reduce_sum(vectorized_map([&](Tensor t) { return twisted(t, w); }, x) * seeds);
  };
  GradientTape tape;
  tape.watch(xs);
  const Tensor y = total(xs);
  const auto [dx, dw] = tape.gradient(y, {xs, w.value()});
  EXPECT_LT(max_abs_difference(dx, seeds * square(w.value())), 1e-6);
  EXPECT_LT(max_abs_difference(dw, -reduce_sum(seeds * xs, {.axis = {0}})), 1e-5);
}

TEST(CustomGradient, CapturesHaveTheirOrdinaryGradient) {
  Variable w(constant(3.0), "w");
  const auto scaled =
      custom_gradient([&](Tensor x) { return std::pair{x * w.value(), [](Tensor dy) { return 100 * dy; }}; });
  GradientTape tape;
  const Tensor x = constant(2.0);
  tape.watch(x);
  const Tensor y = scaled(x) + w;
  EXPECT_EQ(tape.gradient(y, Variables{w})[0].item(), 2 + 1);
}

TEST(CustomGradient, MistakesSayWhatWasExpected) {
  const auto wrong_shape =
      custom_gradient([](Tensor x) { return std::pair{x * 2, [](Tensor dy) { return reduce_sum(dy); }}; });
  const auto wrong_count =
      custom_gradient([](Tensor a, Tensor b) { return std::pair{a * b, [](Tensor dy) { return dy; }}; });
  const auto wrong_dtype =
      custom_gradient([](Tensor x) { return std::pair{x * 2, [](Tensor dy) { return cast(dy, f64); }}; });
  const Tensor x = constant({1.0, 2.0});
  EXPECT_NE(message_of([&] { wrong_shape(x); }).find("gives f32[] for argument 0, which is f32[2]"), std::string::npos);
  EXPECT_NE(message_of([&] { wrong_count(x, x); }).find("gives 1 gradients for 2 arguments"), std::string::npos);
  EXPECT_NE(message_of([&] { wrong_dtype(x); }).find("f64[2]"), std::string::npos);
}

TEST(CustomGradient, AnEmptyTensorIsAGradientOfZeros) {
  const auto scaled = custom_gradient([](Tensor x, Tensor factor) {
    return std::pair{x * factor, [factor](Tensor dy) { return std::array{dy * factor, Tensor()}; }};
  });
  const Tensor x = constant({1.0, 2.0}), factor = constant({3.0, 4.0});
  GradientTape tape;
  tape.watch(x);
  tape.watch(factor);
  const auto [by_x, by_factor] = tape.gradient(reduce_sum(scaled(x, factor)), {x, factor});
  EXPECT_EQ(by_x.to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(by_factor.to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(CustomGradient, AssigningInsideIsAMistake) {
  Variable v(constant(0.0), "steps");
  const auto counting = custom_gradient([&](Tensor x) {
    v.assign_add(constant(1.0));
    return std::pair{x, [](Tensor dy) { return dy; }};
  });
  EXPECT_NE(message_of([&] { counting(constant(1.0)); }).find("variable steps: it happens inside custom_gradient"),
            std::string::npos);
  EXPECT_EQ(v.value().item(), 0);
}

// ---------------------------------------------------------------- recompute_grad

/// Several activations as large as its argument.
Tensor block(const Tensor& x, const Tensor& w) {
  const Tensor a = tanh(matmul(x, w));
  const Tensor b = sigmoid(matmul(a, w));
  return x + tanh(matmul(b * a, w));
}

struct Net {
  std::vector<Variable> weights;
  explicit Net(int depth) {
    set_seed(3);
    for (int i = 0; i < depth; ++i) weights.emplace_back(random::normal({32, 32}, {.stddev = 0.2}), "w");
  }
  Variables all() {
    Variables list;
    for (Variable& w : weights) list.add(w);
    return list;
  }
  Tensor apply(Tensor x, bool recompute) {
    for (Variable& w : weights) {
      const auto f = [&](Tensor t) { return block(t, w); };
      x = recompute ? recompute_grad(f)(x) : f(x);
    }
    return x;
  }
};

TEST(RecomputeGrad, SameBitsLessMemory) {
  Net net(6);
  set_seed(4);
  const Tensor x = random::normal({256, 32});
  const auto step = [&](bool recompute) {
    return function([&net, recompute](Tensor t) {
      GradientTape tape;
      const Tensor y = reduce_sum(square(net.apply(t, recompute)));
      const Gradients g = tape.gradient(y, net.all());
      Tensor sum = reduce_sum(g[0]);
      for (std::size_t i = 1; i < g.size(); ++i) sum += reduce_sum(g[i]);
      return std::pair{sum, g[0]};
    });
  };
  const auto kept = step(false), lean = step(true);
  EXPECT_TRUE(bitwise_equal(kept(x).second, lean(x).second));
  EXPECT_TRUE(bitwise_equal(kept(x).first, lean(x).first));
  EXPECT_LT(lean.explain().peak_bytes, kept.explain().peak_bytes / 2);
  // Nothing of a barrier is left in what runs.
  for (const Kernel& kernel : lean.explain().kernels)
    for (const std::string& op : kernel.ops) EXPECT_NE(op, "barrier");
}

TEST(RecomputeGrad, LazyEqualsCompiledAndSecondOrderIsRight) {
  const auto f = [](Tensor x) { return exp(sin(x) * x); };
  const auto g = recompute_grad(f);
  const auto second = [](auto f) {
    return [f](Tensor x) mutable {
      return gradient([&](Tensor t) { return gradient([&](Tensor u) { return reduce_sum(f(u)); }, t)[1]; }, x);
    };
  };
  const Tensor x = constant({0.3, -1.2, 0.7}, f64);
  EXPECT_TRUE(bitwise_equal(g(x), f(x)));
  const Tensor expected = second(f)(x);
  EXPECT_LT(max_abs_difference(second(g)(x), expected), 1e-12);
  const auto compiled = function([&](Tensor t) { return second(g)(t); });
  EXPECT_TRUE(bitwise_equal(compiled(x), second(g)(x)));
}

TEST(RecomputeGrad, OnRowsItIsALoopOverThem) {
  set_seed(2);
  const Tensor xs = random::normal({4, 3});
  const auto slope = [](Tensor x) {
    return gradient([](Tensor t) { return reduce_sum(recompute_grad([](Tensor u) { return tanh(u) * u; })(t)); }, x);
  };
  std::vector<Tensor> each;
  for (int i = 0; i < 4; ++i) each.push_back(slope(xs[i]));
  EXPECT_TRUE(bitwise_equal(vectorized_map(slope, xs), stack(each)));
  EXPECT_TRUE(bitwise_equal(function([&](Tensor x) { return vectorized_map(slope, x); })(xs), stack(each)));
}

TEST(RecomputeGrad, RandomNumbersAreTheSameWhenComputedAgain) {
  const auto noisy = [](Tensor x) { return x * random::uniform({4}); };
  const auto slope = function([&](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = recompute_grad(noisy)(x);
    return std::pair{y, tape.gradient(reduce_sum(y), x)};
  });
  const auto [y, g] = slope(ones({4}));
  EXPECT_TRUE(bitwise_equal(y, g));  // of ones: both are the random numbers
}

}  // namespace
}  // namespace gradus::custom_gradient_test
