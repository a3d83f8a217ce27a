/// Ops of several steps on f16 and bf16: values and gradients are those of f64, rounded once.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <random>
#include "gradus/autodiff/vjp.h"
#include "gradus/graph/context.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/onnx/sample_models.h"

namespace gradus::onnx::narrow_test {
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

/// Rounding once is off by half a unit in the last place; what f32 is off by where terms cancel goes by the largest
/// element.
void expect_rounded_once(const Tensors& got, const Tensors& want, DType t, const std::string& what) {
  const double half_unit = t == f16 ? 0x1p-11 : 0x1p-8, least = t == f16 ? 0x1p-25 : 0x1p-134;
  for (std::size_t k = 0; k < want.size(); ++k) {
    const std::vector<double> left = got[k].to_vector<double>(), right = want[k].to_vector<double>();
    double largest = 0, worst = 0;
    for (double x : right) largest = std::max(largest, std::fabs(x));
    for (std::size_t i = 0; i < right.size(); ++i)
      worst = std::max(worst,
                       std::fabs(left[i] - right[i]) / (half_unit * std::fabs(right[i]) + least + 0x1p-20 * largest));
    EXPECT_LE(worst, 1) << what << " in " << t << ", result " << k
                        << ": off by so many times what rounding once allows";
  }
}

/// Numbers that dtype t has, in f64.
Tensor drawn(const Shape& shape, double low, double high, DType t, std::mt19937& random) {
  std::vector<double> values(static_cast<std::size_t>(shape.size()));
  for (double& x : values) x = std::uniform_real_distribution(low, high)(random);
  return cast(cast(from_values(values, shape), t), f64);
}

/// An op between its inputs, the numbers of which are those that dtype t has, and a weighted sum of its outputs.
class Narrow {
 public:
  Narrow(const Case& c, DType t) : case_(c), dtype_(t) {
    for (const Input& input : c.inputs) inputs_.push_back(value_of(input));
    for (const Tensor& y : run(f64)) weights_.push_back(drawn(y.shape(), 0.5, 1.5, t, random_));
  }

  /// Outputs in dtype t, then gradients of the sum of outputs times weights by floating inputs, by a tape around
  /// the model.
  Tensors run(DType t) const {
    Words inputs, outputs;
    std::vector<ValueInfo> in_ports, out_ports;
    Tensors arguments, sources;
    const RecordingScope history;
    const std::uint64_t start = new_sequence();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs.push_back(inputs_[i].defined() ? text("x", i) : "");
      if (!inputs_[i].defined()) continue;
      const bool floats = is_floating(inputs_[i].dtype());
      arguments.push_back(floats ? as_argument(cast(inputs_[i], t)) : inputs_[i]);
      in_ports.push_back(port(inputs.back(), arguments.back().dtype()));
      if (floats) sources.push_back(arguments.back());
    }
    for (int k = 0; k < case_.outputs; ++k) {
      outputs.push_back(text("y", k));
      out_ports.push_back(port(outputs.back(), t));
    }
    const Model model =
        model_of(graph({node(case_.op, inputs, outputs, case_.attributes, case_.domain)}, in_ports, out_ports), 28);
    Tensors results;
    for (const Tensor& y : call(model, arguments)) {
      EXPECT_EQ(y.dtype(), t);
      results.push_back(cast(y, f64));
    }
    if (weights_.empty()) return results;
    Tensor total = zeros({}, f64);
    for (std::size_t k = 0; k < weights_.size(); ++k) total = total + reduce_sum(results[k] * weights_[k]);
    const Tensors gradients =
        vjp(total, sources, ones_like(total), [start](const Node& each) { return each.sequence < start; });
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const Tensor d = gradients[i].defined() ? gradients[i] : zeros_like(sources[i]);
      EXPECT_EQ(d.dtype(), t);
      results.push_back(cast(d, f64));
    }
    return results;
  }

 private:
  Tensor value_of(const Input& input) {
    if (input.absent) return {};
    if (!input.integers.empty()) return from_values(input.integers, input.shape);
    return drawn(input.shape, input.low, input.high, dtype_, random_);
  }

  Case case_;
  DType dtype_;
  std::mt19937 random_{7};
  Tensors inputs_, weights_;
};

class NarrowFloats : public testing::TestWithParam<Case> {};

TEST_P(NarrowFloats, AreRoundedOnce) {
  for (const DType t : {f16, bf16}) {
    const Narrow narrow(GetParam(), t);
    expect_rounded_once(narrow.run(t), narrow.run(f64), t, GetParam().op);
  }
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

// Of several nodes too: between those that Gradient goes through nothing is rounded. x is used twice, s along rows.
TEST(OnnxGradient, NarrowFloatsAreRoundedOnce) {
  const Words sources{"x", "w", "s"}, results{"dx", "dw", "ds", "dxx", "dxw"};
  for (const DType t : {f16, bf16}) {
    std::mt19937 random{7};
    const Tensors at{drawn({4, 6}, -1, 1, t, random), drawn({6, 6}, -1, 1, t, random), drawn({6}, -1, 1, t, random)};
    const auto run = [&](DType computed) {
      const auto ports = [&](const Words& names) {
        std::vector<ValueInfo> all;
        for (const std::string& name : names) all.push_back(port(name, computed));
        return all;
      };
      const auto gradient = [&](std::string y, Words outputs, Words by, Words others) {
        Words all = by;
        all.insert(all.end(), others.begin(), others.end());
        return node("Gradient", all, std::move(outputs),
                    {words("xs", by), words("zs", others), word("y", std::move(y))}, training);
      };
      const Model model =
          model_of(graph({node("MatMul", {"x", "w"}, {"p"}), node("Tanh", {"p"}, {"h"}), node("Mul", {"h", "s"}, {"m"}),
                          node("Add", {"m", "x"}, {"r"}), node("Softmax", {"r"}, {"q"}),
                          node("ReduceSumSquare", {"q"}, {"y"}), gradient("y", {"dx", "dw", "ds"}, {"x", "w", "s"}, {}),
                          node("ReduceSumSquare", {"dx"}, {"z"}), gradient("z", {"dxx", "dxw"}, {"x", "w"}, {"s"})},
                         ports(sources), ports(results)));
      Tensors arguments, all;
      for (const Tensor& each : at) arguments.push_back(cast(each, computed));
      for (const Tensor& each : call(model, arguments)) all.push_back(cast(each, f64));
      return all;
    };
    expect_rounded_once(run(t), run(f64), t, "the gradient of several nodes");
  }
}

INSTANTIATE_TEST_SUITE_P(Recurrent, NarrowFloats, testing::ValuesIn(recurrent), name_of);
INSTANTIATE_TEST_SUITE_P(Attention, NarrowFloats, testing::ValuesIn(attention), name_of);
INSTANTIATE_TEST_SUITE_P(Normalisations, NarrowFloats, testing::ValuesIn(normalisations), name_of);
INSTANTIATE_TEST_SUITE_P(Reductions, NarrowFloats, testing::ValuesIn(reductions), name_of);
INSTANTIATE_TEST_SUITE_P(Windows, NarrowFloats, testing::ValuesIn(windows), name_of);
INSTANTIATE_TEST_SUITE_P(ImagesAndSignals, NarrowFloats, testing::ValuesIn(images_and_signals), name_of);
INSTANTIATE_TEST_SUITE_P(LossesAndActivations, NarrowFloats, testing::ValuesIn(losses_and_activations), name_of);
INSTANTIATE_TEST_SUITE_P(Updates, NarrowFloats, testing::ValuesIn(updates), name_of);

}  // namespace
}  // namespace gradus::onnx::narrow_test
