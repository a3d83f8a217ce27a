/// function: signatures, dynamic sizes, captures, results of every shape, and what is refused.
#include <gtest/gtest.h>
#include "gradus/compiler/pipeline.h"
#include "gradus/function/function.h"
#include "gradus/function/pending.h"
#include "gradus/function/variable.h"
#include "gradus/gradients/tape.h"
#include "gradus/graph/graph.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_key.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus::function_test {
namespace {

TEST(Function, GivesTheBitsOfTheLazyCall) {
  const Tensor x = random::normal({7, 33}, {.seed = 1}), w = random::normal({33, 5}, {.seed = 2});
  const auto f = [](const Tensor& a, const Tensor& b) { return tanh(matmul(a, b)) * 2 + reduce_mean(a); };
  const auto compiled = function([&](Tensor a, Tensor b) { return f(a, b); });
  EXPECT_TRUE(bitwise_equal(compiled(x, w), f(x, w)));
  EXPECT_EQ(compiled.explain().variants, 1);
}

TEST(Function, AThirdBatchSizeIsNotCompiled) {
  const auto f = function([](Tensor x, Tensor y) {
    return reduce_mean(square(reshape(x, {x.shape()[0], -1}) - expand_dims(y, 1)), {.axis = {1}});
  });
  for (int n : {64, 40, 17, 1, 64, 0}) {
    const Tensor x = random::normal({n, 2, 3}, {.seed = 3}), y = random::normal({n}, {.seed = 4});
    const Tensor wanted = reduce_mean(square(reshape(x, {n, 6}) - expand_dims(y, 1)), {.axis = {1}});
    EXPECT_TRUE(bitwise_equal(f(x, y), wanted)) << n;
  }
  const Explanation e = f.explain();
  EXPECT_EQ(e.variants, 2);
  ASSERT_EQ(e.retraces.size(), 1u);
  EXPECT_EQ(e.retraces[0].reason, "argument 0: dimension 0 was 64, now 40; argument 1: dimension 0 was 64, now 40");
}

TEST(Function, SizesThatStopAgreeingMakeAVariantOfTheirOwn) {
  const auto f = function([](Tensor x, Tensor y) { return reduce_sum(x) + reduce_sum(y); },
                          {.input_signature = {{f32, {any_size}}, {f32, {any_size}}}});
  EXPECT_EQ(f(ones({3}), ones({3})).item(), 6);
  EXPECT_EQ(f(ones({5}), ones({5})).item(), 10);
  EXPECT_EQ(f.explain().variants, 1);
  EXPECT_EQ(f(ones({5}), ones({2})).item(), 7);
  EXPECT_EQ(f(ones({1}), ones({9})).item(), 10);
  EXPECT_EQ(f.explain().variants, 2);
}

TEST(Function, AMeanOverASizeThatVariesDividesByTheSizeOfTheCall) {
  const auto f = function([](Tensor x) { return reduce_mean(x); }, {.input_signature = {{f32, {any_size, 2}}}});
  for (int n : {3, 8, 100}) EXPECT_EQ(f(full({n, 2}, 5)).item(), 5);
  EXPECT_EQ(f.explain().variants, 1);
}

TEST(Function, RowsOfASizeThatVariesAreCheckedAtEachCall) {
  const auto f = function([](Tensor x) { return reduce_sum(x.rows(2, 6)) + reduce_sum(slice(x, {3}, {-1})); },
                          {.input_signature = {{f32, {any_size}}}});
  for (int n : {6, 7, 40}) EXPECT_EQ(f(ones({n})).item(), 4 + n - 3) << n;
  for (int n : {5, 2, 0}) {
    try {
      f(ones({n}));
      ADD_FAILURE() << n << " rows were accepted";
    } catch (const OutOfRange& error) {
      EXPECT_NE(std::string(error.what()).find(text("is outside dimension 0 of f32[", n, "]")), std::string::npos)
          << error.what();
    }
  }
  EXPECT_EQ(f.explain().variants, 1);
}

TEST(Function, NumbersAreDataAndIntegersAreStatic) {
  const auto f = function([](Tensor x, Tensor factor, int power) { return power == 2 ? x * x * factor : x * factor; });
  const Tensor x = constant({1.f, 2.f});
  for (double factor : {0.5, 2.0, 3.0})
    EXPECT_EQ(f(x, factor, 2).to_vector<float>()[1], static_cast<float>(4 * factor));
  EXPECT_EQ(f.explain().variants, 1);
  EXPECT_EQ(f(x, 0.5, 1).to_vector<float>()[1], 1);
  EXPECT_EQ(f.explain().variants, 2);
}

TEST(Function, ArgumentsOfOtherTypesAreAnotherVariant) {
  const Tensor x = constant(10.0);
  const auto difference = function([](auto a, auto b) { return a - b; });
  EXPECT_EQ(difference(x, 3).item(), 7);
  EXPECT_EQ(difference(3, x).item(), -7);
  EXPECT_EQ(difference(x, 3.0).item(), 7);
  EXPECT_EQ(difference.explain().variants, 3);
  const auto repeated = function([](Tensor t, auto n) {
    if constexpr (std::same_as<decltype(n), bool>) return t;
    else return std::pair{t, t * n};
  });
  EXPECT_EQ(repeated(x, 1).second.item(), 10);
  EXPECT_EQ(repeated(x, true).item(), 10);
}

TEST(Function, TakesAndGivesStructures) {
  const auto f = function([](std::tuple<Tensor, Tensor> in, std::array<int, 2> powers) {
    return std::pair{std::get<0>(in) * powers[0], std::array{std::get<1>(in), std::get<0>(in) + powers[1]}};
  });
  const auto [a, rest] = f(std::tuple{constant(3.0f), 4.0}, std::array{2, 5});
  EXPECT_EQ(a.item(), 6);
  EXPECT_EQ(rest[0].item(), 4);
  EXPECT_EQ(rest[1].item(), 8);
}

TEST(Function, AVariableIsReadAtEachCallAndAssignedByIt) {
  Variable count(constant(0.0f), "count"), read_only(constant(10.0f));
  const auto f = function([&](Tensor x) {
    count.assign_add(x);
    return count.value() + read_only;
  });
  EXPECT_EQ(f(constant(1.0f)).item(), 11);
  EXPECT_EQ(f(constant(2.0f)).item(), 13);
  read_only.assign(constant(100.0f));
  EXPECT_EQ(f(constant(2.0f)).item(), 105);
  EXPECT_EQ(count.value().item(), 5);
  EXPECT_EQ(f.explain().variants, 1);
}

TEST(Function, ACapturedTensorIsAConstant) {
  Tensor captured = constant({1.f, 2.f});
  const auto f = function([&](Tensor x) { return x + captured; });
  f(zeros({2}));
  captured = constant({7.f, 8.f});
  EXPECT_EQ(f(zeros({2})).to_vector<float>()[0], 1);
  EXPECT_EQ(f.explain().constant_bytes, 8u);
}

TEST(Function, TheStateOfAStepIsOverwrittenInPlaceButNeverUnderAHolder) {
  Variable w(zeros({10000}));
  const auto step = function([&] { w.assign_add(ones({10000})); });
  step();
  step();
  const void* first = w.value().host();
  step();
  EXPECT_EQ(w.value().host(), first);
  const Tensor held = w.value();
  step();
  EXPECT_EQ(held.to_vector<float>()[0], 3);
  EXPECT_EQ(w.value().to_vector<float>()[0], 4);
}

TEST(Function, ACallInsideATraceOrUnderATapeIsTracedAlong) {
  const auto inner = function([](Tensor x) { return x * x * x; });
  const auto outer = function([&](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(inner(x), x);
  });
  EXPECT_EQ(outer(constant(2.0f)).item(), 12);
  GradientTape tape;
  const Tensor x = constant(3.0f);
  tape.watch(x);
  EXPECT_EQ(tape.gradient(inner(x), x).item(), 27);
}

TEST(Function, RunsEagerlyWithTheSameBits) {
  const Tensor x = random::normal({20, 30}, {.seed = 5});
  const auto body = [](Tensor a) { return reduce_sum(exp(a) * where(random::uniform(a.shape()) < 0.5, a, -a)); };
  set_seed(3);
  const auto compiled = function(body);
  const double want = compiled(x).item(), second = compiled(x).item();
  EXPECT_NE(want, second) << "another call draws other numbers";
  set_seed(3);
  const auto eager = function(body, {.run_eagerly = true});
  EXPECT_EQ(eager(x).item(), want);
  EXPECT_EQ(eager(x).item(), second);
  EXPECT_GT(eager.explain().dispatches, 2 * compiled.explain().dispatches);
}

TEST(Function, EachPassCanBeSwitchedOffAndChangesNoBit) {
  const Tensor x = random::normal({64, 50}, {.seed = 6});
  const auto body = [](Tensor a) {
    const Tensor e = exp(a - reduce_max(a, {.axis = {1}, .keepdims = true}));
    return reduce_sum(e / reduce_sum(e, {.axis = {1}, .keepdims = true}), {.axis = {0}});
  };
  const auto all = function(body);
  const Tensor want = all(x);  // interpreted; a second call runs what is compiled
  EXPECT_TRUE(bitwise_equal(all(x), want));
  for (const std::string_view pass : pass_names()) {
    const auto without = function(body, {.disable = {std::string(pass)}});
    for (int call = 0; call < 2; ++call) EXPECT_TRUE(bitwise_equal(without(x), want)) << pass;
    if (pass == "fuse") { EXPECT_GT(without.explain().kernels.size(), all.explain().kernels.size()); }
  }
  EXPECT_THROW(function(body, {.disable = {"fus"}}), InvalidArgument);
}

TEST(Function, ExplainsItself) {
  const auto f = function([](Tensor a, Tensor b) { return relu(matmul(a, b)); }, {.name = "layer"});
  f(ones({4, 8}), ones({8, 2}));
  const Explanation e = f.explain();
  EXPECT_NE(e.graph().find("matmul"), std::string::npos);
  EXPECT_EQ(to_text(parse_graph(e.graph())), e.graph());
  EXPECT_EQ(e.calls, 1);
  EXPECT_GE(e.kernels.size(), 1u);
  EXPECT_NE(text(e).find("function layer"), std::string::npos);
}

TEST(Function, WhatItRefuses) {
  Tensor escaped;
  const auto leak = function([&](Tensor x) {
    escaped = x + 1;
    return x;
  });
  leak(constant(1.0f));
  EXPECT_THROW(escaped.item(), InvalidArgument);
  EXPECT_THROW(escaped + 1, InvalidArgument);
  EXPECT_THROW(function([](Tensor x) { return x * x.item(); })(constant(1.0f)), InvalidArgument);
  const auto declared = function([](Tensor x) { return x; }, {.input_signature = {{f32, {any_size, 8}}}});
  EXPECT_THROW(declared(ones({3, 7})), InvalidArgument);
  EXPECT_THROW(declared(cast(ones({3, 8}), f64)), InvalidArgument);
  const auto few = function([](Tensor x, int) { return x; }, {.max_variants = 2});
  few(ones({}), 1);
  few(ones({}), 2);
  EXPECT_THROW(few(ones({}), 3), ResourceExhausted);
}

TEST(Function, LetsTheLeastRecentlyUsedVariantGo) {
  int runs = 0;
  const auto f = function(
      [&](Tensor x, int factor) {
        ++runs;
        return x * factor;
      },
      {.max_variants = 2, .evict_variants = true});
  const auto runs_of = [&](int factor) {
    const int before = runs;
    EXPECT_EQ(f(constant(2.0f), factor).item(), 2 * factor);
    return runs - before;
  };
  EXPECT_EQ(runs_of(1), 1);
  EXPECT_EQ(runs_of(2), 1);
  EXPECT_EQ(runs_of(1), 0);
  EXPECT_EQ(runs_of(3), 1);  // in place of 2
  EXPECT_EQ(runs_of(1), 0);
  EXPECT_EQ(runs_of(2), 1);
  for (int factor = 10; factor < 60; ++factor) EXPECT_EQ(runs_of(factor), 1);
  EXPECT_EQ(f.explain().variants, 2);
  EXPECT_LE(f.explain().retraces.size(), 16u);
}

TEST(Function, AFailureInACallChangesNothing) {
  Variable w(ones({3}));
  const auto f = function([&](Tensor indices) {
    w.assign(gather(w, indices) * 2);
    return w.value();
  });
  f(constant({0, 1, 2}));
  EXPECT_THROW(f(constant({0, 9, 2})), OutOfRange);
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{2, 2, 2}));
}

}  // namespace
}  // namespace gradus::function_test
