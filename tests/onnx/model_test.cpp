/// Models: variables, operator sets, functions, tracing, sizes that are not known.
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/random_key.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "tests/onnx/sample_models.h"

namespace gradus::onnx::model_test {
namespace {

using Floats = std::vector<float>;

Model dense() {
  return model_of(graph({node("MatMul", {"x", "w"}, {"p"}), node("Add", {"p", "b"}, {"y"})},
                        {port("x", f32, Shape{any_size, 2})}, {port("y", f32, Shape{any_size, 3})},
                        {{"w", constant({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}})}, {"b", constant({0.5, 0.5, 0.5})}}));
}

TEST(OnnxModel, InitializersAreVariablesThatLearn) {
  const Model model = dense();
  ASSERT_EQ(model.variables().size(), 2u);
  EXPECT_EQ(model.inputs().front().name, "x");
  const Tensor x = constant({{1.0, 1.0}});
  EXPECT_EQ(model(x).to_vector<float>(), (Floats{5.5, 7.5, 9.5}));
  GradientTape tape;
  const Tensor loss = reduce_sum(model(x));
  Variable& w = model.variables()["w"];
  EXPECT_EQ(tape.gradient(loss, w).to_vector<float>(), Floats(6, 1));
  w.assign(zeros({2, 3}));
  EXPECT_EQ(model(x).to_vector<float>(), Floats(3, 0.5));
}

TEST(OnnxModel, IsALayerAmongOthers) {
  set_seed(1);
  const Model model = dense();
  Sequential net{model.as_module(), Dense(1)};
  const Tensor x = constant({{1.0, 1.0}, {0.5, -1.0}});
  EXPECT_EQ(net(x).shape(), (Shape{2, 1}));
  std::vector<std::string> names;
  for (const Variable& variable : net.variables()) names.push_back(variable.name());
  EXPECT_EQ(names, (std::vector<std::string>{"onnx_model/w", "onnx_model/b", "dense/kernel", "dense/bias"}));
  const Sequential copy = net;
  const Tensor before = copy(x);
  GradientTape tape;
  const Tensor loss = reduce_mean(square(net(x)));
  SGD(SGDOptions{.learning_rate = 1e-4}).apply_gradients(tape.gradient(loss, net.trainable_variables()));
  EXPECT_LT(reduce_mean(square(net(x))).item(), loss.item());
  EXPECT_TRUE(bitwise_equal(copy(x), before));
  EXPECT_EQ(model(constant({{1.0, 1.0}})).to_vector<float>(), (Floats{5.5, 7.5, 9.5}));
  EXPECT_EQ(model.variables()[0].name(), "w");
}

TEST(OnnxModel, ModulesHaveOneInputAndOneOutput) {
  const Model two = model_of(graph({node("Exp", {"x"}, {"y"}), node("Neg", {"x"}, {"z"})}, {port("x", f32, Shape{2})},
                                   {port("y"), port("z")}));
  EXPECT_NE(complaint([&] { two.as_module(); }).find("1 inputs and 2 outputs"), std::string::npos);
}

TEST(OnnxModel, MaxRoiPool) {
  Attribute shape = integers("pooled_shape", {2, 2});
  const Model model = model_of(graph({node("MaxRoiPool", {"x", "r"}, {"y"}, {shape, number("spatial_scale", 0.5)})},
                                     {port("x", f32, Shape{1, 1, 4, 6}), port("r", f32, Shape{2, 5})}, {port("y")}));
  const Tensor x = reshape(cast(range(24), f32), {1, 1, 4, 6});
  const Tensor rois = constant({{0.0, 2.0, 0.0, 8.0, 6.0}, {0.0, 0.0, 0.0, 0.0, 0.0}});
  const std::array inputs{x, rois};
  // Columns 1 to 4 and rows 0 to 3, halved; then one element in every bin.
  EXPECT_EQ(model(std::span<const Tensor>(inputs)).front().to_vector<float>(), (Floats{8, 10, 20, 22, 0, 0, 0, 0}));
}

TEST(OnnxModel, ByName) {
  const std::map<std::string, Tensor> results = dense()({{"x", constant({{1.0, 0.0}})}});
  EXPECT_EQ(results.at("y").to_vector<float>(), (Floats{1.5, 2.5, 3.5}));
  EXPECT_NE(complaint([] { dense()(std::map<std::string, Tensor>{{"z", constant(1.0)}}); }).find("`x`"),
            std::string::npos);
}

TEST(OnnxModel, InputsThatDoNotFit) {
  const Model model = dense();
  EXPECT_NE(complaint([&] { model(constant({{1.0, 1.0, 1.0}})); }).find("`x` is f32[?,2]"), std::string::npos);
  EXPECT_NE(complaint([&] { model(constant({{1, 1}})); }).find("is of f32"), std::string::npos);
  EXPECT_NE(complaint([&] { call(model, {}); }).find("takes 1 inputs"), std::string::npos);
}

TEST(OnnxModel, TracedIsTheSame) {
  const Model model = dense();
  const auto traced = function([&](const Tensor& x) { return model(x); });
  for (int rows = 1; rows < 5; ++rows) {
    const Tensor x = reshape(cast(range(rows * 2), f32), {rows, 2});
    EXPECT_TRUE(bitwise_equal(traced(x), model(x)));
  }
}

// Shape -> Gather -> Concat -> Reshape, with a size that varies between calls.
TEST(OnnxModel, ShapeArithmeticWithSymbolicSizes) {
  const Model model = model_of(
      graph({node("Shape", {"x"}, {"s"}), node("Slice", {"s", "zero", "one"}, {"rows"}),
             node("Mul", {"rows", "two"}, {"twice"}), node("Concat", {"twice", "rest"}, {"to"}, {integer("axis", 0)}),
             node("Reshape", {"x", "to"}, {"y"})},
            {port("x", f32, Shape{any_size, 4})}, {port("y")},
            {{"zero", constant({std::int64_t{0}})},
             {"one", constant({std::int64_t{1}})},
             {"two", constant({std::int64_t{2}})},
             {"rest", constant({std::int64_t{2}})}}));
  const auto traced = function([&](const Tensor& x) { return model(x); });
  for (int rows = 1; rows < 5; ++rows) {
    const Tensor x = reshape(cast(range(rows * 4), f32), {rows, 4});
    const Tensor y = traced(x);
    EXPECT_EQ(y.shape(), (Shape{rows * 2, 2}));
    EXPECT_TRUE(bitwise_equal(y, model(x)));
  }
}

TEST(OnnxModel, ShapesFromArgumentsOfATraceAreRefused) {
  const Model model = model_of(graph({node("Reshape", {"x", "to"}, {"y"})}, {port("x"), port("to", i64)}, {port("y")}));
  const auto traced = function([&](const Tensor& x, const Tensor& to) { return call(model, {x, to})[0]; });
  const std::string said = complaint([&] { traced(zeros({4}), constant({std::int64_t{2}, std::int64_t{2}})); });
  EXPECT_NE(said.find("(Reshape-21): input 1 decides about shapes"), std::string::npos) << said;
  EXPECT_EQ(call(model, {zeros({4}), constant({std::int64_t{2}, std::int64_t{2}})})[0].shape(), (Shape{2, 2}));
}

TEST(OnnxModel, DefaultsFollowTheOperatorSet) {
  const auto softmax = [](std::int64_t opset) {
    return model_of(graph({node("Softmax", {"x"}, {"y"})}, {port("x")}, {port("y")}), opset)(zeros({2, 2, 2}));
  };
  EXPECT_EQ(softmax(12).to_vector<float>(), Floats(8, 0.25));
  EXPECT_EQ(softmax(13).to_vector<float>(), Floats(8, 0.5));
  const auto clipped = [](std::int64_t opset) {
    return model_of(graph({node("Clip", {"x"}, {"y"}, {number("max", 1)})}, {port("x")}, {port("y")}),
                    opset)(constant({3.0}));
  };
  EXPECT_EQ(clipped(6).item(), 1);
  EXPECT_THROW(clipped(11), Error) << "it has become an input";
}

FunctionDefinition scaled() {
  FunctionDefinition f{.name = "Scaled",
                       .domain = "own",
                       .inputs = {"a"},
                       .outputs = {"b"},
                       .attributes = {"axis"},
                       .opsets = {{"", 13}}};
  f.defaults.push_back(number("factor", 3));
  f.body.nodes = {node("Constant", {}, {"k"}, {{.name = "value_float", .kind = Kind::number, .reference = "factor"}}),
                  node("Mul", {"a", "k"}, {"m"}),
                  node("Concat", {"m", "a"}, {"b"}, {{.name = "axis", .kind = Kind::integer, .reference = "axis"}})};
  return f;
}

// What has fractions on the way is computed on floats and cut off; sums of products of narrow ones wrap.
TEST(OnnxModel, ReductionsOfIntegers) {
  const auto reduced = [](const char* op, DType t, std::vector<std::int64_t> values) {
    const auto n = static_cast<std::int64_t>(values.size());
    const Model model =
        model_of(graph({node(op, {"x"}, {"y"}, {integer("keepdims", 0)})}, {port("x", t)}, {port("y", t)}));
    const Tensor y = call(model, {cast(from_values(values, {n}), t)})[0];
    EXPECT_EQ(y.dtype(), t) << op;
    return y.item();
  };
  for (const DType t : {i32, i64, u32, u64}) {
    EXPECT_EQ(reduced("ReduceMean", t, {1, 2, 5, 3}), 2);
    EXPECT_EQ(reduced("ReduceL2", t, {3, 4, 2}), 5);  // sqrt(29)
    EXPECT_EQ(reduced("ReduceLogSum", t, {10, 20}), 3);
    EXPECT_EQ(reduced("ReduceLogSumExp", t, {7, 7, 7}), 8);
  }
  EXPECT_EQ(reduced("ReduceMean", i32, {-1, -2}), -1);
}

TEST(OnnxModel, EinsumOfNarrowIntegersWraps) {
  for (const DType t : {i8, u8, i16, u16}) {
    const Model model = model_of(
        graph({node("Einsum", {"a", "a"}, {"y"}, {word("equation", "i,i->")})}, {port("a", t)}, {port("y", t)}));
    const Tensor a = cast(from_values(std::vector<std::int64_t>{100, 100, 7}, {3}), t);
    const Tensor y = call(model, {a})[0];
    EXPECT_EQ(y.dtype(), t);
    EXPECT_EQ(y.item(), cast(constant(20049), t).item());
  }
}

// Before 14: moved averages, and mean and variance of the batch.
TEST(OnnxModel, TrainingBatchNormalizationOfOldHasFiveResults) {
  const Model model = model_of(graph({node("BatchNormalization", {"x", "one", "zero", "m", "v"},
                                           {"y", "mean", "var", "saved_mean", "saved_var"})},
                                     {port("x"), port("one"), port("zero"), port("m"), port("v")},
                                     {port("y"), port("mean"), port("var"), port("saved_mean"), port("saved_var")}),
                               9);
  const Tensors results = call(model, {reshape(constant({1.0, 3.0}), {2, 1}), constant({1.0}), constant({0.0}),
                                       constant({0.0}), constant({1.0})});
  EXPECT_EQ(results[3].item(), 2);
  EXPECT_EQ(results[4].item(), 1);
}

TEST(OnnxModel, FunctionsTakeAttributesAndDefaults) {
  ModelFile file = file_of(graph({node("Scaled", {"x"}, {"p"}, {integer("axis", 0)}, "own"),
                                  node("Scaled", {"p"}, {"y"}, {integer("axis", 1), number("factor", 0)}, "own")},
                                 {port("x")}, {port("y")}));
  file.functions.push_back(std::make_unique<FunctionDefinition>(scaled()));
  const Tensor y = model_of(file)(constant({{1.0, 2.0}}));
  EXPECT_EQ(y.shape(), (Shape{2, 4}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{0, 0, 3, 6, 0, 0, 1, 2}));
}

TEST(OnnxModel, EveryUnknownOpIsNamed) {
  const std::string said = complaint([] {
    model_of(graph({node("Foo", {"x"}, {"a"}), node("Add", {"a", "x"}, {"b"}), node("Bar", {"b"}, {"y"}, {}, "own")},
                   {port("x")}, {port("y")}));
  });
  EXPECT_EQ(said, "sample: there is no op Foo-21 of node `a` (Foo), op own.Bar-1 of node `y` (own.Bar)");
}

}  // namespace
}  // namespace gradus::onnx::model_test
