/// ONNX's Gradient: a tape over the subgraph between the values that are named.
#include <gtest/gtest.h>
#include "tests/onnx/sample_models.h"

namespace gradus::onnx::gradient_test {
namespace {

using Floats = std::vector<float>;
constexpr const char* training = "ai.onnx.preview.training";

NodeDefinition gradient_of(std::string y, Words xs, Words outputs, Words zs = {}, Words inputs = {}) {
  if (inputs.empty()) {
    inputs = xs;
    inputs.insert(inputs.end(), zs.begin(), zs.end());
  }
  std::vector<Attribute> attributes{words("xs", std::move(xs)), word("y", std::move(y))};
  if (!zs.empty()) attributes.push_back(words("zs", std::move(zs)));
  return node("Gradient", std::move(inputs), std::move(outputs), std::move(attributes), training);
}

std::vector<ValueInfo> ports(const Words& names) {
  std::vector<ValueInfo> all;
  for (const std::string& name : names) all.push_back(port(name));
  return all;
}

Tensors run(std::vector<NodeDefinition> nodes, const Words& inputs, const Words& outputs, const Tensors& values) {
  return call(model_of(graph(std::move(nodes), ports(inputs), ports(outputs))), values);
}

/// The gradient of the sum of f(x).
Floats slope(const std::string& op, const Tensor& x) {
  return run({node(op, {"x"}, {"f"}), node("ReduceSum", {"f"}, {"y"}, {integer("keepdims", 0)}),
              gradient_of("y", {"x"}, {"d"})},
             {"x"}, {"d"}, {x})[0]
      .to_vector<float>();
}

TEST(OnnxGradient, AtKinks) {
  EXPECT_EQ(slope("Relu", constant({-1.0, 0.0, 1.0})), (Floats{0, 0, 1}));
  EXPECT_EQ(slope("Abs", constant({-1.0, 0.0, 1.0})), (Floats{-1, 0, 1}));
  EXPECT_EQ(slope("Sign", constant({-1.0, 0.0})), (Floats{0, 0}));
  const Tensors ties = run({node("Max", {"a", "b"}, {"y"}), gradient_of("y", {"a", "b"}, {"da", "db"})}, {"a", "b"},
                           {"da", "db"}, {constant(1.0), constant(1.0)});
  EXPECT_EQ(ties[0].item(), 1);
  EXPECT_EQ(ties[1].item(), 0);
}

TEST(OnnxGradient, UnconnectedIsZeros) {
  const Tensors d = run({node("Mul", {"a", "a"}, {"y"}), gradient_of("y", {"a", "b"}, {"da", "db"})}, {"a", "b"},
                        {"da", "db"}, {constant(3.0), constant({1.0, 2.0})});
  EXPECT_EQ(d[0].item(), 6);
  EXPECT_EQ(d[1].to_vector<float>(), Floats(2, 0));
}

// d(a * a * b)/da = 2ab; by a again: 2b; by b: 2a.
TEST(OnnxGradient, SecondOrder) {
  const Tensors d = run({node("Mul", {"a", "a"}, {"s"}), node("Mul", {"s", "b"}, {"y"}),
                         gradient_of("y", {"a"}, {"da"}, {"b"}), gradient_of("da", {"a", "b"}, {"daa", "dab"})},
                        {"a", "b"}, {"da", "daa", "dab"}, {constant(3.0), constant(5.0)});
  EXPECT_EQ(d[0].item(), 30);
  EXPECT_EQ(d[1].item(), 10);
  EXPECT_EQ(d[2].item(), 6);
}

TEST(OnnxGradient, ThirdOrder) {
  const Tensors d =
      run({node("Mul", {"x", "x"}, {"p"}), node("Mul", {"p", "p"}, {"y"}), gradient_of("y", {"x"}, {"d1"}),
           gradient_of("d1", {"x"}, {"d2"}), gradient_of("d2", {"x"}, {"d3"})},
          {"x"}, {"d1", "d2", "d3"}, {constant(2.0)});
  EXPECT_EQ(d[0].item(), 32);
  EXPECT_EQ(d[1].item(), 48);
  EXPECT_EQ(d[2].item(), 48);
}

// The gradient by a value on the way, and by what lies before it: they are told apart.
TEST(OnnxGradient, ByAValueOnTheWay) {
  const Tensors d =
      run({node("Exp", {"x"}, {"e"}), node("Mul", {"e", "x"}, {"y"}), gradient_of("y", {"e", "x"}, {"de", "dx"})},
          {"x"}, {"de", "dx", "e"}, {constant(2.0)});
  EXPECT_EQ(d[0].item(), 2);
  EXPECT_EQ(d[1].item(), d[2].item());
}

// Inputs may be other values than those that are named: then the gradient is taken there.
TEST(OnnxGradient, AtAnotherPlace) {
  const Tensors d = run({node("Mul", {"x", "x"}, {"y"}), gradient_of("y", {"x"}, {"d"}, {}, {"at"})}, {"x", "at"},
                        {"y", "d"}, {constant(2.0), constant(5.0)});
  EXPECT_EQ(d[0].item(), 4);
  EXPECT_EQ(d[1].item(), 10);
}

TEST(OnnxGradient, ThroughShapesOfData) {
  const Tensors d = run({node("Shape", {"x"}, {"s"}), node("Reshape", {"x", "s"}, {"r"}),
                         node("ReduceMean", {"r"}, {"y"}, {integer("keepdims", 0)}), gradient_of("y", {"x"}, {"d"})},
                        {"x"}, {"d"}, {constant({1.0, 2.0})});
  EXPECT_EQ(d[0].to_vector<float>(), Floats(2, 0.5));
}

// start, start + delta, start + 2 * delta: their sum has slopes 3 and 3; how many there are has none.
TEST(OnnxGradient, OfARange) {
  const Tensors d =
      run({node("Range", {"start", "limit", "delta"}, {"r"}), node("ReduceSum", {"r"}, {"y"}, {integer("keepdims", 0)}),
           gradient_of("y", {"start", "limit", "delta"}, {"ds", "dl", "dd"})},
          {"start", "limit", "delta"}, {"r", "ds", "dl", "dd"}, {constant(1.0f), constant(7.0f), constant(2.5f)});
  EXPECT_EQ(d[0].to_vector<float>(), (Floats{1, 3.5, 6}));
  EXPECT_EQ(d[1].item(), 3);
  EXPECT_EQ(d[2].item(), 0);
  EXPECT_EQ(d[3].item(), 3);
}

// In a branch: of y = sum(x x x), of which the last node, the last two or all stand in the branch.
TEST(OnnxGradient, WithinABranchOfWhatIsAroundIt) {
  const std::vector<NodeDefinition> way{node("Mul", {"x", "x"}, {"p"}), node("Mul", {"p", "x"}, {"q"}),
                                        node("ReduceSum", {"q"}, {"y"}, {integer("keepdims", 0)})};
  const Tensor x = constant({1.0, 2.0});
  for (std::ptrdiff_t outside = 0; outside <= 3; ++outside) {
    std::vector<NodeDefinition> inner(way.begin() + outside, way.end()), outer(way.begin(), way.begin() + outside);
    inner.push_back(gradient_of("y", {"x"}, {"d"}));
    outer.push_back(node("If", {"c"}, {"g"},
                         {subgraph("then_branch", graph(inner, {}, ports({"d"}))),
                          subgraph("else_branch", graph({node("Neg", {"x"}, {"e"})}, {}, ports({"e"})))}));
    outer.push_back(node("ReduceSum", {"g"}, {"s"}, {integer("keepdims", 0)}));
    outer.push_back(gradient_of("s", {"x"}, {"h"}, {"c"}));
    const Tensors d =
        call(model_of(graph(outer, {port("x"), port("c", boolean)}, ports({"g", "h"}))), {x, full({}, 1, boolean)});
    EXPECT_EQ(d[0].to_vector<float>(), (Floats{3, 12})) << outside;
    EXPECT_EQ(d[1].to_vector<float>(), (Floats{6, 12})) << outside;
  }
}

TEST(OnnxGradient, Mistakes) {
  const auto said = [](NodeDefinition gradient, const Tensor& x) {
    return complaint([&] { run({node("Exp", {"x"}, {"y"}), std::move(gradient)}, {"x"}, {"d"}, {x}); });
  };
  EXPECT_NE(said(gradient_of("y", {"x"}, {"d"}), constant({1.0, 2.0})).find("y must be one floating number"),
            std::string::npos);
  EXPECT_NE(said(gradient_of("nothing", {"x"}, {"d"}), constant(1.0)).find("`nothing`"), std::string::npos);
  EXPECT_NE(said(gradient_of("y", {"x", "x"}, {"d", "e"}), constant(1.0)).find("twice"), std::string::npos);
  EXPECT_NE(said(gradient_of("y", {"x"}, {"d"}, {}, {"x", "y"}), constant(1.0)).find("2 inputs"), std::string::npos);
}

}  // namespace
}  // namespace gradus::onnx::gradient_test
