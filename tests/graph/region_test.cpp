/// Regions: tracing, captures, replay, text.
#include "gradus/base/rooms.h"
#include "gradus/graph/region.h"
#include <gtest/gtest.h>
#include <random>
#include "gradus/gradus.h"

namespace gradus::region_test {
namespace {

Captured square_plus(const Tensor& c) {
  return capture(
      RegionTrace("test", std::vector<Spec>{{f32, {2}}}, [&](In in) { return Tensors{in[0] * in[0] + c, in[0]}; }));
}

TEST(Region, CapturesWhatIsAroundIt) {
  const Tensor c = constant({1.0, 2.0});
  const Captured made = square_plus(c);
  ASSERT_EQ(made.captures.size(), 1u);
  EXPECT_EQ(made.captures[0].node(), c.node());
  EXPECT_EQ(made.region.inputs(), 2u);
  const Tensor x = constant({3.0, 4.0});
  const Tensors results = replay(made.region, Tensors{x, c});
  EXPECT_TRUE(bitwise_equal(results[0], constant({10.0, 18.0})));
  EXPECT_EQ(results[1].node(), x.node());
}

TEST(Region, EqualOnesAreEqual) {
  const Region a = square_plus(constant({1.0, 2.0})).region, b = square_plus(constant({5.0, 6.0})).region;
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
  const Region other =
      capture(RegionTrace("test", std::vector<Spec>{{f32, {2}}}, [](In in) { return Tensors{exp(in[0])}; })).region;
  EXPECT_NE(a, other);
  EXPECT_NE(a, Region());
}

TEST(Region, VariablesReadInsideAreCaptured) {
  Variable v(constant(2.0), "v");
  const auto f = recompute_grad([&](Tensor x) { return x * v.value(); });
  GradientTape tape;
  const Tensor y = f(constant(3.0)) * 5;
  EXPECT_EQ(tape.gradient(y, Variables{v})[0].item(), 15);
}

TEST(Region, UnusedSymbolsStayInputs) {
  const std::vector<Spec> specs{{f32, {2}}, {i32, {}}, {f32, {2}}};
  const Captured made = capture(RegionTrace("test", specs, [](In in) { return Tensors{in[2]}; }));
  EXPECT_EQ(made.region.input_specs(), specs);
  EXPECT_TRUE(made.captures.empty());
}

TEST(Region, MistakesInside) {
  const std::vector<Spec> specs{{f32, {}}};
  Tensor escaped;
  RegionTrace first("cond", specs, [&](In in) {
    escaped = in[0] * 2;
    return Tensors{in[0]};
  });
  EXPECT_THROW(RegionTrace("cond", specs, [&](In) { return Tensors{escaped}; }), InvalidArgument);
  EXPECT_THROW(RegionTrace("cond", specs, [&](In in) { return Tensors{in[0] + escaped}; }), InvalidArgument);
  EXPECT_THROW(RegionTrace("cond", specs, [&](In) { return Tensors{Tensor()}; }), InvalidArgument);
  try {
    RegionTrace("while_loop", specs, [&](In in) { return Tensors{in[0] > 0 ? in[0] : -in[0]}; });
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("inside while_loop"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("cond(predicate"), std::string::npos) << error.what();
  }
}

/// A graph with a call in a call, and one with a branch and loops in each other.
Graph nested_graph(bool control) {
  if (control) {
    const auto step = [](Tensor s, Tensor x) {
      const Tensor next = cond(reduce_sum(s) > 1, [&] { return s * x; }, [&] { return s + x; });
      const auto grown = while_loop([](Tensor t) { return t[0] < 2; }, [](Tensor t) { return t * 2 + 1; }, next,
                                    {.max_iterations = 5});
      return std::pair{grown, reduce_sum(grown)};
    };
    const Captured made = capture(RegionTrace("test", std::vector<Spec>{{f32, {3}}, {f32, {4, 3}}}, [&](In in) {
      const auto [last, all] = scan(step, in[0], in[1]);
      return Tensors{last, all};
    }));
    return made.region.graph();
  }
  const auto inner = recompute_grad([](Tensor x) { return exp(x) + 1; });
  const auto outer = recompute_grad([&](Tensor x) { return inner(x) * inner(2 * x); });
  const Captured made =
      capture(RegionTrace("test", std::vector<Spec>{{f32, {3}}}, [&](In in) { return Tensors{outer(in[0])}; }));
  return made.region.graph();
}

TEST(RegionText, ParsesBack) {
  for (const bool control : {false, true}) {
    const Graph graph = nested_graph(control);
    const std::string written = to_text(graph);
    EXPECT_NE(written.find(control ? "scan{body={" : "call{body={"), std::string::npos) << written;
    EXPECT_EQ(parse_graph(written), graph);
    EXPECT_EQ(to_text(parse_graph(written)), written);
  }
}

/// Regions and dimensions within one another: read as far as the bound, an error beyond, however deep.
TEST(RegionText, DepthHasABound) {
  // What stands behind the body of a call.
  const std::string written = to_text(nested_graph(false));
  std::size_t at = written.find("call{body={") + 11;
  for (int open = 1; open > 0; ++at) open += (written[at] == '{') - (written[at] == '}');
  const std::string rest = written.substr(at, written.find('}', at) - at);
  const std::string open = "%0 = input : f32[3] | %1 = call{body={", close = "}" + rest + "} %0 : f32[3] | return %1";
  const auto nested = [&](int depth, bool whole) {
    std::string text = "%0 = input : f32[3] | %1 = exp %0 : f32[3] | return %1";
    for (int i = 0; i < depth; ++i) text = open + text + (whole ? close : "");
    return text;
  };
  EXPECT_NO_THROW(parse_region(nested(4, true)));
  EXPECT_NO_THROW(parse_region(nested(Region::max_depth - 2, true)));
  EXPECT_THROW(parse_region(nested(Region::max_depth + 1, true)), InvalidArgument);
  EXPECT_THROW(parse_region(nested(300, true)), InvalidArgument);
  EXPECT_THROW(parse_region(nested(10'000, false)), InvalidArgument);
  std::string dimension = "s0";
  for (int i = 0; i < 100'000; ++i) dimension.insert(0, "(");
  EXPECT_THROW(dimension::from_text(dimension), InvalidArgument);
  EXPECT_NO_THROW(dimension::from_text("((((((s0+1)/2)+1)/2)+1)/2)"));
}

TEST(RegionText, WhateverIsReadIsAGraphOrAnError) {
  const std::string texts[] = {to_text(nested_graph(false)), to_text(nested_graph(true))};
  std::mt19937 random(7);
  int read = 0;
  for (int i = 0; i < 8000; ++i) {
    std::string damaged = texts[i % 2];
    for (int k = 0; k < 1 + i % 3; ++k) {
      const std::size_t at = random() % damaged.size();
      constexpr std::string_view letters = "{}|;=%0123456789 :[]fireturn\n";
      if (random() % 3 == 0) damaged.erase(at, 1 + random() % 8);
      else damaged[at] = letters[random() % letters.size()];
    }
    try {
      verify(parse_graph(damaged));
      ++read;
    } catch (const Error&) {}
  }
  EXPECT_GT(read, 0);
}

TEST(RegionText, DepthIsBounded) {
  std::string text = "%0 = input : f32[] | return %0";
  for (int i = 0; i < 200; ++i)
    text = "%0 = input : f32[] | %1 = call{body={" + text + "}; output=0} %0 : f32[] | return %1";
  EXPECT_THROW(parse_region(text), InvalidArgument);
  EXPECT_THROW(parse_region(std::string(100000, '{')), InvalidArgument);
}

TEST(RegionText, NestingByProgramIsBounded) {
  std::function<Tensor(Tensor, int)> deep = [&](Tensor x, int depth) -> Tensor {
    if (depth == 0) return x + 1;
    return recompute_grad([&](Tensor t) { return deep(t, depth - 1); })(x);
  };
  EXPECT_EQ(deep(constant(1.0), 8).item(), 2);
  EXPECT_THROW(deep(constant(1.0), 100), InvalidArgument);
}

}  // namespace
}  // namespace gradus::region_test
