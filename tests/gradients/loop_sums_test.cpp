/// Gradients of loops by what all iterations see: against the unrolled loop, and what of them waits until after it.
#include <gtest/gtest.h>
#include <functional>
#include <set>
#include "gradus/base/threads.h"
#include "gradus/ops/concat.h"
#include "tests/gradients/control_functions.h"

namespace gradus::loop_sums_test {
namespace {

using Body = std::function<Tensor(Tensor h, Tensor w, Tensor x)>;  // the next h

struct LoopRow {
  const char* name;
  Shape h, w, xs;
  Body body;
  bool waits;  // the gradient by w is no carry of the loop
};

Tensor bias_of(const Tensor& w) { return w[0]; }
Tensor columns(const Tensor& w, std::int64_t begin, std::int64_t size) {
  return slice(w, {0, begin}, {w.shape()[0], size});
}

const LoopRow rows[] = {
    {"product", {2, 3}, {3, 3}, {5, 2, 3}, [](Tensor h, Tensor w, Tensor x) { return tanh(matmul(h, w) + x); }, true},
    {"one_row", {1, 4}, {4, 4}, {3, 1, 4}, [](Tensor h, Tensor w, Tensor x) { return sin(matmul(h, w) * x); }, true},
    {"one_iteration",
     {2, 3},
     {3, 3},
     {1, 2, 3},
     [](Tensor h, Tensor w, Tensor x) { return tanh(matmul(h, w) + x); },
     true},
    {"from_the_left",
     {3, 2},
     {3, 3},
     {4, 3, 2},
     [](Tensor h, Tensor w, Tensor x) { return tanh(matmul(w, h) + x); },
     true},
    {"transposed",
     {2, 3},
     {3, 3},
     {4, 2, 3},
     [](Tensor h, Tensor w, Tensor x) { return tanh(matmul(h, transpose(w)) + x); },
     true},
    {"transposed_state",
     {3, 2},
     {3, 3},
     {4, 2, 3},
     [](Tensor h, Tensor w, Tensor x) { return transpose(tanh(matmul(transpose(h), w) + x)); },
     true},
    {"twice",
     {2, 3},
     {3, 3},
     {4, 2, 3},
     [](Tensor h, Tensor w, Tensor x) { return tanh(matmul(h, w) + matmul(x, w)); },
     true},
    {"gates",
     {2, 3},
     {3, 6},
     {4, 2, 3},
     [](Tensor h, Tensor w, Tensor x) {
       return sigmoid(matmul(h, columns(w, 0, 3))) * tanh(matmul(h * x, columns(w, 3, 3)));
     },
     true},
    {"sixty_doublings",
     {2, 3},
     {3, 3},
     {4, 2, 3},
     [](Tensor h, Tensor w, Tensor x) {
       for (int i = 0; i < 60; ++i) w = w + w;
       return tanh(matmul(h, w) * 0x1p-60 + x);
     },
     true},
    {"product_and_bias",
     {2, 3},
     {3, 3},
     {4, 2, 3},
     [](Tensor h, Tensor w, Tensor x) { return tanh(matmul(h, w) + bias_of(w) + x); },
     false},
    {"bias_alone",
     {2, 3},
     {3, 3},
     {4, 2, 3},
     [](Tensor h, Tensor w, Tensor x) { return tanh(h + bias_of(w) + x); },
     false},
    {"of_w_alone",
     {3, 3},
     {3, 3},
     {4, 3, 3},
     [](Tensor h, Tensor w, Tensor x) { return tanh(h + matmul(w, w) * x); },
     false},
    {"large_between",
     {1, 2},
     {2, 64},
     {3, 1, 2},
     [](Tensor h, Tensor w, Tensor x) { return tanh(matmul(sin(matmul(h, w)), transpose(w)) + x); },
     false},
};

class LoopRows : public testing::TestWithParam<LoopRow> {};

Tensor looped(const Body& body, const Tensor& h, const Tensor& w, const Tensor& xs) {
  const auto [last, all] = scan([&](Tensor s, Tensor x) { return std::pair{body(s, w, x), s * s}; }, h, xs);
  return reduce_sum(sin(last)) + reduce_sum(all);
}
Tensor unrolled(const Body& body, Tensor h, const Tensor& w, const Tensor& xs) {
  Tensor sum = constant(0.0, f64);
  for (std::int64_t i = 0; i < xs.shape()[0]; ++i) {
    sum = sum + reduce_sum(h * h);
    h = body(h, w, xs[i]);
  }
  return reduce_sum(sin(h)) + sum;
}

TEST_P(LoopRows, GradientsAreThoseOfTheUnrolledLoop) {
  const LoopRow& row = GetParam();
  set_seed(4);
  const Tensor h = random::normal(row.h, {.dtype = f64}), w = random::normal(row.w, {.dtype = f64}),
               xs = random::normal(row.xs, {.dtype = f64});
  const auto gradients = [&](auto loop) {
    return [&, loop](Tensor h, Tensor w, Tensor xs) {
      GradientTape tape;
      for (const Tensor& t : {h, w, xs}) tape.watch(t);
      const Tensor y = loop(row.body, h, w, xs);
      const auto [dh, dw, dxs] = tape.gradient(y, {h, w, xs});
      return std::array{dh, dw, dxs};
    };
  };
  const auto expected = gradients(unrolled)(h, w, xs), got = gradients(looped)(h, w, xs);
  const auto step = function(gradients(looped)),
             as_written = function(gradients(looped), {.disable = {"hoist", "fuse"}});
  const auto compiled = step(h, w, xs), plain = as_written(h, w, xs);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_LT(max_abs_difference(got[i], expected[i]), 1e-12 * (1 + max_abs_difference(expected[i], expected[i] * 0)));
    EXPECT_TRUE(bitwise_equal(compiled[i], got[i])) << i;
    EXPECT_TRUE(bitwise_equal(plain[i], got[i])) << i;
  }
}

TEST_P(LoopRows, SecondOrder) {
  const LoopRow& row = GetParam();
  set_seed(5);
  const Tensor h = random::normal(row.h, {.dtype = f64}), w = random::normal(row.w, {.dtype = f64}),
               xs = random::normal(row.xs, {.dtype = f64});
  const auto second = [&](auto loop) {
    return gradient(
        [&](Tensor w) { return reduce_sum(square(gradient([&](Tensor v) { return loop(row.body, h, v, xs); }, w))); },
        w);
  };
  const Tensor expected = second(unrolled), got = second(looped);
  EXPECT_LT(max_abs_difference(got, expected), 1e-10 * (1 + max_abs_difference(expected, expected * 0)));
}

TEST_P(LoopRows, OneProgramForAnyNumberOfIterations) {
  const LoopRow& row = GetParam();
  const auto by_w = [&](Tensor h, Tensor w, Tensor xs) {
    return gradient([&](Tensor v) { return looped(row.body, h, v, xs); }, w);
  };
  Shape open = row.xs;
  open.set(0, any_size);
  const auto step = function(by_w, {.input_signature = {{f64, row.h}, {f64, row.w}, {f64, open}}});
  set_seed(9);
  const Tensor h = random::normal(row.h, {.dtype = f64}), w = random::normal(row.w, {.dtype = f64});
  for (const std::int64_t time : {3, 1, 6}) {
    Shape shape = row.xs;
    shape.set(0, time);
    const Tensor xs = random::normal(shape, {.dtype = f64});
    EXPECT_TRUE(bitwise_equal(step(h, w, xs), by_w(h, w, xs))) << time;
  }
  EXPECT_EQ(step.explain().variants, 1);
}

/// Whether a sum as large as w is carried from iteration to iteration.
TEST_P(LoopRows, WhatCanWaitIsNoCarry) {
  const LoopRow& row = GetParam();
  const Tensor h = ones(row.h), w = ones(row.w), xs = ones(row.xs);
  GradientTape tape;
  tape.watch(w);
  const auto [last, all] = scan([&](Tensor s, Tensor x) { return std::pair{row.body(s, w, x), s}; }, h, xs);
  const Tensor dw = tape.gradient(reduce_sum(last), w);
  bool carried = false;
  std::vector<const Node*> pending{dw.node().get()};
  for (std::set<const Node*> seen; !pending.empty();) {
    const Node* node = pending.back();
    pending.pop_back();
    if (!seen.insert(node).second) continue;
    carried = carried || (node->op.is_control() && node->spec == w.spec() && w.spec() != h.spec());
    if (!node->op.is_control())
      for (const Ref<Node>& in : node->inputs) pending.push_back(in.get());
  }
  EXPECT_EQ(carried, w.spec() != h.spec() && !row.waits);
}

INSTANTIATE_TEST_SUITE_P(Rows, LoopRows, testing::ValuesIn(rows), [](const auto& row) { return row.param.name; });

TEST(LoopSums, OfNarrowWeightsAreRoundedOnce) {
  set_seed(6);
  const Tensor h = random::normal({4, 8}), w = random::normal({8, 8}, {.stddev = 0.3}), xs = random::normal({40, 4, 8});
  const auto by_weights = [](const Tensor& h, const Tensor& w, const Tensor& xs) {
    return gradient(
        [&](Tensor v) {
          return reduce_sum(
              cast(scan([&](Tensor s, Tensor x) { return std::pair{tanh(matmul(s, v) + x), s}; }, h, xs).second, f32));
        },
        w);
  };
  const Tensor narrow = by_weights(cast(h, bf16), cast(w, bf16), cast(xs, bf16)), wide = by_weights(h, w, xs);
  const double scale = max_abs_difference(wide, zeros_like(wide));
  EXPECT_LT(max_abs_difference(cast(narrow, f32), wide), 0.03 * scale);  // sums of 160 rounded terms were off by more
}

TEST(SliceGradients, LieSideBySide) {
  const Tensor x = constant({{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {0.5, 1.5, 2.5, 3.5, 4.5, 5.5}});
  const auto f = [](Tensor t) {
    return reduce_sum(exp(columns(t, 3, 2))) + reduce_sum(sin(columns(t, 0, 1))) + reduce_sum(square(columns(t, 1, 2)));
  };
  GradientTape tape;
  tape.watch(x);
  const Tensor dx = tape.gradient(f(x), x);
  const Concat* joined = dx.node()->op.as<Concat>();
  ASSERT_TRUE(joined);
  EXPECT_EQ(dx.node()->inputs.size(), 4);  // the last column is zeros
  const Tensor expected =
      concat({cos(columns(x, 0, 1)), 2 * columns(x, 1, 2), exp(columns(x, 3, 2)), zeros({2, 1})}, 1);
  EXPECT_EQ(max_abs_difference(dx, expected), 0);
}

TEST(SliceGradients, ThatOverlapAreAdded) {
  const Tensor x = constant({1.0, 2.0, 3.0, 4.0});
  const auto f = [](Tensor t) {
    return reduce_sum(square(slice(t, {0}, {3}))) + reduce_sum(square(slice(t, {1}, {2}))) + reduce_sum(t);
  };
  EXPECT_EQ(gradient(f, x).to_vector<float>(), (std::vector<float>{3, 9, 13, 1}));
}

}  // namespace
}  // namespace gradus::loop_sums_test
