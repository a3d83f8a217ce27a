/// If, Loop and Scan: on tensors that are known C++ decides, within a trace cond and while_loop do.
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "tests/onnx/sample_models.h"

namespace gradus::onnx {
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
}  // namespace gradus::onnx
