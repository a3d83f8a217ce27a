/// Layers of several tensors, layers that prepare images, penalties and constraints, against Keras's values; masks and
/// states of recurrent layers by what they must equal.
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/function/function.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/merging.h"
#include "gradus/nn/model.h"
#include "gradus/nn/noise.h"
#include "gradus/nn/preprocessing.h"
#include "gradus/nn/recurrent.h"
#include "gradus/nn/regularizers.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/normalization.h"
#include "gradus/ops/random.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"

namespace gradus::merging_layers_test {
namespace {

void expect_values(const Tensor& got, const Shape& shape, const std::vector<float>& want) {
  ASSERT_EQ(got.shape(), shape);
  const std::vector<float> values = got.to_vector<float>();
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(values[i], want[i], 1e-5 * std::max(1.0f, std::abs(want[i]))) << i;
}

Tensor counted(const Shape& shape, double from = 0) { return reshape(range(shape.size(), f32), shape) + from; }

const Tensor x = counted({2, 3}, -2);

TEST(MergingLayers, OfSeveralTensors) {
  const Tensor a = constant({1.0, 5.0, 3.0}), b = constant({4.0, 2.0, 3.0});
  expect_values(Add{}(a, b, a), {3}, {6, 12, 9});
  expect_values(Subtract{}(a, b), {3}, {-3, 3, 0});
  expect_values(Multiply{}({a, b}), {3}, {4, 10, 9});
  expect_values(Average{}(a, b), {3}, {2.5, 3.5, 3});
  expect_values(Maximum{}(a, b), {3}, {4, 5, 3});
  expect_values(Minimum{}(a, b), {3}, {1, 2, 3});
  expect_values(Concatenate{}(a, b), {6}, {1, 5, 3, 4, 2, 3});
  expect_values(Concatenate{.axis = 0}({x, x}), {4, 3}, {-2, -1, 0});
  expect_says(error_of([] { Add{}(std::vector<Tensor>{}); }), "Add: expected at least one tensor");
  expect_says(error_of([&] { Subtract{}(a, b, a); }), "Subtract: expected 2 tensors");
}

TEST(MergingLayers, Dot) {
  const Tensor a = counted({2, 2, 3}, -3) / 4, b = (reshape(reverse(range(12, f32), {0}), {2, 3, 2}) - 5) / 3;
  expect_values(Dot{{2, 1}}(a, b), {2, 2, 2},
                {-2.333333f, -1.833333f, 0.6666667f, 0.4166667f, -2.333333f, -3.333333f, -3.833333f, -5.583333f});
  expect_values(Dot{{2, 1}, true}(a, b), {2, 2, 2},
                {-1, -0.9938586f, 0.4780915f, 0.3779645f, -0.8854378f, -0.9561829f, -0.8426548f, -0.9277856f});
  expect_values(Dot{{1, 1}}(x, x + 1), {2, 1}, {2, 20});
  expect_says(error_of([&] { Dot{{1, 1}}(a, b); }), "Dot: axes");
}

struct Joined {
  Dense left{3}, right{3};
  Add add;
  Concatenate concatenate;
  Tensor operator()(Tensor a, Tensor b) const { return concatenate(add(left(a), right(b)), a); }
};

TEST(MergingLayers, AreFieldsOfModels) {
  set_seed(3);
  const Model<Joined> model;
  const Tensor y = model(x, x);
  EXPECT_EQ(y.shape(), (Shape{2, 6}));
  EXPECT_EQ(model.variables().size(), 4u);
}

TEST(Preprocessing, AgreesWithKeras) {
  expect_values(Identity()(x), {2, 3}, {-2, -1, 0, 1, 2, 3});
  expect_values(Rescaling(0.5, 1)(x), {2, 3}, {0, 0.5, 1, 1.5, 2, 2.5});
  const Tensor images = counted({2, 4, 5, 1});
  expect_values(Cropping2D({1, 0}, {1, 2})(images), {2, 3, 2, 1}, {6, 7, 11, 12, 16, 17, 26, 27, 31, 32, 36, 37});
  expect_values(CenterCrop(2, 3)(images), {2, 2, 3, 1}, {6, 7, 8, 11, 12, 13, 26, 27, 28, 31, 32, 33});
  expect_values(CenterCrop(6, 3)(images.rows(0, 1)), {1, 6, 3, 1}, {1, 1.5, 2, 3.5, 4, 4.5, 6.833334f});
  expect_values(AdaptiveAveragePooling2D(2)(images), {2, 2, 2, 1}, {3.5, 5.5, 13.5, 15.5, 23.5, 25.5, 33.5, 35.5});
  EXPECT_EQ(AdaptiveMaxPooling1D(3)(zeros({2, 7, 4})).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(Resizing(3, 2)(images).shape(), (Shape{2, 3, 2, 1}));
  EXPECT_EQ(Cropping1D()(zeros({1, 5, 2})).shape(), (Shape{1, 3, 2}));
  EXPECT_EQ(Cropping3D()(zeros({1, 3, 4, 5, 2})).shape(), (Shape{1, 1, 2, 3, 2}));
  EXPECT_EQ(SpatialDropout3D(0.5)(zeros({1, 3, 4, 5, 2}), training).shape(), (Shape{1, 3, 4, 5, 2}));
  expect_says(error_of([&] { Cropping2D(2)(images); }), "nothing of axis 1");
  EXPECT_THROW(Resizing(0, 2), InvalidArgument);
}

TEST(Regularizers, AgreeWithKeras) {
  EXPECT_NEAR(regularizers::l1(x, 0.1).item(), 0.9, 1e-6);
  EXPECT_NEAR(regularizers::l2(x, 0.1).item(), 1.9, 1e-6);
  EXPECT_NEAR(regularizers::l1_l2(x, 0.1, 0.1).item(), 2.8, 1e-6);
  EXPECT_NEAR(regularizers::orthogonal(x, 0.1).item(), 0.04780914, 1e-6);
  EXPECT_THROW(regularizers::orthogonal(zeros({2})), InvalidArgument);
}

/// Both of Keras's spellings are both: an option of a factor, and the penalty of a tensor.
TEST(Regularizers, HaveOneMeaningUnderBothNames) {
  using namespace regularizers;
  const auto same = [](const Tensor& a, const Tensor& b, const Regularizer& c, const Regularizer& d, double wanted) {
    for (const Tensor& penalty : {a, b, c(x), d(x)}) EXPECT_NEAR(penalty.item(), wanted, 1e-6);
  };
  same(l1(x, 0.1), L1(x, 0.1), l1(0.1), L1(0.1), 0.9);
  same(l2(x, 0.1), L2(x, 0.1), l2(0.1), L2(0.1), 1.9);
  same(l1_l2(x, 0.1, 0.1), L1L2(x, 0.1, 0.1), l1_l2(0.1, 0.1), L1L2(0.1, 0.1), 2.8);
  same(orthogonal(x, 0.1), OrthogonalRegularizer(x, 0.1), orthogonal(0.1), OrthogonalRegularizer(0.1), 0.04780914);
  same(l2(x), L2(x), l2(), L2(), 0.19);
  same(l2(x, 1), L2(x, 1), l2(1), L2(1), 19);
  EXPECT_THROW(l2(-1), InvalidArgument);
}

TEST(Constraints, AgreeWithKeras) {
  expect_values(constraints::max_norm(x, 1.5), {2, 3}, {-1.341641f, -0.6708204f, 0, 0.6708204f, 1.341641f, 1.5});
  expect_values(constraints::min_max_norm(x, 1, 2, 0.5), {2, 3},
                {-1.894427f, -0.9472135f, 0, 0.9472135f, 1.894427f, 2.5});
  expect_values(constraints::unit_norm(x), {2, 3}, {-0.8944272f, -0.4472136f, 0, 0.4472136f, 0.8944272f, 1});
  expect_values(constraints::non_neg(x), {2, 3}, {0, 0, 0, 1, 2, 3});
}

TEST(UnitVectors, OfZerosInHalfPrecisionAreZeros) {
  for (const DType t : {f16, bf16, f32, f64})
    for (const double value : cast(l2_normalize(zeros({2, 3}, t), {1}), f64).to_vector<double>()) EXPECT_EQ(value, 0);
}

template <class Recurrent> void check_masks_and_states(const Recurrent& layer, std::size_t states) {
  const Tensor sequence = random::normal({2, 5, 3}, {.seed = 7});
  const Tensor whole = layer(sequence);
  const RecurrentOutput first = layer.with_state(slice(sequence, {0, 0, 0}, {2, 2, 3}));
  ASSERT_EQ(first.state.size(), states);
  const Tensor rest = slice(sequence, {0, 2, 0}, {2, 3, 3});
  EXPECT_LE(max_abs_difference(layer(rest, {.initial_state = first.state}), whole), 1e-6);
  // Masked at the end: as if the sequence were shorter. Masked in the middle: as if the place were not there.
  const Tensor to_2 = constant({{true, true, false, false, false}, {true, true, false, false, false}});
  EXPECT_LE(max_abs_difference(layer(sequence, {.mask = to_2}), first.output), 1e-6);
  const Tensor without_1 = constant({{true, false, true, true, true}, {true, false, true, true, true}});
  const Tensor shorter = concat({slice(sequence, {0, 0, 0}, {2, 1, 3}), rest}, 1);
  EXPECT_LE(max_abs_difference(layer(sequence, {.mask = without_1}), layer(shorter)), 1e-6);
  auto traced = function([&](Tensor a, Tensor m) { return layer(a, {.mask = m}); });
  EXPECT_LE(max_abs_difference(traced(sequence, without_1), layer(shorter)), 1e-6);
  expect_says(error_of([&] { layer(sequence, {.mask = constant({true})}); }), "the mask is bool[1]");
  expect_says(error_of([&] { layer(sequence, {.initial_state = {whole, whole, whole}}); }), "3 initial states");
}

TEST(RecurrentLayers, MasksAndStates) {
  set_seed(5);
  check_masks_and_states(SimpleRNN(4), 1);
  check_masks_and_states(GRU(4), 1);
  check_masks_and_states(LSTM(4), 2);
}

TEST(RecurrentLayers, MaskedPlacesRepeatTheResult) {
  set_seed(5);
  const LSTM layer(4, {.return_sequences = true});
  const Tensor sequence = random::normal({1, 4, 3}, {.seed = 7});
  const Tensor y = layer(sequence, {.mask = constant({{false, true, false, true}})})[0];
  EXPECT_TRUE(bitwise_equal(y[0], zeros({4})));
  EXPECT_TRUE(bitwise_equal(y[1], y[2]));
  EXPECT_GT(max_abs_difference(y[2], y[3]), 0);
}

TEST(RecurrentLayers, EmbeddingsTellMasks) {
  set_seed(5);
  const Embedding words(5, 3, {.mask_zero = true});
  const Bidirectional layer(GRU(4));
  const Tensor padded = constant({{1, 2, 0, 0}, {3, 4, 0, 0}}), tokens = constant({{1, 2}, {3, 4}});
  const Tensor mask = words.compute_mask(padded);
  EXPECT_LE(max_abs_difference(layer(words(padded), {.mask = mask}), layer(words(tokens))), 1e-6);
  expect_says(error_of([&] { Embedding(5, 3).compute_mask(padded); }), "mask_zero");
  const MultiHeadAttention attention(2, 4);
  const Tensor keys = expand_dims(expand_dims(mask, 1), 1);
  EXPECT_LE(max_abs_difference(slice(attention(words(padded), AttentionMask{keys}), {0, 0, 0}, {2, 2, 3}),
                               attention(words(tokens))),
            1e-6);
}

}  // namespace
}  // namespace gradus::merging_layers_test
