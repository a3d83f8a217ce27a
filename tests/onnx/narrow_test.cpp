/// Ops of several steps on f16 and bf16: values and gradients are those of f64, rounded once.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <random>
#include "gradus/ops/elementwise.h"
#include "tests/onnx/sample_models.h"

namespace gradus::onnx {
namespace {

constexpr const char* training = "ai.onnx.preview.training";

/// An input: floats drawn between the bounds, or the integers that are listed.
struct Input {
  Shape shape;
  double low = -1, high = 1;
  std::vector<std::int64_t> integers = {};
  bool absent = false;
};
Input integers_in(Shape shape, std::vector<std::int64_t> values) {
  return {.shape = std::move(shape), .integers = std::move(values)};
}
Input whole(std::int64_t value) { return integers_in({}, {value}); }
const Input none{.shape = {}, .absent = true};

struct Case {
  std::string op;
  std::vector<Input> inputs;
  std::vector<Attribute> attributes = {};
  int outputs = 1;
  std::string domain = "";
};

/// Arguments of a model, with the names and the ports that it has for them.
struct Arguments {
  void add(const std::string& name, const Tensor& value) {
    ports.push_back(port(name, value.dtype()));
    values.push_back(value);
  }
  std::vector<ValueInfo> ports;
  Tensors values;
};

class Narrow {
 public:
  Narrow(const Case& c, DType t) : case_(c), dtype_(t) {
    for (const Input& input : c.inputs) inputs_.push_back(input.absent ? Tensor() : drawn(input));
    for (const Tensor& y : run(f64)) weights_.push_back(drawn({y.shape(), 0.5, 1.5}));
  }

  /// Outputs, then gradients of the sum of outputs times weights by floating inputs, computed in t.
  Tensors run(DType t) const {
    Arguments arguments;
    Words inputs, sources, outputs, terms;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Tensor& x = inputs_[i];
      inputs.push_back(x.defined() ? text("x", i) : "");
      if (x.defined()) arguments.add(inputs.back(), is_floating(x.dtype()) ? cast(x, t) : x);
      if (x.defined() && is_floating(x.dtype())) sources.push_back(inputs.back());
    }
    for (int k = 0; k < case_.outputs; ++k) outputs.push_back(text("y", k));
    std::vector<NodeDefinition> nodes{node(case_.op, inputs, outputs, case_.attributes, case_.domain)};
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      const std::string weight = text("w", k), weighted = text("wy", k);
      terms.push_back(text("t", k));
      arguments.add(weight, cast(weights_[k], t));
      nodes.push_back(node("Mul", {outputs[k], weight}, {weighted}));
      nodes.push_back(node("ReduceSum", {weighted}, {terms.back()}, {integer("keepdims", 0)}));
    }
    if (!terms.empty()) {
      nodes.push_back(node("Sum", terms, {"total"}));
      for (const std::string& x : sources) outputs.push_back("d" + x);
      nodes.push_back(node("Gradient", sources, {outputs.begin() + case_.outputs, outputs.end()},
                           {words("xs", sources), word("y", "total")}, training));
    }
    std::vector<ValueInfo> results;
    for (const std::string& name : outputs) results.push_back(port(name, t));
    Tensors all = call(model_of(graph(std::move(nodes), arguments.ports, results), 28), arguments.values);
    for (Tensor& each : all) {
      EXPECT_EQ(each.dtype(), t);
      each = cast(each, f64);
    }
    return all;
  }

  /// Rounding once is off by half a unit in the last place; what f32 is off by where terms cancel goes by the largest
  /// element.
  void expect_rounded_once() const {
    const Tensors got = run(dtype_), want = run(f64);
    const double half_unit = dtype_ == f16 ? 0x1p-11 : 0x1p-8, least = dtype_ == f16 ? 0x1p-25 : 0x1p-134;
    for (std::size_t k = 0; k < want.size(); ++k) {
      const std::vector<double> left = got[k].to_vector<double>(), right = want[k].to_vector<double>();
      double largest = 0, worst = 0;
      for (double x : right) largest = std::max(largest, std::fabs(x));
      for (std::size_t i = 0; i < right.size(); ++i)
        worst = std::max(worst,
                         std::fabs(left[i] - right[i]) / (half_unit * std::fabs(right[i]) + least + 0x1p-20 * largest));
      EXPECT_LE(worst, 1) << case_.op << " in " << dtype_ << ", result " << k << " of " << case_.outputs
                          << " outputs and their gradients: off by so many times what rounding once allows";
    }
  }

