/// Training curves on the plugin's device against the processor: the same losses over 20 steps, dropout included, since
/// random numbers have the same bits.
#include "gradus/nn/attention.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/model.h"
#include "gradus/nn/normalization.h"
#include "gradus/nn/recurrent.h"
#include "tests/xla/plugin.h"

namespace gradus::curves_test {
namespace {

struct Curve {
  std::vector<double> losses;
};

/// 20 steps of a model made on the device.
template <class Make> Curve curve_of(const Device& device, const Tensor& x, const Tensor& y, Make make) {
  set_seed(7);
  const DeviceScope scope(device);
  auto model = make();
  Adam optimizer({.learning_rate = 1e-3});
  SparseCategoricalCrossentropy loss_of{from_logits};
  const auto step = function([&](Tensor features, Tensor labels) {
    GradientTape tape;
    Loss loss = loss_of(labels, model(features, training));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  Curve curve;
  for (int i = 0; i < 20; ++i) curve.losses.push_back(step(x, y).item());
  return curve;
}

template <class Make>
void expect_equal_curves(const Device& device, const Tensor& x, const Tensor& y, double tolerance, Make make) {
  const Curve here = curve_of(cpu(0), x, y, make), there = curve_of(device, x, y, make);
  for (std::size_t i = 0; i < here.losses.size(); ++i)
    EXPECT_NEAR(there.losses[i], here.losses[i], tolerance * std::abs(here.losses[i])) << "step " << i;
  EXPECT_LT(here.losses.back(), here.losses.front());
}

Tensor labels(std::int64_t n, std::int64_t classes) {
  return cast(random::integers({n}, {.high = classes, .seed = 9}), i32);
}

using CurvesOnPlugin = testing_plugin::WithPlugin;

TEST_F(CurvesOnPlugin, PerceptronWithDropout) {
  expect_equal_curves(device(), random::normal({32, 20}, {.seed = 5}), labels(32, 5), 1e-5,
                      [] { return Sequential{Dense(32, relu), Dropout(0.5), Dense(5)}; });
}

TEST_F(CurvesOnPlugin, LongShortTermMemory) {
  expect_equal_curves(device(), random::normal({8, 12, 6}, {.seed = 5}), labels(8, 4), 1e-5, [] {
    Sequential model;
    model.add(LSTM(16));
    model.add(Dense(4));
    return model;
  });
}

struct Transformer {
  Embedding embed{30, 32};
  PositionEmbedding place{12};
  LayerNormalization first{{.epsilon = 1e-5}}, second{{.epsilon = 1e-5}};
  MultiHeadAttention attention{4, 8, {.causal = true}};
  Dense up{64, [](const Tensor& x) { return gelu(x, {.approximate = true}); }}, down{32};
  Dropout dropout{0.2};
  Dense scores{5};
  Tensor operator()(Tensor tokens) const {
    Tensor x = place(embed(tokens));
    x = x + dropout(attention(first(x)));
    x = x + dropout(down(up(second(x))));
    return scores(reduce_mean(x, {.axis = {1}}));
  }
};

TEST_F(CurvesOnPlugin, TransformerWithDropout) {
  const Tensor tokens = cast(random::integers({8, 12}, {.high = 30, .seed = 5}), i32);
  expect_equal_curves(device(), tokens, labels(8, 5), 1e-5, [] { return Model<Transformer>(Transformer()); });
}

/// In f64: a relu or a pool that is decided the other way in the last place would make another curve.
TEST_F(CurvesOnPlugin, ConvolutionsWithBatchNormalization) {
  const Tensor images = random::normal({8, 10, 10, 3}, {.dtype = f64, .seed = 5});
  expect_equal_curves(device(), images, labels(8, 5), 1e-9, [] {
    Sequential model;
    model.add(Conv2D(8, 3, {.padding = Padding::same, .use_bias = false}));
    model.add(BatchNormalization());
    model.add(Lambda([](const Tensor& x) { return relu(x); }));
    model.add(DepthwiseConv2D(3, {.padding = Padding::same}));
    model.add(MaxPooling2D());
    model.add(Flatten());
    model.add(Dense(5));
    return model;
  });
}

}  // namespace
}  // namespace gradus::curves_test
