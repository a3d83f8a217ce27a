/// minimize(): structures of parameters, Variables, dtypes, callbacks, the ends of runs, and what is refused.
#include <gtest/gtest.h>
#include <cmath>
#include <map>
#include <numbers>
#include "gradus/fitting/minimize.h"
#include "gradus/fitting/repeated.h"
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/model.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/random_key.h"
#include "gradus/ops/select.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/special.h"
#include "tests/errors.h"

namespace gradus::minimize_test {
namespace {

Tensor valley(const Tensor& x) { return 100 * square(x[1] - square(x[0])) + square(1 - x[0]); }
const Tensor& start_of_valley() {
  static const Tensor x0 = constant({-1.2, 1.0}, f64);
  return x0;
}

struct Line {
  Tensor slope, offset;  // [2, 1], []
};
struct Nested {
  std::vector<Line> lines;
  std::map<std::string, Tensor> more;
};

/// 0 where every element of the parameters is 2.
Tensor off_two(const Tensor& x) { return cast(reduce_sum(square(x - 2) + square(square(x - 2))), f64); }

constexpr MinimizeMethod methods[] = {MinimizeMethod::bfgs, MinimizeMethod::l_bfgs_b, MinimizeMethod::newton_cg};

TEST(Minimize, TakesStructures) {
  const Nested x0{{{zeros({2, 1}, f64), constant(0.5, f64)}, {ones({2, 1}), constant(-1.0)}},
                  {{"b", zeros({0}, f64)}, {"a", zeros({3}, f64)}}};
  const auto f = [](const Nested& at) {
    Tensor sum = off_two(at.more.at("a"));
    for (const Line& line : at.lines) sum = sum + off_two(line.slope) + off_two(line.offset);
    return sum;
  };
  for (const MinimizeMethod method : methods) {
    const auto found = minimize(f, x0, {.method = method});
    EXPECT_EQ(found.x.lines[1].slope.spec(), (Spec{f32, {2, 1}}));
    EXPECT_EQ(found.x.more.at("b").shape(), Shape({0}));
    EXPECT_NEAR(found.x.lines[0].offset.item(), 2, 1e-4);
    EXPECT_NEAR(found.x.lines[1].offset.item(), 2, 1e-4);
    EXPECT_LE(max_abs_difference(found.x.more.at("a"), full({3}, 2, f64)), 1e-4);
    EXPECT_LE(reduce_max(abs(found.jac.more.at("a"))).item(), 1e-3);
  }
}

TEST(Minimize, OneStructureCanBoundAnother) {
  const Line low{constant(3.0), {}}, x0{zeros({2, 1}), constant(0.0)};
  const auto f = [](const Line& at) { return off_two(at.slope) + off_two(at.offset); };
  const auto found = minimize(f, x0, {.bounds = Bounds<Line>{.lb = low}});
  EXPECT_EQ(max_abs_difference(found.x.slope, full({2, 1}, 3)), 0);
  EXPECT_NEAR(found.x.offset.item(), 2, 1e-3);
}

TEST(Minimize, TrainsAModel) {
  set_seed(3);
  Sequential model{Dense(6, tanh), Dense(1)};
  model.build({f32, {any_size, 1}});
  const Tensor x = reshape(linspace(-1.0, 1.0, 40), {40, 1}), y = sin(3 * x);
  for (const MinimizeMethod method : methods) {
    Sequential copy = model;
    const auto of_copy = [&] { return Loss::mean(mean_squared_error(y, copy(x, inference))); };
    const double before = of_copy().item();
    const auto found = minimize(of_copy, copy.trainable_variables(), {.method = method, .maxiter = 60});
    EXPECT_LT(found.fun, 0.02 * before);
    EXPECT_NEAR(of_copy().item(), found.fun, 1e-6);  // the variables have the minimum
    EXPECT_EQ(found.x.size(), 4u);
    EXPECT_EQ(max_abs_difference(found.x[0], copy.trainable_variables()[0]), 0);
  }
}

TEST(Minimize, AnErrorLeavesVariablesAsTheyWere) {
  Variable v(constant({-1.2, 1.0}, f64), "v");
  const auto f = [&] { return valley(v); };
  const auto fails = [](const MinimizeStep<Tensors>& step) {
    if (step.nit == 3) throw std::runtime_error("of the callback");
  };
  try {
    minimize(f, Variables{v}, {.callback = fails});
    ADD_FAILURE();
  } catch (const std::runtime_error& error) { EXPECT_STREQ(error.what(), "of the callback"); }
  EXPECT_EQ(max_abs_difference(v, start_of_valley()), 0);
}

TEST(Minimize, VariablesAtTheMinimumStay) {
  Variable v(constant({1.0, 1.0}, f64), "v");
  const auto found = minimize([&] { return valley(v); }, Variables{v});
  EXPECT_EQ(found.status, MinimizeStatus::small_gradient);
  EXPECT_EQ(found.nfev, 1);
}

/// A loss with a tape of its own: derivatives by its inputs depend on the Variables, too.
TEST(Minimize, LossesMayHoldDerivatives) {
  for (const MinimizeMethod method : methods) {
    Variable v(constant({0.5, 0.5}, f64), "v");
    const auto f = [&] {
      const Tensor x = constant(2.0, f64), a = v;
      GradientTape tape;
      tape.watch(x);
      const Tensor y = a[0] * square(x) + v.value()[1] * x;
      const Tensor slope = tape.gradient(y, x);  // 4 a + b
      return square(slope - 6) + square(y - 8);  // 4 a + 2 b = 8
    };
    const auto found = minimize(f, Variables{v}, {.method = method});
    EXPECT_LE(max_abs_difference(v, constant({1.0, 2.0}, f64)), 1e-4) << found.message;
  }
}

TEST(Minimize, ATapeAroundItChangesNothing) {
  for (const MinimizeMethod method : methods) {
    const auto alone = minimize(valley, start_of_valley(), {.method = method});
    Variable v(start_of_valley(), "v");
    GradientTape tape;
    const auto found = minimize([&] { return valley(v); }, Variables{v}, {.method = method});
    EXPECT_EQ(max_abs_difference(v, alone.x), 0);
    EXPECT_EQ(found.nfev, alone.nfev);
    EXPECT_EQ(tape.gradient(square(v.value()[0]), v)[0].item(), 2 * alone.x[0].item());
  }
}

TEST(Minimize, CallbacksSeeEachIterationAndStop) {
  for (const MinimizeMethod method : methods) {
    std::vector<double> seen;
    const auto callback = [&](const MinimizeStep<Tensor>& step) {
      EXPECT_EQ(valley(step.x).item(), step.fun);
      seen.push_back(step.fun);
      step.stop = step.nit == 4;
    };
    const auto found = minimize(valley, start_of_valley(), {.method = method, .callback = callback});
    EXPECT_EQ(found.status, MinimizeStatus::stopped);
    EXPECT_FALSE(found.success);
    EXPECT_EQ(found.nit, 4);
    EXPECT_EQ(std::vector<double>(found.history.begin() + 1, found.history.end()), seen);
    EXPECT_EQ(valley(found.x).item(), found.fun);
  }
}

TEST(Minimize, EndsSayWhy) {
  for (const MinimizeMethod method : methods)
    EXPECT_EQ(minimize(valley, start_of_valley(), {.method = method, .maxiter = 2}).status,
              MinimizeStatus::max_iterations);
  EXPECT_EQ(minimize(valley, start_of_valley(), {.method = MinimizeMethod::l_bfgs_b, .maxfun = 5}).status,
            MinimizeStatus::max_evaluations);
  EXPECT_EQ(minimize(valley, constant({1.0, 1.0}, f64)).status, MinimizeStatus::small_gradient);
  const auto jumps = [](Tensor x) { return where(greater(x, 0), x, x + 10); };
  const auto found = minimize(jumps, constant(1.0, f64));
  EXPECT_EQ(found.status, MinimizeStatus::precision_loss);
  EXPECT_FALSE(found.message.empty());
  const auto gains = minimize(valley, start_of_valley(), {.method = MinimizeMethod::l_bfgs_b, .ftol = 0.5});
  EXPECT_EQ(gains.status, MinimizeStatus::small_reduction);
}

TEST(Minimize, BacksOffWhereTheFunctionIsNotFinite) {
  const auto f = [](Tensor x) { return reduce_sum(x - log(x)); };  // NaN below 0, the minimum is at 1
  for (const MinimizeMethod method : methods) {
    const auto found = minimize(f, constant({0.01, 30.0}, f64), {.method = method});
    EXPECT_LE(max_abs_difference(found.x, ones({2}, f64)), 1e-3) << found.message;
    EXPECT_TRUE(std::isfinite(found.fun));
  }
}

TEST(Minimize, WithoutALowestValueItEnds) {
  for (const MinimizeMethod method : methods) {
    const auto found =
        minimize([](Tensor x) { return reduce_sum(-x); }, constant({1.0, 2.0}, f64), {.method = method, .maxiter = 50});
    EXPECT_FALSE(found.success);
    EXPECT_TRUE(std::isfinite(found.fun));
  }
}

TEST(Minimize, BfgsEstimatesTheInverseHessian) {
  const Tensor a = constant({{3.0, 1.0}, {1.0, 2.0}}, f64);
  const auto f = [&](Tensor x) { return 0.5 * reduce_sum(x * reshape(matmul(a, reshape(x, {2, 1})), {2})); };
  const auto found = minimize(f, constant({1.0, -3.0}, f64), {.gtol = 1e-10});
  EXPECT_LE(max_abs_difference(found.hess_inv, constant({{0.4, -0.2}, {-0.2, 0.6}}, f64)), 1e-2);
}

TEST(Minimize, SinglePrecisionAndIntegers) {
  const auto found = minimize(valley, constant({-1.2, 1.0}));
  EXPECT_EQ(found.x.dtype(), f32);
  EXPECT_LE(max_abs_difference(found.x, ones({2})), 1e-2);
  const auto whole = minimize(valley, constant({-1, 2}));
  EXPECT_EQ(whole.x.dtype(), f64);
  EXPECT_LE(max_abs_difference(whole.x, ones({2}, f64)), 1e-4);
  const auto scalar = minimize([](Tensor x) { return square(x - 3); }, constant(0.0, f64));
  EXPECT_EQ(scalar.x.shape(), Shape());
  EXPECT_NEAR(scalar.x.item(), 3, 1e-5);
}

/// A repeated function is traced once for parameters that are alike, and has the results of the function itself.
TEST(Minimize, RepeatedFunctionsAreTracedOnce) {
  int traces = 0;
  Variable target(constant(1.0, f64), "target");
  const auto f = [&](const Tensor& x) {
    ++traces;
    return valley(x) + square(x[1] - target) + reduce_sum(0 * x);
  };
  const auto objective = repeated(f);
  const auto first = minimize(objective, start_of_valley(), {.method = MinimizeMethod::l_bfgs_b});
  const int of_first = traces;
  target.assign(constant(4.0, f64));
  const auto second = minimize(objective, start_of_valley(), {.method = MinimizeMethod::l_bfgs_b});
  EXPECT_EQ(traces, of_first);
  const auto alone = minimize(f, start_of_valley(), {.method = MinimizeMethod::l_bfgs_b});
  EXPECT_EQ(max_abs_difference(second.x, alone.x), 0);
  EXPECT_EQ(second.nfev, alone.nfev);
  EXPECT_GT(max_abs_difference(second.x, first.x), 0.1);
  traces = 0;
  minimize(objective, constant({-1.2, 1.0, 3.0}, f64));
  EXPECT_GT(traces, 0);  // other parameters
}

TEST(Minimize, TheFunctionMayBranchAndHaveLosses) {
  const auto f = [](Tensor x) {
    if (bool(x[0] < 0)) return Loss::mean(square(x - 1)) + reduce_sum(square(x));
    return Loss::mean(square(x - 1)) + 0 * reduce_sum(x);
  };
  const auto found = minimize(f, start_of_valley());
  EXPECT_LE(max_abs_difference(found.x, ones({2}, f64)), 1e-4);
  const auto eager = minimize(f, start_of_valley(), {.run_eagerly = true});
  EXPECT_EQ(max_abs_difference(eager.x, found.x), 0);
}

TEST(Minimize, BoundsHoldAtEachStep) {
  const Tensor low = constant({-1.5, -0.5}, f64), high = constant({0.5, 2.0}, f64);
  const auto within = [&](const MinimizeStep<Tensor>& step) {
    EXPECT_TRUE(reduce_all(logical_and(greater_equal(step.x, low), less_equal(step.x, high))).item());
  };
  const auto found = minimize(valley, constant({-7.0, 9.0}, f64), {.bounds = Bounds<>{low, high}, .callback = within});
  EXPECT_TRUE(found.success);
  EXPECT_EQ(found.x[0].item(), 0.5);
  const auto fixed =
      minimize(valley, start_of_valley(), {.bounds = Bounds<>{constant({2.0, -9.0}, f64), constant({2.0, 9.0}, f64)}});
  EXPECT_EQ(fixed.x[0].item(), 2);
  EXPECT_NEAR(fixed.x[1].item(), 4, 1e-4);
}

TEST(Minimize, RefusesWhatSciPyRefuses) {
  const Tensor& x0 = start_of_valley();
  const auto refused = [](auto call, std::initializer_list<const char*> parts) {
    expect_error<InvalidArgument>(call, parts);
  };
  refused([&] { minimize([](Tensor x) { return square(x); }, x0); }, {"minimize", "f64[2]", "least_squares"});
  refused([&] { minimize([](Tensor x) { return cast(x[0], i32); }, x0); }, {"minimize", "i32"});
  refused([&] { minimize([](Tensor x) { return log(x[0]); }, x0); }, {"minimize", "at x0", "finite"});
  refused([&] { minimize([](Tensor x) { return sqrt(x[0] + 1.2); }, x0); }, {"gradient", "not finite at x0"});
  refused([&] { minimize([](Tensor) { return constant(1.0); }, x0); }, {"minimize", "does not depend on"});
  refused([&] { minimize(valley, greater(x0, 0)); }, {"minimize", "bool"});
  refused([&] { minimize(valley, Tensor()); }, {"minimize", "empty"});
  refused([&] { minimize(valley, zeros({0})); }, {"minimize", "no elements"});
  refused([&] { minimize(valley, constant({1.0, std::nan("")})); }, {"minimize", "x0", "finite"});
  refused([&] { minimize(valley, x0, {.bounds = Bounds<>{constant({1.0, 1.0}), constant({2.0, 0.5})}}); },
          {"lower bound 1", "upper bound 0.5", "parameter 1"});
  refused([&] { minimize(valley, x0, {.bounds = Bounds<>{constant({1.0, 1.0, 1.0}), {}}}); },
          {"lower bound", "f32[3]", "f64[2]"});
  refused([&] { minimize(valley, x0, {.method = MinimizeMethod::bfgs, .bounds = Bounds<>{}}); },
          {"bounds", "bfgs", "l_bfgs_b"});
  refused([&] { minimize(valley, x0, {.maxcor = 5}); }, {"maxcor", "bfgs"});
  refused([&] { minimize(valley, x0, {.gtol = -1.0}); }, {"gtol", "-1"});
  refused([&] { minimize(valley, x0, {.maxiter = 0}); }, {"maxiter"});
  refused([&] { minimize(valley, x0, {.c1 = 0.95}); }, {"c1", "c2"});
  refused([&] { minimize([] { return constant(1.0); }, Variables()); }, {"minimize", "no variables"});
  refused([&] { function([](Tensor x) { return minimize(valley, x).x; })(x0); }, {"minimize", "within"});
}

}  // namespace
}  // namespace gradus::minimize_test