 private:
  /// Numbers that `dtype` has, in f64.
  Tensor drawn(const Input& input) {
    if (!input.integers.empty()) return from_values(input.integers, input.shape);
    std::vector<double> values(static_cast<std::size_t>(input.shape.size()));
    for (double& x : values) x = std::uniform_real_distribution(input.low, input.high)(random_);
    return cast(cast(from_values(values, input.shape), dtype_), f64);
  }

  Case case_;
  DType dtype_;
  std::mt19937 random_{7};
  Tensors inputs_, weights_;
};

class NarrowFloats : public testing::TestWithParam<Case> {};

TEST_P(NarrowFloats, AreRoundedOnce) {
  for (const DType t : {f16, bf16}) Narrow(GetParam(), t).expect_rounded_once();
}

std::string name_of(const testing::TestParamInfo<Case>& info) { return text(info.param.op, "_", info.index); }

const Case recurrent[] = {
    {"RNN", {{{7, 3, 4}}, {{1, 5, 4}}, {{1, 5, 5}}, {{1, 10}}}, {}, 2},
    {"GRU", {{{7, 3, 4}}, {{1, 15, 4}}, {{1, 15, 5}}, {{1, 30}}}, {}, 2},
    {"GRU",
     {{{7, 3, 4}}, {{2, 15, 4}}, {{2, 15, 5}}, {{2, 30}}},
     {word("direction", "bidirectional"), integer("linear_before_reset", 1)},
     2},
    {"LSTM", {{{7, 3, 4}}, {{1, 20, 4}}, {{1, 20, 5}}, {{1, 40}}, none, {{1, 3, 5}}, {{1, 3, 5}}, {{1, 15}}}, {}, 3},
};

const Case attention[] = {
    {"Attention", {{{2, 4, 5, 8}}, {{2, 2, 7, 8}}, {{2, 2, 7, 8}}}},
    {"Attention",
     {{{2, 4, 5, 8}}, {{2, 4, 7, 8}}, {{2, 4, 7, 8}}, {{5, 7}}},
     {integer("qk_matmul_output_mode", 3), number("softcap", 2)},
     4},
    {"LinearAttention",
     {{{2, 6, 8}}, {{2, 6, 8}}, {{2, 6, 8}}, none, {{2, 6, 2}, -1, 0}, {{2, 6, 2}, 0, 1}},
     {integer("q_num_heads", 2), integer("kv_num_heads", 2)},
     2},
    {"RotaryEmbedding", {{{2, 3, 4, 8}}, {{2, 4, 4}}, {{2, 4, 4}}}},
};

const Case normalisations[] = {
    {"BatchNormalization", {{{3, 4, 5, 6}}, {{4}}, {{4}}, {{4}}, {{4}, 0.5, 2}}},
    {"BatchNormalization", {{{3, 4, 5, 6}}, {{4}}, {{4}}, {{4}}, {{4}, 0.5, 2}}, {integer("training_mode", 1)}, 3},
    {"GroupNormalization", {{{2, 4, 5, 6}}, {{4}}, {{4}}}, {integer("num_groups", 2)}},
    {"InstanceNormalization", {{{2, 4, 5, 6}}, {{4}}, {{4}}}},
    {"LRN", {{{2, 7, 5, 6}}}, {integer("size", 3), number("alpha", 0.5)}},
    {"LayerNormalization", {{{4, 9}}, {{9}}, {{9}}}},
    {"LpNormalization", {{{4, 9}}}},
    {"MeanVarianceNormalization", {{{2, 4, 5, 6}}}},
    {"RMSNormalization", {{{4, 9}}, {{9}}}},
};

const Case reductions[] = {
    {"CumProd", {{{4, 9}}, whole(1)}},
    {"CumSum", {{{4, 9}}, whole(1)}},
    {"Einsum", {{{3, 4, 5}}, {{3, 5, 6}}}, {word("equation", "bij,bjk->bik")}},
    {"Gemm", {{{5, 7}}, {{7, 4}}, {{4}}}, {number("alpha", 0.3), number("beta", 0.7)}},
    {"LogSoftmax", {{{4, 9}, -3, 3}}},
    {"Mean", {{{4, 9}}, {{9}}, {{4, 1}}}},
    {"ReduceL1", {{{4, 9}}}, {integer("keepdims", 0)}},
    {"ReduceL2", {{{4, 9}}}},
    {"ReduceLogSum", {{{4, 9}, 0.1, 1}}},
    {"ReduceLogSumExp", {{{4, 9}}}},
    {"ReduceProd", {{{4, 9}, 0.5, 1.5}}},
    {"ReduceSumSquare", {{{4, 9}}}},
    {"Softmax", {{{4, 9}, -3, 3}}},
    {"Sum", {{{4, 9}}, {{9}}, {{4, 1}}}},
};

