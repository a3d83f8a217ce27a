/// Gradients of branches and loops: of every order against unrolled loops and differences, forward mode, rows.
#include <gtest/gtest.h>
#include <cmath>
#include <set>
#include "gradus/graph/region.h"
#include "gradus/graph/transforms.h"
#include "gradus/ops/control_ops.h"
#include "tests/errors.h"
#include "tests/gradients/control_functions.h"

namespace gradus::control_gradients_test {
namespace {

bool mentions(const std::string& message, std::string_view what) { return message.find(what) != std::string::npos; }

// ---------------------------------------------------------------- gradients

template <class F> Tensor third_order(F f, const Tensor& x) {
  return gradient([&](Tensor t) { return reduce_sum(sin(second_order(f, t))); }, x);
}

/// Gradients of three orders of `f` are those of `plain`, lazily and compiled.
template <class F, class G> void expect_gradients(F f, G plain, const Tensor& x, double tolerance = 1e-10) {
  const auto first = [](auto g) { return [g](Tensor t) { return gradient(g, t); }; };
  const auto second = [](auto g) { return [g](Tensor t) { return second_order(g, t); }; };
  const auto third = [](auto g) { return [g](Tensor t) { return third_order(g, t); }; };
  const auto check = [&](auto order, const char* what) {
    const Tensor expected = order(plain)(x), got = order(f)(x);
    EXPECT_LT(max_abs_difference(got, expected), tolerance * (1 + max_abs_difference(expected, zeros_like(expected))))
        << what;
    const auto compiled = function(order(f));
    EXPECT_TRUE(bitwise_equal(compiled(x), got)) << what << " compiled";
  };
  check(first, "first order");
  check(second, "second order");
  check(third, "third order");
}

TEST(CondGradients, OfEveryOrder) {
  const auto f = [](Tensor x) {
    return cond(x[0] > 0, [&] { return reduce_sum(sin(x) * x); }, [&] { return reduce_sum(exp(x)); });
  };
  expect_gradients(f, [](Tensor x) { return reduce_sum(sin(x) * x); }, constant({0.5, 1.5}, f64));
  expect_gradients(f, [](Tensor x) { return reduce_sum(exp(x)); }, constant({-0.5, 1.5}, f64));
}

TEST(ScanGradients, OfEveryOrderByStateWeightsAndElements) {
  set_seed(8);
  const Tensor h = random::normal({3}, {.dtype = f64}), w = random::normal({3, 3}, {.dtype = f64}),
               xs = random::normal({4, 3}, {.dtype = f64});
  expect_gradients([&](Tensor t) { return recurrent(t, w, xs); },
                   [&](Tensor t) { return recurrent_unrolled(t, w, xs); }, h);
  expect_gradients([&](Tensor t) { return recurrent(h, t, xs); },
                   [&](Tensor t) { return recurrent_unrolled(h, t, xs); }, w);
  expect_gradients([&](Tensor t) { return recurrent(h, w, t); }, [&](Tensor t) { return recurrent_unrolled(h, w, t); },
                   xs);
}

TEST(WhileGradients, OfEveryOrder) {
  // x -> x^2 + x/2 as often as it stays below 3; from here that is three times.
  const auto once = [](Tensor y) { return y * y + y / 2; };
  const auto plain = [&](Tensor x) { return reduce_sum(once(once(once(x)))); };
  const Tensor x = constant({0.9, 0.4}, f64);
  for (const std::int64_t bound : {0, 3, 7}) {
    const auto f = [&, bound](Tensor t) {
      return reduce_sum(while_loop([](Tensor y) { return y[0] < 3; }, once, t, {.max_iterations = bound}));
    };
    if (bound > 0) {
      expect_gradients(f, plain, x);
      continue;
    }
    EXPECT_LT(max_abs_difference(gradient(f, x), gradient(plain, x)), 1e-12);
    EXPECT_LT(max_abs_difference(second_order(f, x), second_order(plain, x)), 1e-9);
  }
}

TEST(WhileGradients, OfAnIterationUntilConvergence) {
  const Tensor x = constant({2.0, 9.0}, f64);
  for (const std::int64_t bound : {0, 32}) {
    const Tensor g = gradient([&](Tensor t) { return reduce_sum(root(t, {.max_iterations = bound})); }, x);
    EXPECT_LT(max_abs_difference(g, 0.5 / sqrt(x)), 1e-8);
  }
}

TEST(WhileGradients, WithoutBoundInATraceItSaysHowLongItMayBe) {
  const auto counted = [](Tensor x, Tensor n) {
    return std::get<0>(while_loop([&](Tensor, Tensor i) { return i < n; },
                                  [](Tensor y, Tensor i) { return std::tuple{y + 1e-9 * y, i + 1}; },
                                  std::tuple{x, constant(0)}));
  };
  const auto slope = function([&](Tensor x, Tensor n) { return gradient([&](Tensor t) { return counted(t, n); }, x); });
  const Tensor x = constant(1.0, f64);
  EXPECT_GT(slope(x, constant(262'144)).item(), 1);
  EXPECT_THROW(slope(x, constant(262'145)).item(), OutOfRange);
  EXPECT_GT(function(counted)(x, constant(262'145)).item(), 1) << "without its gradient it has no bound";
}

TEST(WhileGradients, WithoutBoundInATrace) {
  // Slow decay: many iterations, whose number depends on the data.
  const auto f = [](Tensor x) {
    return while_loop([](Tensor y) { return y > 1; }, [](Tensor y) { return y * 0.99 + 0.001 * sin(y); }, x);
  };
  const auto slope = [&](Tensor x) { return gradient(f, x); };
  const auto compiled = function([&](Tensor x) { return std::pair{slope(x), gradient(slope, x)}; });
  for (const double start : {0.5, 1.001, 2.0, 50.0}) {
    double y = start, expected = 1;
    for (; y > 1; y = y * 0.99 + 0.001 * std::sin(y)) expected *= 0.99 + 0.001 * std::cos(y);
    const Tensor x = constant(start, f64);
    const auto [first, second] = compiled(x);
    EXPECT_NEAR(first.item(), expected, 1e-12) << start;
    EXPECT_NEAR(slope(x).item(), expected, 1e-12) << start;
    EXPECT_NEAR(second.item(), gradient(slope, x).item(), 1e-12) << start;
  }
}

TEST(ControlGradients, NestedMatchDifferences) {
  set_seed(5);
  const Tensor x = random::uniform({4, 3}, {.low = 0.2, .high = 1.4, .dtype = f64});
  const auto f = function([](Tensor t) {
    GradientTape tape;
    tape.watch(t);
    const auto [last, all] = scan(
        [](Tensor s, Tensor row) {
          const Tensor inner = scan([](Tensor u, Tensor e) { return std::pair{u + e * e, u}; }, s, row).first;
          const Tensor chosen = cond(
              inner > 3,
              [&] {
                return while_loop([](Tensor v) { return v > 1; }, [](Tensor v) { return v / 2; }, inner,
                                  {.max_iterations = 10});
              },
              [&] { return inner * reduce_prod(row); });
          return std::pair{chosen, chosen * row};
        },
        constant(0.5, f64), t);
    const Tensor y = last + reduce_sum(all);
    return std::pair{y, tape.gradient(y, t)};
  });
  const Tensor g = f(x).second;
  const std::vector<double> at = x.to_vector<double>(), slopes = g.to_vector<double>();
  for (std::size_t i = 0; i < at.size(); ++i) {
    std::vector<double> above = at, below = at;
    above[i] += 1e-6;
    below[i] -= 1e-6;
    const double difference =
        (f(from_values(above, x.shape())).first.item() - f(from_values(below, x.shape())).first.item()) / 2e-6;
    EXPECT_NEAR(slopes[i], difference, 1e-6 * (1 + std::abs(difference))) << i;
  }
}

/// Counts the nodes that walks back through regions may meet, while it lives.
struct CountedWalks {
  inline static std::vector<std::size_t> met;  // walk by walk
  inline static decltype(Transforms::vjp) real;

  CountedWalks() {
    met.clear();
    real = Transforms::vjp;
    Transforms::vjp = [](In ys, In sources, In seeds, In ends) {
      met.push_back(nodes_between(ys, ends));
      return real(ys, sources, seeds, ends);
    };
  }
  ~CountedWalks() { Transforms::vjp = real; }

  static std::size_t nodes_between(In ys, In ends) {
    std::set<const Node*> seen;
    for (const Tensor& end : ends) seen.insert(end.node().get());
    const std::size_t at_ends = seen.size();
    std::vector<const Node*> pending;
    for (const Tensor& y : ys) pending.push_back(y.node().get());
    while (!pending.empty()) {
      const Node* node = pending.back();
      pending.pop_back();
      if (!seen.insert(node).second) continue;
      for (const Ref<Node>& operand : node->inputs) pending.push_back(operand.get());
    }
    return seen.size() - at_ends;
  }
};

/// Operands that nobody wants the gradient of, such as a mask, lead back into all that was computed before.
TEST(ControlGradients, AWalkBackEndsWhereItsRegionBegins) {
  struct Row {
    const char* name;
    std::function<Tensor(Tensor x, Tensor w, Tensor mask)> block;
  };
  const Row rows[] = {
      {"recompute_grad",
       [](Tensor x, Tensor w, Tensor mask) { return recompute_grad([&](Tensor t) { return tanh(t * w) * mask; })(x); }},
      {"custom_gradient",
       [](Tensor x, Tensor w, Tensor mask) {
         return custom_gradient([&](Tensor t) { return std::pair{t * w * mask, [](Tensor dy) { return dy; }}; })(x);
       }},
      {"while_loop",
       [](Tensor x, Tensor w, Tensor mask) {
         return while_loop([](Tensor y) { return y[0] < 3; }, [&](Tensor y) { return y * w * mask; }, x);
       }},
  };
  constexpr std::size_t depth = 6;
  const Tensor mask = ones({4});
  for (const Row& row : rows) {
    const CountedWalks counted;
    const std::vector<Spec> specs(2, Spec{f32, {4}});
    const RegionTrace trace("this test", specs, [&](In in) {
      GradientTape tape;
      tape.watch(in[1]);
      Tensor y = in[0] * in[1];
      for (std::size_t i = 0; i < depth; ++i) y = row.block(y, in[1], mask);
      return Tensors{tape.gradient(reduce_sum(y), in[1])};
    });
    const std::vector<std::size_t>& met = CountedWalks::met;
    ASSERT_GE(met.size(), depth) << row.name;
    for (std::size_t i = 0; i < met.size(); ++i) EXPECT_EQ(met[i], met[i % (met.size() / depth)]) << row.name;
  }
}

TEST(ControlGradients, ReachVariablesReadInside) {
  Variable w(constant(3.0, f64), "w");
  const auto loss = [&] {
    return scan([&](Tensor s, Tensor x) { return std::pair{s * w.value() + x, s}; }, constant(1.0, f64),
                constant({1.0, 2.0}, f64))
        .first;
  };  // w^2 + w + 2
  {
    GradientTape tape;
    const Tensor y = loss();
    EXPECT_EQ(tape.gradient(y, Variables{w})[0].item(), 7);
  }
  const auto step = function([&] {
    GradientTape tape;
    const Tensor y = loss();
    w.assign_sub(0.5 * tape.gradient(y, Variables{w})[0]);
    return y;
  });
  EXPECT_EQ(step().item(), 14);
  EXPECT_EQ(w.value().item(), -0.5);
}

TEST(ControlGradients, MayBeTakenInsideABody) {
  Variable w(constant({1.0, 2.0}, f64), "w");
  const auto descend = [&](Tensor x) {  // gradient descent on sum((w - x)^2) as a loop, from w
    return while_loop([](Tensor, Tensor n) { return n < 5; },
                      [&](Tensor v, Tensor n) {
                        const Tensor g = gradient([&](Tensor t) { return reduce_sum(square(t - x) * square(w)); }, v);
                        return std::tuple{v - 0.1 * g, n + 1};
                      },
                      std::tuple{w.value(), constant(0)}, {.max_iterations = 8});
  };
  const Tensor x = constant({3.0, -1.0}, f64);
  std::vector<double> v{1, 2};
  const double at[] = {3, -1}, scale[] = {1, 4};
  for (int n = 0; n < 5; ++n)
    for (std::size_t i = 0; i < 2; ++i) v[i] -= 0.1 * 2 * (v[i] - at[i]) * scale[i];
  EXPECT_LT(max_abs_difference(std::get<0>(descend(x)), from_values(v, Shape{2})), 1e-12);
  // A tape of a Variable that is read in a body, and the sum of its gradients over the elements.
  const auto total = [&](Tensor xs) {
    return scan(
               [&](Tensor sum, Tensor e) {
                 GradientTape tape;
                 const Tensor loss = reduce_sum(square(w) * e);
                 return std::pair{sum + tape.gradient(loss, w), loss};
               },
               zeros({2}, f64), xs)
        .first;
  };
  const Tensor xs = constant({1.0, 2.0, 3.0}, f64), expected = 2 * w.value() * 6;
  EXPECT_LT(max_abs_difference(total(xs), expected), 1e-12);
  EXPECT_TRUE(bitwise_equal(function(total)(xs), total(xs)));
}

TEST(ControlGradients, ForwardModeIsTheirTranspose) {
  set_seed(12);
  const Tensor w = random::normal({3, 3}, {.dtype = f64}), xs = random::normal({4, 3}, {.dtype = f64});
  const Tensor h = random::normal({3}, {.dtype = f64}), v = random::normal({3}, {.dtype = f64});
  const auto f = [&](Tensor t) { return recurrent(t, w, xs); };
  EXPECT_NEAR(jvp(f, h, v).second.item(), reduce_sum(gradient(f, h) * v).item(), 1e-12);
  const auto repeated = [](Tensor t) {
    return while_loop([](Tensor y) { return y[0] < 3; }, [](Tensor y) { return y * y + 1; }, t);
  };
  EXPECT_LT(
      max_abs_difference(jvp(repeated, h, v).second, reshape(matmul(jacobian(repeated, h), reshape(v, {3, 1})), {3})),
      1e-12);
  const Tensor bent = hessian(f, h);
  EXPECT_LT(max_abs_difference(bent, transpose(bent)), 1e-12);
  EXPECT_LT(max_abs_difference(bent, hessian([&](Tensor t) { return recurrent_unrolled(t, w, xs); }, h)), 1e-10);
}

// ---------------------------------------------------------------- rows

template <class F> void expect_rows(F f, const Tensor& xs) {
  std::vector<Tensor> each;
  for (std::int64_t i = 0; i < xs.shape()[0]; ++i) each.push_back(f(xs[i]));
  const Tensor expected = stack(each), got = vectorized_map(f, xs);
  EXPECT_EQ(got.spec(), expected.spec());
  EXPECT_LT(max_abs_difference(got, expected), 1e-12);
  const auto compiled = function([&](Tensor t) { return vectorized_map(f, t); });
  EXPECT_TRUE(bitwise_equal(compiled(xs), got));
}

TEST(ControlOnRows, IsALoopOverThem) {
  set_seed(9);
  const Tensor rows = random::normal({5, 4}, {.dtype = f64}), w = random::normal({4, 4}, {.dtype = f64});
  expect_rows([](Tensor x) { return magnitude(x); }, rows);  // predicates differ
  const Tensor flag = constant(true);
  expect_rows([&](Tensor x) { return cond(flag, [&] { return x * 2; }, [&] { return sin(x); }); }, rows);
  expect_rows([](Tensor x) { return root(abs(x) + 1); }, rows);  // as often as each row needs
  expect_rows([&](Tensor x) { return recurrent(zeros({4}, f64), w, reshape(x, {1, 4}) * ones({3, 1}, f64)); }, rows);
  expect_rows([&](Tensor x) { return recurrent(x, w, w); }, rows);  // elements shared
  expect_rows([](Tensor x) { return reduce_sum(x) * 2; }, rows);
}

TEST(ControlOnRows, GradientsToo) {
  set_seed(10);
  const Tensor rows = random::normal({5, 4}, {.dtype = f64}), w = random::normal({4, 4}, {.dtype = f64});
  expect_rows([](Tensor x) { return gradient([](Tensor t) { return reduce_sum(magnitude(t)); }, x); }, rows);
  expect_rows([&](Tensor x) { return gradient([&](Tensor t) { return recurrent(t, w, w); }, x); }, rows);
  expect_rows([&](Tensor x) { return gradient([&](Tensor t) { return recurrent(x, t, w); }, w); }, rows);
  expect_rows(
      [](Tensor x) {
        return gradient([](Tensor t) { return reduce_sum(root(abs(t) + 1, {.max_iterations = 32})); }, x);
      },
      rows);
}

// ---------------------------------------------------------------- rows at once

TEST(ScanRows, DividesAndJoins) {
  set_seed(11);
  const Tensor x = random::normal({10, 3}, {.dtype = f64}), w = random::normal({3, 2}, {.dtype = f64});
  const auto body = [&](In carries, In chunks) {
    const Tensor y = tanh(matmul(chunks[0], w));
    return Tensors{carries[0] + reduce_sum(y), y};
  };
  const Tensor zero = constant(0.0, f64), whole = tanh(matmul(x, w));
  for (std::int64_t rows : {1, 2, 3, 4, 10, 99}) {
    const auto run = [&](Tensor t) { return scan_rows("test", body, Tensors{zero}, Tensors{t}, rows); };
    const Tensors got = run(x);
    EXPECT_NEAR(got[0].item(), reduce_sum(whole).item(), 1e-12);
    EXPECT_TRUE(bitwise_equal(got[1], whole)) << rows;
    const auto f = [&](Tensor t) {
      const Tensors y = run(t);
      return y[0] * 2 + reduce_sum(square(y[1]));
    };
    const auto plain = [&](Tensor t) {
      const Tensor y = tanh(matmul(t, w));
      return reduce_sum(y) * 2 + reduce_sum(square(y));
    };
    EXPECT_LT(max_abs_difference(gradient(f, x), gradient(plain, x)), 1e-12) << rows;
    EXPECT_LT(max_abs_difference(second_order(f, x), second_order(plain, x)), 1e-10) << rows;
  }
  EXPECT_TRUE(mentions(error_of([&] { scan_rows("map_batches", body, Tensors{zero}, Tensors{zero}, 2); }), "scalar"));
}

}  // namespace
}  // namespace gradus::control_gradients_test
