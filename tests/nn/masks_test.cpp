/// Masks: what does not count must not change what does. Each layer that takes a mask is run on a batch, on the same
/// with more padding, and with other numbers in the padding: results and gradients at places that count are the same.
/// Layers that cannot see to that drop the mask.
#include <gtest/gtest.h>
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"
#include "gradus/nn/call_scope.h"
#include "gradus/graph/mask.h"
#include "gradus/nn/cell_layer.h"
#include "tests/errors.h"

namespace gradus::masks_test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

struct Passed {
  Tensor y, mask;
};

/// What `layer` makes of x with this mask.
Passed passed(const Module& layer, const Tensor& x, const Tensor& mask) {
  const TrialScope trial;
  SequenceMask::set(x, mask);
  const Tensor y = layer(x);
  return {y, SequenceMask::of(y)};
}

struct Examined {
  Tensor counted;   // what counts of the result, row by row
  Tensor gradient;  // of x, where x counts
  Tensors gradients;
};

Tensor beside(Tensor mask, const Tensor& x) {
  while (mask.shape().rank() < x.shape().rank()) mask = expand_dims(mask, -1);
  return broadcast_to(mask, x.shape());
}

Examined examined(const Module& layer, const Tensor& x, const Tensor& mask) {
  const Module copy = layer;  // batch normalization moves
  const ModeScope mode(CallMode::training);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Passed out = passed(copy, x, mask);
  const Tensor counts = out.mask.defined() ? beside(out.mask, out.y) : equal(out.y, out.y);
  const Tensor total = reduce_sum(where(counts, sin(out.y + 1), 0));
  const Gradients gradients = tape.gradient(total, copy.trainable_variables(), {.unconnected = Unconnected::zero});
  Examined all{boolean_mask(out.y, counts), boolean_mask(tape.gradient(total, x), mask), {}};
  for (std::size_t i = 0; i < gradients.size(); ++i) all.gradients.push_back(gradients[i]);
  return all;
}

void expect_same(const Examined& a, const Examined& b, const std::string& what) {
  const auto near = [&](const Tensor& x, const Tensor& y, const std::string& part) {
    ASSERT_EQ(x.shape(), y.shape()) << what << ' ' << part;
    if (x.shape().size() > 0) { EXPECT_LE(reduce_max(abs(x - y)).item(), 1e-9) << what << ' ' << part; }
  };
  near(a.counted, b.counted, "result");
  near(a.gradient, b.gradient, "gradient of x");
  for (std::size_t i = 0; i < a.gradients.size(); ++i) near(a.gradients[i], b.gradients[i], text("gradient ", i));
}

struct MaskedLayer {
  std::string name;
  Module layer;
  bool any_length = true;  // padding may be added
};