const Case windows[] = {
    {"AveragePool", {{{2, 3, 6, 6}}}, {integers("kernel_shape", {3, 3})}},
    {"Col2Im", {{{1, 12, 4}}, integers_in({2}, {3, 3}), integers_in({2}, {2, 2})}},
    {"Conv", {{{2, 3, 6, 6}}, {{4, 3, 3, 3}}, {{4}}}},
    {"ConvTranspose", {{{2, 3, 4, 4}}, {{3, 4, 3, 3}}, {{4}}}, {integers("strides", {2, 2})}},
    {"DeformConv", {{{1, 2, 4, 4}}, {{2, 2, 2, 2}}, {{1, 8, 3, 3}, 0.1, 0.4}, {{2}}}},
    {"GlobalAveragePool", {{{2, 3, 6, 6}}}},
    {"GlobalLpPool", {{{2, 3, 6, 6}}}},
    {"LpPool", {{{2, 3, 6, 6}}}, {integers("kernel_shape", {3, 3})}},
};

const Case images_and_signals[] = {
    {"AffineGrid", {{{2, 2, 3}}, integers_in({4}, {2, 1, 4, 5})}},
    {"DFT", {{{2, 10, 2}}}},
    {"GridSample", {{{1, 2, 5, 5}}, {{1, 4, 4, 2}}}, {word("mode", "cubic")}},
    {"Resize",
     {{{1, 2, 5, 5}}, none, none, integers_in({4}, {1, 2, 8, 3})},
     {word("mode", "cubic"), integer("antialias", 1)}},
    {"RoiAlign", {{{1, 2, 6, 6}}, {{2, 4}, 0, 5}, integers_in({2}, {0, 0})}, {integer("output_height", 2)}},
    {"STFT", {{{1, 20, 1}}, whole(4), {{8}}}},
};

const Case losses_and_activations[] = {
    {"Dropout", {{{4, 9}}, {{}, 0.3, 0.4}, whole(1)}, {integer("seed", 3)}},
    {"LeakyRelu", {{{4, 9}}}, {number("alpha", 0.3)}},
    {"Shrink", {{{4, 9}}}, {number("bias", 0.3)}},
    {"ThresholdedRelu", {{{4, 9}}}, {number("alpha", 0.3)}},
    {"Det", {{{2, 4, 4}}}},
    {"NegativeLogLikelihoodLoss", {{{3, 5, 2}}, integers_in({3, 2}, {0, 4, 1, 2, 3, 3}), {{5}, 0.5, 2}}},
    {"PRelu", {{{4, 9}}, {{9}}}},
    {"Selu", {{{4, 9}}}},
    {"SoftmaxCrossEntropyLoss", {{{3, 5, 2}}, integers_in({3, 2}, {0, 4, 1, 2, 3, 3})}, {}, 2},
    {"SwiGLU", {{{4, 9}}, {{4, 9}}}},
};

const Case updates[] = {
    {"Adagrad", {{{1}, 0.1, 0.2}, whole(3), {{9}}, {{9}}, {{9}, 0.5, 1}}, {}, 2, training},
    {"Adam", {{{1}, 0.1, 0.2}, whole(3), {{9}}, {{9}}, {{9}}, {{9}, 0.5, 1}}, {}, 3, training},
    {"Momentum",
     {{{1}, 0.1, 0.2}, whole(3), {{9}}, {{9}}, {{9}}},
     {number("alpha", 0.9), number("beta", 0.3), number("norm_coefficient", 0.1), word("mode", "nesterov")},
     2,
     training},
};

INSTANTIATE_TEST_SUITE_P(Recurrent, NarrowFloats, testing::ValuesIn(recurrent), name_of);
INSTANTIATE_TEST_SUITE_P(Attention, NarrowFloats, testing::ValuesIn(attention), name_of);
INSTANTIATE_TEST_SUITE_P(Normalisations, NarrowFloats, testing::ValuesIn(normalisations), name_of);
INSTANTIATE_TEST_SUITE_P(Reductions, NarrowFloats, testing::ValuesIn(reductions), name_of);
INSTANTIATE_TEST_SUITE_P(Windows, NarrowFloats, testing::ValuesIn(windows), name_of);
INSTANTIATE_TEST_SUITE_P(ImagesAndSignals, NarrowFloats, testing::ValuesIn(images_and_signals), name_of);
INSTANTIATE_TEST_SUITE_P(LossesAndActivations, NarrowFloats, testing::ValuesIn(losses_and_activations), name_of);
INSTANTIATE_TEST_SUITE_P(Updates, NarrowFloats, testing::ValuesIn(updates), name_of);

}  // namespace
}  // namespace gradus::onnx
