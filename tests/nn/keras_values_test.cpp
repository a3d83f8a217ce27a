/// Models of layers against Keras's stored values: results, masks, losses of regularizers, and gradients of all of it.
#include "tests/nn/keras_values.h"
#include <gtest/gtest.h>
#include <algorithm>
#include "gradus/base/rooms.h"
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/activity_regularization.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/cells.h"
#include "gradus/nn/convolutions.h"
#include "gradus/nn/dot_attention.h"
#include "gradus/nn/einsum_dense.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/merging.h"
#include "gradus/nn/model.h"
#include "gradus/nn/pools.h"
#include "gradus/nn/recurrent.h"
#include "gradus/nn/spectral_normalization.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"

namespace gradus::keras_values_test {
namespace {

using regularizers::L1, regularizers::L1L2, regularizers::L2;

Embedding words() { return Embedding(9, 4, {.mask_zero = true}); }

/// Masks go their way through plain C++ too.
struct MaskedSum {
  Embedding look{9, 4, {.mask_zero = true}};
  Dense dense{4, tanh};
  LSTM read{3};
  Tensor operator()(Tensor x) const {
    const Tensor a = look(x);
    return read(Add()(a, dense(a)));
  }
};

struct MaskedPair {
  Embedding words{9, 4, {.mask_zero = true}}, plain{9, 3};
  GRU read{3};
  Tensor operator()(Tensor x) const { return read(Concatenate{}(std::vector{words(x), plain(x)})); }
};

/// Of the first two places to the others, whose keys are a dense layer of them.
template <class A> struct TwoInputs {
  Dense keys{4};
  A look{};
  Tensor operator()(Tensor x) const {
    const Tensor query = slice_axis(x, 1, 0, 2, "query"), value = slice_axis(x, 1, 2, 3, "value");
    return look(query, value, keys(value));
  }
};

struct Case {
  std::string name;
  std::function<Module()> make;
  CallMode mode = CallMode::inference;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case cases[] = {
    {"penalties_dense",
     [] {
       return Sequential{Dense(5, tanh,
                               {.kernel_regularizer = L2(0.03125),
                                .bias_regularizer = L1(0.015625),
                                .activity_regularizer = L1L2(0.0078125, 0.03125)}),
                         ActivityRegularization({.l1 = 0.015625, .l2 = 0.0625}),
                         Dense(3, linear, {.kernel_regularizer = L1L2(0.0625, 0.125)})};
     },
     CallMode::training},
    {"penalties_conv",
     [] {
       return Sequential{Conv2D(4, 3,
                                {.kernel_regularizer = L2(0.03125),
                                 .bias_regularizer = L1(0.0625),
                                 .activity_regularizer = L1(0.0078125)}),
                         DepthwiseConv2D(2, {.kernel_regularizer = L1(0.03125)}),
                         SeparableConv2D(3, 2,
                                         {.kernel_regularizer = L2(0.0625),
                                          .bias_regularizer = L2(0.125),
                                          .pointwise_regularizer = L1(0.015625)}),
                         Conv2DTranspose(2, 2, {.kernel_regularizer = L1(0.0625)})};
     }},
    {"penalties_sequence",
     [] {
       return Sequential{Embedding(9, 4, {.mask_zero = true, .embeddings_regularizer = L2(0.0625)}),
                         LSTM(3, {.return_sequences = true,
                                  .kernel_regularizer = L1(0.03125),
                                  .recurrent_regularizer = L2(0.0625),
                                  .bias_regularizer = L2(0.125),
                                  .activity_regularizer = L2(0.0625)}),
                         LayerNormalization({.beta_regularizer = L1(0.03125), .gamma_regularizer = L2(0.0625)}),
                         GRU(2, {.kernel_regularizer = L2(0.03125)})};
     }},
    {"penalties_norm",
     [] {
       return Sequential{Dense(4),
                         BatchNormalization({.beta_regularizer = L1(0.0625), .gamma_regularizer = L2(0.03125)}),
                         GroupNormalization(2, {.beta_regularizer = L2(0.0625), .gamma_regularizer = L1(0.03125)})};
     },
     CallMode::training},
    {"penalties_attention",
     [] {
       return MultiHeadAttention(
           2, 4,
           {.kernel_regularizer = L2(0.0625), .bias_regularizer = L1(0.03125), .activity_regularizer = L2(0.015625)});
     }},
    {"mask_lstm", [] { return Sequential{words(), Dropout(0.25), LSTM(3, {.return_sequences = true}), Dense(3)}; }},
    {"mask_last", [] { return Sequential{words(), GRU(4)}; }},
    {"mask_backwards",
     [] { return Sequential{Masking(), SimpleRNN(3, {.return_sequences = true, .go_backwards = true})}; }},
    {"mask_value", [] { return Sequential{Masking(0.5), LSTM(3)}; }},
    {"mask_bidirectional",
     [] { return Sequential{words(), Bidirectional(LSTM(3, {.return_sequences = true})), TimeDistributed(Dense(2))}; }},
    {"mask_bidirectional_last", [] { return Sequential{words(), Bidirectional(GRU(3))}; }},
    {"mask_attention", [] { return Sequential{words(), MultiHeadAttention(2, 4)}; }},
    {"mask_attention_mean", [] { return Sequential{words(), MultiHeadAttention(2, 4), GlobalAveragePooling1D()}; }},
    {"mask_average",
     [] { return Sequential{Masking(), LayerNormalization(), Dense(3, relu), GlobalAveragePooling1D(), Dense(2)}; }},
    {"mask_batch_norm", [] { return Sequential{words(), BatchNormalization()}; }, CallMode::training},
    {"mask_zero_output",
     [] { return Sequential{words(), GRU(3, {.return_sequences = true, .zero_output_for_mask = true})}; }},
    {"mask_dropped", [] { return Sequential{words(), Conv1D(3, 2, {.padding = Padding::same}), LSTM(2)}; }},
    {"mask_sum", [] { return Model<MaskedSum>(); }},
    {"mask_concatenate", [] { return Model<MaskedPair>(); }},
    {"einsum_heads",
     [] { return EinsumDense("abc,cde->abde", {-1, 2, 3}, {.bias_axes = "de", .kernel_regularizer = L2(0.0625)}); }},
    {"einsum_left", [] { return EinsumDense("...x,xy->...y", {5}, {.activation = tanh, .bias_axes = "y"}); }},
    {"einsum_right", [] { return EinsumDense("ab...,bc->ac...", {5}, {.bias_axes = "c"}); }},
    {"einsum_no_bias", [] { return EinsumDense("abc,cd->abd", {-1, 2}); }},
    {"attention", [] { return Model<TwoInputs<Attention>>(); }},
    {"attention_scaled",
     [] {
       return Model<TwoInputs<Attention>>({.look = Attention({.use_scale = true, .score_mode = ScoreMode::concat})});
     }},
    {"attention_additive", [] { return Model<TwoInputs<AdditiveAttention>>(); }},
    {"attention_causal", [] { return AdditiveAttention({.use_scale = false, .causal = true}); }},
    {"attention_masked", [] { return Sequential{words(), Attention()}; }},
    {"cells_lstm", [] { return RNN(LSTMCell(3), {.return_sequences = true}); }},
    {"cells_gru", [] { return RNN(GRUCell(3)); }},
    {"cells_gru_before", [] { return RNN(GRUCell(3, {.reset_after = false}), {.go_backwards = true}); }},
    {"cells_stacked",
     [] { return Sequential{words(), RNN({LSTMCell(3), SimpleRNNCell(2), GRUCell(4)}, {.return_sequences = true})}; }},
    {"cells_masked_last", [] { return Sequential{words(), RNN(LSTMCell(3))}; }},
    {"cells_masked_zero",
     [] { return Sequential{words(), RNN(GRUCell(3), {.return_sequences = true, .zero_output_for_mask = true})}; }},
    {"conv_lstm_1d",
     [] {
       return ConvLSTM1D(
           3, 3,
           {.strides = 2, .padding = Padding::same, .return_sequences = true, .recurrent_regularizer = L1(0.0625)});
     }},
    {"conv_lstm_2d", [] { return ConvLSTM2D(2, {2, 3}, {.go_backwards = true, .activation = relu}); }},
    {"spectral_dense", [] { return SpectralNormalization(Dense(3, tanh), {.power_iterations = 2}); },
     CallMode::training},
    {"spectral_conv", [] { return SpectralNormalization(Conv2D(3, 2)); }, CallMode::training},
    {"spectral_embedding", [] { return SpectralNormalization(Embedding(9, 4)); }, CallMode::training},
    {"spectral_inference", [] { return SpectralNormalization(Dense(3)); }},
};

double far(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  return a.shape() == b.shape() && a.shape().size() > 0 ? max_abs_difference(cast(a, f64), cast(b, f64)) : 0;
}

class KerasValuesOf : public testing::TestWithParam<Case> {
 protected:
  /// sum(y * cotangent) and the losses.
  Tensor objective(const Module& model, const Tensor& x, const Tensor& cotangent) const {
    const ModeScope mode(GetParam().mode);
    Tensor total = reduce_sum(model(x) * cotangent);
    for (const Tensor& loss : model.losses()) total = total + loss;
    return total;
  }
  /// Of one dtype, its numbers within `tolerance`.
  void check(DType t, double tolerance) const {
    const KerasValues keras(GetParam().name);
    Module model = GetParam().make();
    keras.build(model, t);
    const Tensor x = keras.in(t, "x"), cotangent = keras.in(t, "cotangent");
    {
      const Module copy = model;  // batch normalization moves
      const ModeScope mode(GetParam().mode);
      const Tensor counts = cast(not_equal(keras["cotangent"], 0), f64);
      EXPECT_LE(far(cast(copy(x), f64) * counts, keras["y"] * counts), tolerance);
      std::vector<double> losses, expected = keras["losses"].to_vector<double>();
      for (const Tensor& loss : copy.losses()) losses.push_back(loss.item());
      std::ranges::sort(losses);  // within a layer Keras lists them in another order
      std::ranges::sort(expected);
      ASSERT_EQ(losses.size(), expected.size());
      for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 4 * tolerance) << i;
      const Tensor mask = copy.compute_mask(x);
      EXPECT_EQ(mask.defined(), keras.has("mask"));
      if (keras.has("mask") && mask.defined()) {
        // A sequence in the order of the steps has its mask in that order here; Keras hands on that of the input.
        const bool turned = GetParam().name == std::string("mask_backwards");
        EXPECT_TRUE(bitwise_equal(mask, turned ? reverse(keras["mask"], {1}) : keras["mask"]));
      }
    }
    GradientTape tape({.persistent = true});
    if (is_floating(x.dtype())) tape.watch(x);
    const Tensor total = objective(model, x, cotangent);
    const Gradients gradients = tape.gradient(total, model.trainable_variables(), {.unconnected = Unconnected::zero});
    for (std::size_t i = 0; i < gradients.size(); ++i)
      EXPECT_LE(far(gradients[i], keras["g" + std::to_string(i)]), 8 * tolerance) << gradients.variables()[i].name();
    if (keras.has("gx")) { EXPECT_LE(far(tape.gradient(total, x), keras["gx"]), 8 * tolerance); }
    for (std::size_t i = 0; i < model.variables().size(); ++i)
      EXPECT_LE(far(model.variables()[i], keras["after" + std::to_string(i)]), tolerance);
  }
};

TEST_P(KerasValuesOf, InF64) { check(f64, 1e-12); }
TEST_P(KerasValuesOf, InF32) { check(f32, 2e-5); }

/// One program for every batch size gives the bits of lazy ops.
TEST_P(KerasValuesOf, Compiled) {
  const KerasValues keras(GetParam().name);
  Module model = GetParam().make();
  keras.build(model, f64);
  const Module other = model;
  const Tensor x = keras["x"], cotangent = keras["cotangent"];
  Spec open = x.spec(), of_cotangent = cotangent.spec();
  open.shape.set(0, any_size);
  of_cotangent.shape.set(0, any_size);
  const auto compiled =
      function([&](Tensor a, Tensor b) { return objective(model, a, b); }, {.input_signature = {open, of_cotangent}});
  for (int call = 0; call < 2; ++call)
    EXPECT_TRUE(bitwise_equal(compiled(x, cotangent), objective(other, x, cotangent)));
}

INSTANTIATE_TEST_SUITE_P(All, KerasValuesOf, testing::ValuesIn(cases), [](const auto& c) { return c.param.name; });

TEST(Losses, OfTrainableVariablesOnce) {
  Dense layer(2, linear, {.kernel_regularizer = L1(1), .bias_regularizer = L2(1)});
  EXPECT_TRUE(layer.losses().empty());  // not built
  layer.build({f32, {any_size, 3}});
  ASSERT_EQ(layer.losses().size(), 2u);
  layer.kernel().assign(full({3, 2}, 0.5, f32));
  EXPECT_EQ(layer.losses()[0].item(), 3);
  layer.kernel().set_trainable(false);
  EXPECT_EQ(layer.losses().size(), 1u);
}

TEST(Losses, OfTheLastCall) {
  const Sequential model{Dense(2, relu, {.activity_regularizer = L2(1)}), ActivityRegularization({.l1 = 1})};
  model(ones({4, 3}));
  const double first = model.losses()[0].item();
  ASSERT_EQ(model.losses().size(), 2u);
  model(2 * ones({2, 3}));
  ASSERT_EQ(model.losses().size(), 2u);
  EXPECT_NEAR(model.losses()[0].item(), 4 * first, 1e-4 * first);
  model.summary();  // runs the layers to see what they give
  EXPECT_EQ(model.losses().size(), 2u);
  const Sequential copy = model;
  EXPECT_TRUE(copy.losses().empty());
  model(zeros({0, 3}));
  EXPECT_EQ(model.losses()[0].item(), 0);
}

TEST(Losses, OfACompiledFunctionBelongToIt) {
  set_seed(1);
  const Sequential model{Dense(16, relu, {.activity_regularizer = L2(1)})};  // of two units both may give 0
  const auto compiled = function([&](Tensor x) {
    model(x);
    return model.losses()[0];
  });
  EXPECT_GT(compiled(ones({4, 3})).item(), 0);
  expect_says(error_of<InvalidArgument>([&] { model.losses(); }), "within a compiled function");
  model(ones({4, 3}));
  EXPECT_EQ(model.losses().size(), 1u);
}

TEST(Losses, Mistakes) {
  const Dense vector(2, linear, {.kernel_regularizer = [](const Tensor& x) { return x; }});
  vector(ones({2, 3}));
  expect_says(error_of<InvalidArgument>([&] { vector.losses(); }), "expected a scalar");
  expect_says(error_of<InvalidArgument>([] { Conv2D(2, 3, {.pointwise_regularizer = L1()}); }), "separable");
  expect_says(error_of<InvalidArgument>([] { DepthwiseConv2D(3, {.pointwise_regularizer = L1()}); }), "separable");
}

TEST(EinsumDense, Mistakes) {
  expect_says(error_of<InvalidArgument>([] { EinsumDense("ab,bc", {3}); }), "expected one of the forms");
  expect_says(error_of<InvalidArgument>([] { EinsumDense("...ab,bc->ac", {3}); }), "expected one of the forms");
  expect_says(error_of<InvalidArgument>([] { EinsumDense("ab,bc->ad", {3}); }), "letter d of the result");
  expect_says(error_of<InvalidArgument>([] { EinsumDense("ab,bcd->ac", {3}); }), "letter d of the kernel");
  expect_says(error_of<InvalidArgument>([] { EinsumDense("ab,bc->ac", {3, 4}); }), "needs 1");
  expect_says(error_of<InvalidArgument>([] { EinsumDense("ab,bc->ac", {3}, {.bias_axes = "b"}); }), "bias axis b");
  expect_says(error_of<InvalidArgument>([] { EinsumDense("ab,bc->ac", {-1})(ones({2, 3})); }), "dimension c");
  expect_says(error_of<InvalidArgument>([] { EinsumDense("ab,bc->ac", {4})(ones({2, 3, 4})); }), "names 2 dimensions");
}

TEST(Cells, StepByStepIsTheLayer) {
  set_seed(4);
  const LSTMCell cell(3);
  const Tensor x = random::normal({2, 4, 5}, {.dtype = f64, .seed = 1});
  const RNN layer(cell);
  const RecurrentOutput whole = layer.with_state(x);
  std::vector<Tensor> state{zeros({2, 3}, f64), zeros({2, 3}, f64)};
  LSTMCell own = cell;  // not built yet: weights of its own
  own.build({f64, {any_size, 5}});
  for (std::size_t i = 0; i < 3; ++i) own.variables()[i].assign(layer.variables()[i].value());
  Tensor last;
  for (std::int64_t t = 0; t < 4; ++t) {
    RecurrentOutput step = own(squeeze(slice_axis(x, 1, t, 1, "x"), {1}), state);
    last = step.output;
    state = step.state;
  }
  EXPECT_LE(max_abs_difference(last, whole.output), 1e-15);
  EXPECT_LE(max_abs_difference(state[1], whole.state[1]), 1e-15);
  EXPECT_LE(max_abs_difference(layer.with_state(x, {.initial_state = whole.state}).output, whole.output), 2);
}

TEST(Cells, Mistakes) {
  expect_says(error_of<InvalidArgument>([] { LSTMCell(0); }), "units must be positive");
  expect_says(error_of<InvalidArgument>([] { RNN(GRUCell(2))(ones({2, 3})); }), "expected floats [batch, time");
  expect_says(error_of<InvalidArgument>([] { RNN(LSTMCell(2))(ones({1, 2, 3}), {.initial_state = {ones({1, 2})}}); }),
              "1 tensors of state, expected 2");
  expect_says(error_of<InvalidArgument>([] { StackedRNNCells({}); }), "at least one");
  expect_says(error_of<InvalidArgument>([] { ConvLSTM2D(2, 3)(ones({1, 2, 5, 5})); }), "5 dimensions");
  expect_says(error_of<InvalidArgument>([] { Attention()(ones({1, 2, 3}), ones({1, 2, 4})); }), "the query is");
}

TEST(Masks, GoWithTheTensor) {
  const Embedding look = words();
  const Tensor x = constant({{1, 0}});
  EXPECT_TRUE(look.compute_mask(x).defined());
  const LSTM read(3);
  const Tensor h = look(x);
  EXPECT_TRUE(bitwise_equal(read(h), read(h, {.mask = look.compute_mask(x)})));
  EXPECT_GT(max_abs_difference(read(h), read(h, {.mask = ones({1, 2}, boolean)})), 0);
}

TEST(Masks, AreGivenByHand) {
  const Sequential model{LSTM(3, {.return_sequences = true}), Dense(2)};
  const Tensor mask = constant({{true, false}}), x = ones({1, 2, 4});
  EXPECT_FALSE(model.compute_mask(x).defined());
  EXPECT_TRUE(bitwise_equal(model.compute_mask(x, mask), mask));
}

}  // namespace
}  // namespace gradus::keras_values_test