std::vector<MaskedLayer> masked_layers() {
  const RecurrentOptions sequence{.return_sequences = true}, back{.return_sequences = true, .go_backwards = true},
      zeros{.return_sequences = true, .go_backwards = true, .zero_output_for_mask = true},
      last_back{.go_backwards = true};
  const RNNOptions cells_back{.return_sequences = true, .go_backwards = true};
  std::vector<MaskedLayer> all{
      {"dense", Dense(3, tanh)},
      {"identity", Identity()},
      {"rescaling", Rescaling(2, 1)},
      {"relu", ReLU()},
      {"leaky_relu", LeakyReLU()},
      {"elu", ELU()},
      {"prelu", PReLU({1})},
      {"softmax", Softmax()},
      {"softmax over time", Softmax(1)},
      {"activity", ActivityRegularization()},
      {"position", PositionEmbedding(16)},
      {"normalization", Normalization(std::vector<double>{1}, std::vector<double>{2})},
      {"spectral", SpectralNormalization(Dense(3))},
      {"simple_rnn", SimpleRNN(3, sequence)},
      {"simple_rnn back", SimpleRNN(3, back)},
      {"gru back", GRU(3, back)},
      {"gru last back", GRU(3, last_back)},
      {"lstm", LSTM(3, sequence)},
      {"lstm last", LSTM(3)},
      {"lstm back", LSTM(3, back)},
      {"lstm back, zeros", LSTM(3, zeros)},
      {"lstm last back", LSTM(3, last_back)},
      {"lstms back", Sequential{LSTM(3, back), LSTM(2, back)}},
      {"lstm back, mean", Sequential{LSTM(3, back), GlobalAveragePooling1D()}},
      {"lstm back, last", Sequential{LSTM(3, back), GRU(2)}},
      {"lstm back, attention", Sequential{LSTM(4, back), MultiHeadAttention(2, 2)}},
      {"lstm back, softmax", Sequential{LSTM(4, back), Softmax(1)}},
      {"lstm back, distributed", Sequential{LSTM(4, back), TimeDistributed(Dense(2))}},
      {"rnn back", RNN(GRUCell(3), cells_back)},
      {"rnn of cells back", RNN({LSTMCell(3), GRUCell(2)}, cells_back)},
      {"rnn last", RNN(LSTMCell(3))},
      {"distributed", TimeDistributed(Dense(3))},
      {"distributed batch normalization", TimeDistributed(BatchNormalization())},
      {"batch normalization", BatchNormalization()},
      {"layer normalization", LayerNormalization()},
      {"layer normalization over time", LayerNormalization({.axis = {1, 2}}), false},
      {"group normalization", GroupNormalization(2)},
      {"unit normalization", UnitNormalization()},
      {"unit normalization over time", UnitNormalization({1})},
      {"mean", GlobalAveragePooling1D()},
      {"mean, kept", GlobalAveragePooling1D(true)},
      {"multi head attention", MultiHeadAttention(2, 3)},
      {"causal multi head attention", MultiHeadAttention(2, 3, {.causal = true})},
      {"grouped query attention", GroupedQueryAttention(2, 4, 2)},
      {"attention", Attention()},
      {"scaled attention", Attention({.use_scale = true})},
      {"attention of sums", Attention({.use_scale = true, .score_mode = ScoreMode::concat})},
      {"causal attention", Attention({.causal = true})},
      {"additive attention", AdditiveAttention()},
      {"causal additive attention", AdditiveAttention({.causal = true})},
  };
  for (const Merge merge : {Merge::concat, Merge::sum, Merge::mul, Merge::ave})
    for (const bool go_backwards : {false, true})
      for (const bool return_sequences : {false, true})
        all.push_back({text("bidirectional ", static_cast<int>(merge), go_backwards, return_sequences),
                       Bidirectional(GRU(3, {.return_sequences = return_sequences, .go_backwards = go_backwards}),
                                     {.merge_mode = merge})});
  return all;
}

class MaskedLayers : public ::testing::Test {
 protected:
  void SetUp() override { set_seed(3); }
  static Tensor noise(const Shape& shape, std::uint64_t seed) {
    return random::normal(shape, {.dtype = f64, .seed = seed});
  }
  static Module built(MaskedLayer each) {
    each.layer.set_policy({f64, f64});
    each.layer.build({f64, {any_size, each.any_length ? any_size : 5, 4}});
    return each.layer;
  }
  /// bool [batch, time] that counts so many places of each row.
  static Tensor first_places(const std::vector<std::int64_t>& lengths, std::int64_t time) {
    const Tensor each = from_values(lengths, {static_cast<std::int64_t>(lengths.size()), 1});
    return range(time, i64) < each;
  }
};

TEST_F(MaskedLayers, MorePaddingChangesNothing) {
  const Tensor x = noise({3, 5, 4}, 1), mask = first_places({5, 3, 1}, 5);
  const Tensor longer = concat({x, noise({3, 4, 4}, 2) * 10}, 1), longer_mask = first_places({5, 3, 1}, 9);
  for (const MaskedLayer& each : masked_layers()) {
    if (!each.any_length) continue;
    const Module layer = built(each);
    expect_same(examined(layer, x, mask), examined(layer, longer, longer_mask), each.name);
  }
}

/// Padding before, behind and between, and a row of nothing else.
TEST_F(MaskedLayers, WhatStandsInThePaddingChangesNothing) {
  const Tensor mask = constant({{false, false, true, true, true},
                                {true, false, true, false, true},
                                {true, true, false, false, false},
                                {false, false, false, false, false}});
  const Tensor x = noise({4, 5, 4}, 1), other = where(beside(mask, x), x, noise({4, 5, 4}, 2) * 30);
  for (const MaskedLayer& each : masked_layers()) {
    const Module layer = built(each);
    expect_same(examined(layer, x, mask), examined(layer, other, mask), each.name);
  }
}

