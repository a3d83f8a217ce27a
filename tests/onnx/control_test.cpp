/// If, Loop and Scan: on tensors that are known C++ decides, within a trace cond and while_loop do.
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/onnx/sample_models.h"

namespace gradus::onnx::control_test {
namespace {

using Floats = std::vector<float>;
using Integers = std::vector<std::int64_t>;

Tensor integer_of(std::int64_t value) { return from_values(Integers{value}, {}); }

/// A graph that sees x from around it.
GraphDefinition branch(NodeDefinition only) {
  const std::string out = only.outputs[0];
  return graph({std::move(only)}, {}, {port(out)});
}

Model chooser(NodeDefinition yes, NodeDefinition no) {
  return model_of(
      graph({node("If", {"c"}, {"y"},
                  {subgraph("then_branch", branch(std::move(yes))), subgraph("else_branch", branch(std::move(no)))})},
            {port("c", boolean), port("x")}, {port("y")}));
}

TEST(OnnxControl, IfOfDifferentShapes) {
  const Model model = chooser(node("ReduceSum", {"x"}, {"s"}, {integer("keepdims", 0)}), node("Neg", {"x"}, {"n"}));
  EXPECT_EQ(call(model, {constant(true), constant({1.0, 2.0})})[0].item(), 3);
  EXPECT_EQ(call(model, {constant(false), constant({1.0, 2.0})})[0].to_vector<float>(), (Floats{-1, -2}));
}

TEST(OnnxControl, IfWithinATrace) {
  const Model model = chooser(node("Exp", {"x"}, {"s"}), node("Neg", {"x"}, {"n"}));
  const auto traced = function([&](const Tensor& c, const Tensor& x) { return call(model, {c, x})[0]; });
  for (const bool way : {true, false, true})
    EXPECT_TRUE(bitwise_equal(traced(constant(way), constant({1.0, 2.0})),
                              call(model, {constant(way), constant({1.0, 2.0})})[0]));
}

/// Doubles x as long as it is below 100, at most M times; gives all that it went through.
Model doubler(bool stacks) {
  std::vector<ValueInfo> results{port("goes_on", boolean), port("twice")};
  if (stacks) results.push_back(port("seen", f32, Shape{}));
  GraphDefinition body = graph({node("Add", {"v", "v"}, {"twice"}), node("Less", {"twice", "hundred"}, {"goes_on"}),
                                node("Identity", {"v"}, {"seen"})},
                               {port("i", i64), port("c", boolean), port("v")}, results);
  Words outputs{"last"};
  std::vector<ValueInfo> ports{port("last")};
  if (stacks) outputs.push_back("all"), ports.push_back(port("all"));
  return model_of(graph({node("Constant", {}, {"hundred"}, {number("value_float", 100)}),
                         node("Loop", {"m", "", "x"}, outputs, {subgraph("body", std::move(body))})},
                        {port("m", i64), port("x", f32, Shape{})}, ports));
}

TEST(OnnxControl, LoopStacksWhatItSaw) {
  const Tensors results = call(doubler(true), {integer_of(20), constant(3.0)});
  EXPECT_EQ(results[0].item(), 192);
  EXPECT_EQ(results[1].to_vector<float>(), (Floats{3, 6, 12, 24, 48, 96}));
  EXPECT_EQ(call(doubler(true), {integer_of(2), constant(3.0)})[1].to_vector<float>(), (Floats{3, 6}));
}

TEST(OnnxControl, LoopOfNoIteration) {
  const Tensors results = call(doubler(true), {integer_of(0), constant(3.0)});
  EXPECT_EQ(results[0].item(), 3);
  EXPECT_EQ(results[1].spec(), (Spec{f32, {0}}));
}

TEST(OnnxControl, LoopWithinATraceEndsWhereDataSays) {
  const Model model = doubler(false);
  const auto traced = function([&](const Tensor& x) { return call(model, {from_values(Integers{50}, {}), x})[0]; });
  for (const float start : {3.0f, 40.0f, 200.0f})
    EXPECT_EQ(traced(constant(start)).item(), call(model, {integer_of(50), constant(start)})[0].item()) << start;
  const Model stacking = doubler(true);
  const auto refused = function([&](const Tensor& m, const Tensor& x) { return call(stacking, {m, x})[1]; });
  EXPECT_NE(complaint([&] { refused(integer_of(5), constant(1.0)); }), "");
}

TEST(OnnxControl, LoopHasAGradient) {
  const Model model = doubler(false);
  const Tensor slope = gradient([&](const Tensor& x) { return call(model, {integer_of(50), x})[0]; }, constant(3.0));
  EXPECT_EQ(slope.item(), 64);
}

TEST(OnnxControl, LoopsWithinATraceOfAsManyIterationsAsAnArgumentSays) {
  const Model model = doubler(false);
  const auto f = [&](const Tensor& m, const Tensor& x) { return call(model, {m, x})[0]; };
  const auto slope = [&](const Tensor& m, const Tensor& x) {
    return gradient([&](const Tensor& start) { return f(m, start); }, x);
  };
  const auto traced = function(f);
  const auto traced_slope = function(slope);
  for (const std::int64_t m : {3, 0, 2, 50, -1}) {
    EXPECT_EQ(traced(integer_of(m), constant(3.0)).item(), f(integer_of(m), constant(3.0)).item()) << m;
    EXPECT_EQ(traced_slope(integer_of(m), constant(3.0)).item(), slope(integer_of(m), constant(3.0)).item()) << m;
  }
  EXPECT_EQ(traced.explain().variants, 1);
}

/// v = v / 2 + number of the iteration, as often as the given nodes say in n; gives all that it went through. The body
/// looks at its condition with `op`.
Model halver(std::vector<NodeDefinition> nodes, Words inputs, const char* op = "Identity") {
  GraphDefinition body = graph(
      {node("Cast", {"i"}, {"number"}, {integer("to", 1)}), node("Mul", {"v", "half"}, {"w"}),
       node("Add", {"w", "number"}, {"next"}), node("Identity", {"next"}, {"seen"}), node(op, {"c"}, {"goes_on"})},
      {port("i", i64), port("c", boolean), port("v")}, {port("goes_on", boolean), port("next"), port("seen")});
  nodes.push_back(node("Constant", {}, {"half"}, {number("value_float", 0.5)}));
  nodes.push_back(node("Loop", {"n", "", "x"}, {"last", "all"}, {subgraph("body", std::move(body))}));
  std::vector<ValueInfo> ports;
  for (const std::string& input : inputs) ports.push_back(port(input));
  return model_of(graph(std::move(nodes), ports, {port("last"), port("all")}));
}
Model halver_of(std::int64_t n, const char* op = "Identity") {
  return halver({node("Constant", {}, {"n"}, {integer("value_int", n)})}, {"x"}, op);
}

std::pair<Tensor, Tensor> both(const Model& model, const Tensors& in) {
  const Tensors results = call(model, in);
  return {results[0], results[1]};
}

TEST(OnnxControl, LongLoopsWithinATraceAreScans) {
  for (const std::int64_t n : {3, 700, 3000}) {
    const Model model = halver_of(n);
    const auto traced = function([&](const Tensor& x) { return both(model, {x}); });
    const Tensor x = constant({1.0, -2.0});
    const auto [last, all] = traced(x);
    const auto [known_last, known_all] = both(model, {x});
    EXPECT_TRUE(bitwise_equal(last, known_last)) << n;
    EXPECT_TRUE(bitwise_equal(all, known_all)) << n;
    EXPECT_LT(traced.explain().kernels.size(), 20u) << n;
  }
  const auto slope = [](const Tensor& x) {
    return gradient([](const Tensor& v) { return reduce_sum(call(halver_of(700), {v})[1]); }, x);
  };
  EXPECT_TRUE(bitwise_equal(function(slope)(constant({1.0, -2.0})), slope(constant({1.0, -2.0}))));
}

TEST(OnnxControl, LoopsOverASizeThatVaries) {
  const Model model =
      halver({node("Shape", {"xs"}, {"shape"}), node("Constant", {}, {"first"}, {integer("value_int", 0)}),
              node("Gather", {"shape", "first"}, {"n"})},
             {"x", "xs"});
  const auto traced = function([&](const Tensor& x, const Tensor& xs) { return both(model, {x, xs}); },
                               {.input_signature = {{f32, {2}}, {f32, {any_size, 3}}}});
  for (const std::int64_t n : {4, 1, 0, 60}) {
    const Tensor x = constant({1.0, -2.0}), xs = zeros({n, 3});
    const auto [last, all] = traced(x, xs);
    EXPECT_TRUE(bitwise_equal(last, both(model, {x, xs}).first)) << n;
    EXPECT_EQ(all.shape(), Shape({n, 2}));
    if (n > 0) { EXPECT_TRUE(bitwise_equal(all, both(model, {x, xs}).second)) << n; }
  }
  EXPECT_EQ(traced.explain().variants, 1);
}

TEST(OnnxControl, LongLoopsThatAreNoScansAreUnrolledOrRefused) {
  const Tensor x = constant({1.0, -2.0});
  const Model once = halver_of(700, "Not");  // its condition ends it after the first iteration
  EXPECT_TRUE(
      bitwise_equal(function([&](const Tensor& v) { return both(once, {v}).second; })(x), both(once, {x}).second));
  GraphDefinition growing =
      graph({node("Concat", {"v", "v"}, {"w"}, {integer("axis", 0)}), node("Identity", {"c"}, {"g"})},
            {port("i", i64), port("c", boolean), port("v")}, {port("g", boolean), port("w")});
  const Model grows = model_of(graph({node("Constant", {}, {"n"}, {integer("value_int", 4)}),
                                      node("Loop", {"n", "", "x"}, {"y"}, {subgraph("body", std::move(growing))})},
                                     {port("x")}, {port("y")}));
  EXPECT_EQ(function([&](const Tensor& v) { return call(grows, {v})[0]; })(x).shape(), Shape{32});
}

Model running_sums(std::int64_t direction) {
  GraphDefinition body = graph({node("Add", {"s", "x"}, {"t"}), node("Identity", {"t"}, {"out"})},
                               {port("s"), port("x")}, {port("t"), port("out")});
  return model_of(graph({node("Scan", {"start", "xs"}, {"last", "all"},
                              {integer("num_scan_inputs", 1), integers("scan_input_directions", {direction}),
                               integers("scan_output_directions", {direction}), integers("scan_input_axes", {-2}),
                               integers("scan_output_axes", {direction}), subgraph("body", std::move(body))})},
                        {port("start"), port("xs")}, {port("last"), port("all")}));
}

TEST(OnnxControl, ScansWithinATraceOfAnyLength) {
  for (const std::int64_t direction : {0, 1}) {
    const Model model = running_sums(direction);
    const auto traced = function([&](const Tensor& start, const Tensor& xs) { return both(model, {start, xs}); },
                                 {.input_signature = {{f32, {2}}, {f32, {any_size, 2}}}});
    for (const std::int64_t n : {3, 1, 1500}) {
      const Tensor start = constant({0.5, 1.0}), xs = reshape(range(2 * n, f32), {n, 2});
      const auto [last, all] = traced(start, xs);
      EXPECT_TRUE(bitwise_equal(last, both(model, {start, xs}).first)) << n;
      EXPECT_TRUE(bitwise_equal(all, both(model, {start, xs}).second)) << n;
    }
    EXPECT_EQ(traced.explain().variants, 1);
  }
}

TEST(OnnxControl, ScanBothWays) {
  const auto sums = [](std::int64_t direction) {
    GraphDefinition body = graph({node("Add", {"s", "x"}, {"t"}), node("Identity", {"t"}, {"out"})},
                                 {port("s"), port("x")}, {port("t"), port("out")});
    return model_of(graph({node("Scan", {"start", "xs"}, {"last", "all"},
                                {integer("num_scan_inputs", 1), integers("scan_input_directions", {direction}),
                                 integers("scan_output_directions", {direction}), subgraph("body", std::move(body))})},
                          {port("start"), port("xs")}, {port("last"), port("all")}));
  };
  const Tensors forth = call(sums(0), {constant({0.0}), constant({{1.0}, {2.0}, {3.0}})});
  EXPECT_EQ(forth[0].item(), 6);
  EXPECT_EQ(forth[1].to_vector<float>(), (Floats{1, 3, 6}));
  const Tensors back = call(sums(1), {constant({0.0}), constant({{1.0}, {2.0}, {3.0}})});
  EXPECT_EQ(back[1].to_vector<float>(), (Floats{6, 5, 3}));
}

TEST(OnnxControl, MistakesNameTheNode) {
  GraphDefinition body = graph({node("Add", {"s", "x"}, {"t"})}, {port("s"), port("x")}, {port("t")});
  const auto scan = [&](std::int64_t inputs) {
    return complaint([&] {
      call(model_of(
               graph({node("Scan", {"a", "b"}, {"y"}, {integer("num_scan_inputs", inputs), subgraph("body", body)})},
                     {port("a"), port("b")}, {port("y")})),
           {constant({1.0}), constant({1.0})});
    });
  };
  EXPECT_NE(scan(3).find("node `y` (Scan-21): num_scan_inputs is 3"), std::string::npos) << scan(3);
  EXPECT_NE(scan(INT64_MIN).find("num_scan_inputs"), std::string::npos);
}

}  // namespace
}  // namespace gradus::onnx::control_test
