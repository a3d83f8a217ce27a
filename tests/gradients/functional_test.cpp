/// The functional transforms: values by hand, forward against reverse, lazily, traced, nested in each other, of models
/// and compiled functions; and what is refused.
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/function/function.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/custom_gradient.h"
#include "gradus/gradients/functional.h"
#include "gradus/nn/layers.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "tests/errors.h"

namespace gradus::functional_test {
namespace {

Tensor noise(const Shape& shape, std::uint64_t seed) { return random::normal(shape, {.dtype = f64, .seed = seed}); }
void expect_near(const Tensor& got, const Tensor& want, double tolerance) {
  EXPECT_LE(max_abs_difference(got, want), tolerance) << got << want;
}

Tensor cubes(Tensor x) { return reduce_sum(pow(x, 3)); }
/// [3] -> [2], no two derivatives alike.
Tensor bent(Tensor x) {
  const Tensor w = cast(constant({{1.0, -2.0}, {0.5, 3.0}, {-1.5, 0.25}}), x.dtype());
  return tanh(reshape(matmul(reshape(x, {1, 3}), w), {2})) * reduce_sum(square(x)) + exp(x[0]);
}
Tensor scalar_bent(Tensor x) { return reduce_sum(bent(x) * bent(x)); }

/// The matrix of central differences of f, [y..., x...].
Tensor differences(auto f, const Tensor& x) {
  constexpr double step = 1e-5;
  std::vector<Tensor> columns;
  const std::int64_t k = x.shape().size();
  for (std::int64_t i = 0; i < k; ++i) {
    const Tensor move = reshape(cast(equal(range(k, i64), constant(i)), f64) * step, x.shape());
    columns.push_back((f(x + move) - f(x - move)) / (2 * step));
  }
  Shape shape = columns[0].shape();
  for (std::int64_t d : x.shape()) shape.push_back(d);
  return reshape(transpose(reshape(stack(columns), {k, -1})), shape);
}

// ---------------------------------------------------------------- values

TEST(Functional, Jvp) {
  const auto [y, slope] = jvp(cubes, constant({1.0, 2.0, 3.0}), constant({1.0, 0.0, 1.0}));
  EXPECT_EQ(y.item(), 36);
  EXPECT_EQ(slope.item(), 30);
  const Tensor x = noise({3}, 1), v = noise({3}, 2);
  expect_near(jvp(bent, x, v).second, reshape(matmul(differences(bent, x), reshape(v, {3, 1})), {2}), 1e-8);
}

TEST(Functional, Vjp) {
  const auto [y, pullback] = vjp(bent, noise({3}, 1));
  const Tensor u = noise({2}, 3), j = differences(bent, noise({3}, 1));
  EXPECT_TRUE(bitwise_equal(y, bent(noise({3}, 1))));
  expect_near(pullback(u), reshape(matmul(reshape(u, {1, 2}), j), {3}), 1e-8);
  expect_near(pullback(u * 2), pullback(u) * 2, 1e-14);
}

TEST(Functional, ThePullbackCallsTheFunctionOnceAndOutlivesIt) {
  int calls = 0;
  std::function<Tensor(Tensor)> pull;
  {
    const auto [y, pullback] = vjp(
        [&](Tensor x) {
          ++calls;
          return exp(x) * x;
        },
        constant({1.0, 2.0}));
    pull = pullback;
    EXPECT_GT(reduce_sum(y).item(), 0);
  }
  synchronize();
  const Tensor a = pull(constant({1.0, 0.0})), b = pull(constant({0.0, 1.0}));
  EXPECT_EQ(calls, 1);
  EXPECT_NEAR(a[0].item(), 2 * std::exp(1.0), 1e-5);
  EXPECT_EQ(a[1].item(), 0);
  EXPECT_NEAR(b[1].item(), 3 * std::exp(2.0), 1e-4);
}

TEST(Functional, JacobianInBothModes) {
  const Tensor x = noise({3}, 1);
  expect_near(jacobian(bent, x), differences(bent, x), 1e-8);  // 2 outputs: reverse
  const auto tall = [](Tensor t) { return concat({bent(t), t * t, bent(t) / 2}); };
  EXPECT_EQ(jacobian(tall, x).shape(), (Shape{7, 3}));
  expect_near(jacobian(tall, x), differences(tall, x), 1e-8);  // 7 outputs: forward
  const auto outer = [](Tensor t) { return matmul(t, transpose(t)); };
  const Tensor m = noise({2, 3}, 2);
  EXPECT_EQ(jacobian(outer, m).shape(), (Shape{2, 2, 2, 3}));
  expect_near(jacobian(outer, m), differences(outer, m), 1e-8);
  EXPECT_TRUE(bitwise_equal(jacobian([](Tensor t) { return square(t); }, constant({1.0, 2.0})),
                            constant({{2.0, 0.0}, {0.0, 4.0}})));
}

TEST(Functional, HessianAndItsProducts) {
  const Tensor x = noise({3}, 1), v = noise({3}, 2);
  const Tensor h = hessian(scalar_bent, x);
  expect_near(h, differences([](Tensor t) { return gradient(scalar_bent, t); }, x), 1e-7);
  expect_near(h, transpose(h), 1e-12);
  expect_near(hessian_vector_product(scalar_bent, x, v), reshape(matmul(h, reshape(v, {3, 1})), {3}), 1e-12);
  EXPECT_EQ(hessian([](Tensor t) { return reduce_sum(t * t); }, zeros({2, 2})).shape(), (Shape{2, 2, 2, 2}));
}

TEST(Functional, WhatDoesNotDependHasZeros) {
  const Tensor x = constant({1.0, 2.0}), c = constant(3.0);
  const auto constant_function = [&](Tensor) { return c; };
  EXPECT_EQ(jvp(constant_function, x, x).second.item(), 0);
  EXPECT_TRUE(bitwise_equal(vjp(constant_function, x).second(c), zeros({2})));
  EXPECT_TRUE(bitwise_equal(jacobian(constant_function, x), zeros({2})));
  EXPECT_TRUE(bitwise_equal(hessian([](Tensor t) { return reduce_sum(t); }, x), zeros({2, 2})));
  EXPECT_TRUE(bitwise_equal(hessian_vector_product(constant_function, x, x), zeros({2})));
  EXPECT_TRUE(bitwise_equal(jacobian([](Tensor t) { return stop_gradient(t); }, x), zeros({2, 2})));
  // Of a function that is linear, piece by piece, second gradients are zero.
  const auto slope = [](Tensor t) { return reduce_sum(gradient([](Tensor s) { return reduce_sum(relu(s) * 3); }, t)); };
  EXPECT_TRUE(bitwise_equal(gradient(slope, x), zeros({2})));
  const auto [by_a, by_b] = gradient([](Tensor a, Tensor) { return reduce_sum(a); }, {x, c});
  EXPECT_TRUE(bitwise_equal(by_a, ones({2})));
  EXPECT_EQ(by_b.item(), 0);
}

TEST(Functional, SumsRepeatNumbersThatMustNotBeLookedThrough) {
  // The walk back of a reshape sees a cotangent that repeats one number.
  const auto f = [](Tensor t) { return reshape(reshape(t, {2, 2}) * 3, {4}); };
  expect_near(jvp(f, noise({4}, 1), noise({4}, 2)).second, noise({4}, 2) * 3, 1e-15);
  GradientTape outer;
  const Tensor u = ones({4}), x = constant({1.0, 2.0, 3.0, 4.0});
  outer.watch(u);
  GradientTape inner;
  inner.watch(x);
  const Tensor dx = inner.gradient(reshape(x, {4}) * x, x, {.output_gradients = u});
  EXPECT_TRUE(bitwise_equal(outer.gradient(reduce_sum(dx), u), x * 2));
}

// ---------------------------------------------------------------- composition

TEST(Functional, ACapturedTensorIsAConstant) {
  const Tensor x = constant(3.0);
  EXPECT_EQ(gradient([&](Tensor t) { return t * x; }, x).item(), 3);
  EXPECT_EQ(jvp([&](Tensor t) { return t * x; }, x, constant(1.0)).second.item(), 3);
  // d/dx (x * d/dy (x*y) at y = x) = 2x
  EXPECT_EQ(gradient([](Tensor s) { return s * gradient([&](Tensor t) { return s * t; }, s); }, x).item(), 6);
  EXPECT_EQ(gradient([](Tensor s) { return s * jvp([&](Tensor t) { return s * t; }, s, ones({})).second; }, x).item(),
            6);
}

TEST(Functional, TransformsNest) {
  const Tensor x = noise({3}, 1), v = noise({3}, 2), w = noise({3}, 3);
  const auto slope = [&](Tensor t) { return jvp(scalar_bent, t, v).second; };
  const auto pulled = [&](Tensor t) { return vjp(bent, t).second(noise({2}, 4)); };
  expect_near(gradient(slope, x), hessian_vector_product(scalar_bent, x, v), 1e-11);
  expect_near(jvp(slope, x, w).second, reduce_sum(w * hessian_vector_product(scalar_bent, x, v)), 1e-11);
  expect_near(jacobian(pulled, x), differences(pulled, x), 1e-7);
  const auto h = [](Tensor t) { return hessian(scalar_bent, t); };
  expect_near(jacobian(h, x), differences(h, x), 1e-5);
  const Tensor third = jacobian(h, x);
  expect_near(third, transpose(third, {2, 0, 1}), 1e-10);
  expect_near(jvp(h, x, v).second, reshape(matmul(third, reshape(v, {3, 1})), {3, 3}), 1e-10);
}

TEST(Functional, UnderVectorizedMap) {
  const Tensor xs = noise({4, 3}, 1), vs = noise({4, 3}, 2);
  const auto looped = [&](auto f) {
    std::vector<Tensor> rows;
    for (std::int64_t i = 0; i < 4; ++i) rows.push_back(f(xs[i]));
    return stack(rows);
  };
  const auto same = [&](auto f) { EXPECT_TRUE(bitwise_equal(vectorized_map(f, xs), looped(f))); };
  same([](Tensor x) { return jacobian(bent, x); });
  same([](Tensor x) { return hessian(scalar_bent, x); });
  same([&](Tensor x) { return jvp(bent, x, vs[0]).second; });
  same([&](Tensor x) { return vjp(bent, x).second(vs[0].rows(0, 2)); });
  same([](Tensor x) { return jvp([](Tensor t) { return gradient(scalar_bent, t); }, x, x).second; });
  same([](Tensor x) {
    return vectorized_map([&](Tensor r) { return hessian_vector_product(scalar_bent, x, r); }, eye(3, f64));
  });
}

TEST(Functional, TheFunctionIsAnything) {
  const auto compiled = function(bent);
  const Tensor x = noise({3}, 1);
  EXPECT_TRUE(bitwise_equal(jacobian(compiled, x), jacobian(bent, x)));
  const Sequential model{Dense(5, tanh), Dense(2)};
  const Tensor batch = random::normal({4, 3}, {.seed = 1});
  model(batch, inference);
  const Tensor j = jacobian(model, batch);
  EXPECT_EQ(j.shape(), (Shape{4, 2, 4, 3}));
  EXPECT_EQ(max_abs_difference(j[0][1][2], zeros({3})), 0);  // examples do not mix
  EXPECT_TRUE(bitwise_equal(vectorized_map(model, batch), model(batch, inference)));
  const Tensor of_rows = vectorized_map([&](Tensor row) { return jacobian(model, row); }, batch);
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 2; ++k) expect_near(of_rows[i][k], j[i][k][i], 1e-6);
}

/// Every transform of every level, in one compiled program and lazily: the same bits.
TEST(Functional, WithinAFunction) {
  const auto all = [](Tensor x, Tensor v, Tensor u) {
    const auto [y, pullback] = vjp(bent, x);
    return std::tuple{y,
                      pullback(u),
                      jvp(bent, x, v).second,
                      jacobian(bent, x),
                      hessian(scalar_bent, x),
                      hessian_vector_product(scalar_bent, x, v),
                      vectorized_map([&](Tensor r) { return hessian_vector_product(scalar_bent, x, r); }, eye(3, f64))};
  };
  const auto compiled = function(all);
  const Tensor x = noise({3}, 1), v = noise({3}, 2), u = noise({2}, 3);
  const auto lazy = all(x, v, u);
  const auto traced = compiled(x, v, u);
  const auto list = [](const auto& results) {
    return std::apply([](const auto&... each) { return std::vector<Tensor>{each...}; }, results);
  };
  for (std::size_t i = 0; i < 7; ++i) EXPECT_TRUE(bitwise_equal(list(lazy)[i], list(traced)[i])) << i;
}

TEST(Functional, SizesThatAreNotKnownWhenTracing) {
  const auto f = [](Tensor t) { return tanh(t) * reduce_sum(t); };
  const auto compiled = function([&](Tensor x) { return std::pair{jacobian(f, x), hessian(cubes, x)}; },
                                 {.input_signature = {{f64, {any_size}}}});
  for (const std::int64_t n : {3, 5, 1, 0}) {
    const Tensor x = noise({n}, 1);
    const auto [j, h] = compiled(x);
    EXPECT_TRUE(bitwise_equal(j, jacobian(f, x))) << n;
    EXPECT_TRUE(bitwise_equal(h, hessian(cubes, x))) << n;
  }
  EXPECT_EQ(compiled.explain().variants, 1);
}

TEST(Functional, UnderATape) {
  Variable w(cast(constant({1.0, 2.0, 3.0}), f64), "w");
  const Tensor x = noise({3}, 1);
  GradientTape tape;
  const Tensor penalty = reduce_sum(square(jacobian([&](Tensor t) { return square(t) * w; }, x)));  // (2 x w)^2
  expect_near(tape.gradient(penalty, w), square(x) * w * 8, 1e-12);
}

TEST(Functional, AFunctionThatLooksAtItsValues) {
  const auto f = [](Tensor t) {
    const Tensor e = exp(t);
    EXPECT_GT(reduce_sum(e).item(), 0);  // computes what is pending, but keeps how it was made
    return e * t;
  };
  const Tensor x = noise({3}, 1);
  const auto quiet = [](Tensor t) { return exp(t) * t; };
  expect_near(jacobian(f, x), jacobian(quiet, x), 1e-15);
  expect_near(vjp(f, x).second(x), vjp(quiet, x).second(x), 1e-15);
}

TEST(Functional, BranchesOfTheArgument) {
  const auto f = [](Tensor t) { return bool(reduce_sum(t) > 0) ? t * t : t * 3; };
  const auto compiled = function([&](Tensor x) { return jacobian(f, x); });
  for (const Tensor& x : {constant({1.0, 2.0}), constant({1.0, -2.0})})
    for (const Tensor& j : {jacobian(f, x), compiled(x)})
      EXPECT_TRUE(bitwise_equal(j, x[1].item() > 0 ? constant({{2.0, 0.0}, {0.0, 4.0}}) : eye(2) * 3)) << j;
}

TEST(Functional, OpByOp) {
  const auto all = [](Tensor x) { return std::pair{jacobian(bent, x), hessian(scalar_bent, x)}; };
  const Tensor x = noise({3}, 1);
  const auto [j, h] = function(all, {.run_eagerly = true})(x);
  EXPECT_TRUE(bitwise_equal(j, jacobian(bent, x)));
  EXPECT_TRUE(bitwise_equal(h, hessian(scalar_bent, x)));
}

TEST(Functional, OfRecomputedAndCustomGradients) {
  const Tensor x = noise({3}, 1), v = noise({3}, 2);
  const auto again = [](Tensor t) { return recompute_grad(bent)(t); };
  EXPECT_TRUE(bitwise_equal(jacobian(again, x), jacobian(bent, x)));
  expect_near(jvp(again, x, v).second, jvp(bent, x, v).second, 1e-14);
  expect_near(hessian([&](Tensor t) { return reduce_sum(again(t) * again(t)); }, x), hessian(scalar_bent, x), 1e-12);
  const auto odd = [](Tensor t) {
    return custom_gradient([](Tensor s) { return std::pair{exp(s), [s](Tensor dy) { return dy * sin(s); }}; })(t);
  };
  expect_near(jvp(odd, x, v).second, v * sin(x), 1e-15);
  expect_near(jacobian(odd, x), eye(3, f64) * sin(x), 1e-15);
  expect_near(vectorized_map([&](Tensor d) { return jvp(odd, x, d).second; }, eye(3, f64)), eye(3, f64) * sin(x),
              1e-15);
}

TEST(Functional, APullbackOfAnotherTraceIsAMistake) {
  std::function<Tensor(Tensor)> escaped;
  const auto f = function([&](Tensor x) {
    auto [y, pullback] = vjp([](Tensor t) { return exp(t); }, x);
    escaped = pullback;
    return pullback(y);
  });
  const Tensor x = constant({1.0, 2.0});
  expect_near(f(x), exp(x + x), 1e-5);
  expect_says(error_of<InvalidArgument>([&] { escaped(x); }), "symbolic");
}

TEST(Functional, OfNoElements) {
  const Tensor none = zeros({0});
  EXPECT_EQ(jacobian([](Tensor t) { return t * 2; }, none).shape(), (Shape{0, 0}));
  EXPECT_EQ(hessian(cubes, none).shape(), (Shape{0, 0}));
  EXPECT_EQ(jacobian([](Tensor t) { return reduce_sum(t); }, none).to_vector<float>().size(), 0u);
}

// ---------------------------------------------------------------- mistakes

TEST(Functional, Mistakes) {
  const Tensor x = constant({1.0, 2.0, 3.0}), two = constant({1.0, 2.0});
  expect_says(error_of<InvalidArgument>([&] { jvp(cubes, x, two); }), "jvp: the tangent is f32[2], expected f32[3]");
  expect_says(error_of<InvalidArgument>([&] { vjp(cubes, x).second(x); }),
              "the cotangent is f32[3], expected that of the result, f32[]");
  expect_says(error_of<InvalidArgument>([&] { hessian_vector_product(cubes, x, two); }),
              "the vector is f32[2], expected f32[3]");
  expect_says(error_of<InvalidArgument>([&] { jvp(cubes, x, Tensor()); }),
              "jvp: the tangent is empty, expected f32[3]");
  expect_says(error_of<InvalidArgument>([&] { vjp(cubes, x).second(Tensor()); }),
              "the cotangent is empty, expected that of the result, f32[]");
  expect_says(error_of<InvalidArgument>([&] { hessian([](Tensor t) { return t * 2; }, x); }),
              "gives a scalar, got f32[3]");
  expect_says(error_of<InvalidArgument>([&] { hessian_vector_product([](Tensor t) { return t * 2; }, x, x); }),
              "gives a scalar");
  expect_says(error_of<InvalidArgument>([&] { gradient([](Tensor t) { return t * 2; }, x); }), "not a scalar");
  expect_says(error_of<InvalidArgument>([&] { jacobian([](Tensor t) { return argmax(t); }, x); }),
              "what the function gave is i32[]");
  expect_says(error_of<InvalidArgument>([&] { jvp(cubes, constant({1, 2}), two); }),
              "the argument is i32[2]; only floating types");
  expect_says(error_of<InvalidArgument>([&] { vjp(cubes, Tensor()); }), "vjp: the argument is empty");
  expect_says(error_of<InvalidArgument>([&] { jacobian([](Tensor) { return Tensor(); }, x); }),
              "what the function gave is empty");
}

}  // namespace
}  // namespace gradus::functional_test