TEST_F(MaskedLayers, LayersThatMixPlacesDropThem) {
  const Tensor x = noise({2, 6, 4}, 1), mask = first_places({6, 2}, 6);
  const std::vector<Module> dropping{Flatten(),
                                     Reshape({4, 6}),
                                     Reshape({6, 4}),
                                     Permute({2, 1}),
                                     Permute({1, 2}),
                                     Conv1D(3, 2),
                                     MaxPooling1D(2),
                                     AveragePooling1D(2),
                                     GlobalMaxPooling1D(),
                                     UpSampling1D(2),
                                     ZeroPadding1D(1),
                                     RMSNormalization(),
                                     Lambda([](const Tensor& given) { return given; }),
                                     Lambda([](const Tensor& given) { return given * 2; }),
                                     LSTM(3),
                                     Bidirectional(LSTM(3))};
  for (const Module& given : dropping) {
    Module layer = given;
    layer.set_policy({f64, f64});
    EXPECT_FALSE(passed(layer, x, mask).mask.defined()) << layer.layer_behind().kind();
  }
}

/// A layer that hands its input through and drops the mask leaves the input's own.
TEST_F(MaskedLayers, OneThatIsDroppedStaysOnTheInput) {
  const Tensor x = noise({2, 3, 4}, 1), mask = first_places({3, 1}, 3);
  const TrialScope trial;
  SequenceMask::set(x, mask);
  const Lambda same([](const Tensor& given) { return given; });
  const Tensor y = same(x);
  EXPECT_FALSE(SequenceMask::of(y).defined());
  EXPECT_TRUE(SequenceMask::of(x).defined());
}

TEST_F(MaskedLayers, OfReversedSequencesAreReversed) {
  const Tensor x = noise({2, 4, 3}, 1), mask = first_places({3, 1}, 4);
  const RecurrentOptions back{.return_sequences = true, .go_backwards = true};
  for (const Module& given :
       {Module(SimpleRNN(2, back)), Module(GRU(2, back)), Module(LSTM(2, back)), Module(Bidirectional(LSTM(2, back))),
        Module(RNN(LSTMCell(2), {.return_sequences = true, .go_backwards = true}))}) {
    Module layer = given;
    layer.set_policy({f64, f64});
    EXPECT_TRUE(bitwise_equal(passed(layer, x, mask).mask, reverse(mask, {1}))) << layer.layer_behind().kind();
  }
  ConvLSTM1D images(2, 2, {.return_sequences = true, .go_backwards = true});
  images.set_policy({f64, f64});
  EXPECT_TRUE(bitwise_equal(passed(images, noise({2, 4, 5, 3}, 1), mask).mask, reverse(mask, {1})));
}

TEST_F(MaskedLayers, SoftmaxIsOfThePlacesThatCount) {
  const Tensor x = constant({{1.0, 2.0, nan}, {inf, -1.0, 0.5}, {5.0, 6.0, 7.0}}, f64);
  const Tensor mask = constant({{true, true, false}, {false, true, true}, {false, false, false}});
  const Tensor y = masked_softmax(x, mask);
  const double a = 1 / (1 + std::exp(1.0)), b = 1 / (1 + std::exp(1.5));
  const std::vector<double> want{a, 1 - a, 0, 0, b, 1 - b, 0, 0, 0};
  const std::vector<double> got = y.to_vector<double>();
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
  GradientTape tape;
  tape.watch(x);
  const Tensor gradient = tape.gradient(reduce_sum(square(masked_softmax(x, mask))), x);
  EXPECT_TRUE(reduce_all(is_finite(gradient)).item());
  EXPECT_EQ(reduce_sum(abs(where(mask, 0, gradient))).item(), 0);
  expect_says(error_of<InvalidArgument>([&] { masked_softmax(x, ones({3, 3}, f64)); }), "expected booleans");
  expect_says(error_of<InvalidArgument>([&] { masked_softmax(x, ones({2, 3, 3}, boolean)); }), "masked_softmax");
  for (const int axis : {0, 1, 2}) {  // of a tensor whose mask is shorter than it
    const Tensor z = noise({2, 3, 4}, 5), counts = first_places({3, 1}, 3);
    Module layer = Softmax(axis);
    const Passed out = passed(layer, z, counts);
    const Tensor expected = axis == 2 ? softmax(z) : masked_softmax(z, beside(counts, z), axis);
    EXPECT_TRUE(bitwise_equal(out.y, expected)) << axis;
    EXPECT_TRUE(bitwise_equal(out.mask, counts));
  }
}

/// Keras joins masks by "or", each at its own place.
TEST_F(MaskedLayers, OfSeveralTensorsAreJoined) {
  const Tensor a = noise({2, 3, 4}, 1), b = noise({2, 3, 4}, 2), row = noise({2, 1, 4}, 3);
  const Tensor of_a = constant({{true, false, false}, {true, true, false}});
  const Tensor of_b = constant({{false, true, false}, {true, false, false}});
  const Tensor of_row = constant({{true}, {false}});
  const TrialScope trial;
  SequenceMask::set(a, of_a);
  SequenceMask::set(b, of_b);
  SequenceMask::set(row, of_row);
  EXPECT_TRUE(bitwise_equal(SequenceMask::of(Add()(a, b)), logical_or(of_a, of_b)));
  EXPECT_TRUE(bitwise_equal(SequenceMask::of(Multiply()(a, row)), logical_or(of_a, broadcast_to(of_row, {2, 3}))));
  EXPECT_FALSE(SequenceMask::of(Add()(a, noise({2, 3, 4}, 4))).defined());
  EXPECT_TRUE(bitwise_equal(SequenceMask::of(Concatenate{}(a, b)), logical_or(of_a, of_b)));
  EXPECT_TRUE(bitwise_equal(SequenceMask::of(Concatenate{1}(a, b)), concat({of_a, of_b}, 1)));
  EXPECT_TRUE(bitwise_equal(SequenceMask::of(Concatenate{0}(a, b)), concat({of_a, of_b}, 0)));
  EXPECT_TRUE(bitwise_equal(SequenceMask::of(Concatenate{1}(a, noise({2, 1, 4}, 5))),
                            concat({of_a, ones({2, 1}, boolean)}, 1)));
  const Tensor image = noise({2, 3, 3, 4}, 6);  // its mask is of the batch and the rows, not of the last but one
  SequenceMask::set(image, of_a);
  EXPECT_TRUE(bitwise_equal(SequenceMask::of(Concatenate{2}(image, image)), of_a));
  EXPECT_TRUE(bitwise_equal(SequenceMask::of(Add()(image, image)), of_a));
  EXPECT_FALSE(SequenceMask::of(Dot{}(a, b)).defined());
}

/// A query that nothing is left for to look at gives zeros, not what the padding holds.
TEST_F(MaskedLayers, AttentionToNothingIsZero) {
  const Tensor query = noise({1, 2, 4}, 1), value = noise({1, 3, 4}, 2);
  for (const bool additive : {false, true}) {
    const TrialScope trial;
    SequenceMask::set(value, zeros({1, 3}, boolean));
    AttentionModule layer =
        additive ? AttentionModule(AdditiveAttention()) : AttentionModule(Attention({.use_scale = true}));
    layer.set_policy({f64, f64});
    EXPECT_EQ(reduce_max(abs(layer(query, value))).item(), 0) << additive;
  }
}

/// The loss of fit: places that do not count have no part in it, whatever stands there.
TEST_F(MaskedLayers, PaddingHasNoPartInTrainingByFit) {
  const auto weights_after = [&](std::int64_t padding) {
    set_seed(8);
    Sequential model{Masking(), LSTM(4, {.return_sequences = true, .go_backwards = true}), BatchNormalization(),
                     Dense(1)};
    const Tensor x = concat({random::normal({4, 3, 2}, {.seed = 1}), zeros({4, padding, 2})}, 1);
    // In the order of the steps, which begin at the padding.
    const Tensor y = concat({fill({4, padding, 1}, 100.0, f32), random::normal({4, 3, 1}, {.seed = 2})}, 1);
    SGD optimizer({.learning_rate = 0.1});
    fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(x, y).batch(4), {.epochs = 3, .verbose = false});
    Tensors values;
    for (const Variable& variable : model.variables()) values.push_back(variable.value());
    return values;
  };
  const Tensors without = weights_after(0), with = weights_after(3);
  for (std::size_t i = 0; i < without.size(); ++i) EXPECT_LE(reduce_max(abs(without[i] - with[i])).item(), 1e-4) << i;
}

}  // namespace
}  // namespace gradus::masks_test
