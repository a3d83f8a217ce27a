/// Every layer on inputs whose batch, lengths, heights and widths vary: one program gives, value and gradients in
/// training, what the layer gives op by op.
#include <gtest/gtest.h>
#include <algorithm>
#include "gradus/base/rooms.h"
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/augmentation.h"
#include "gradus/nn/cells.h"
#include "gradus/nn/convolutions.h"
#include "gradus/nn/dot_attention.h"
#include "gradus/nn/einsum_dense.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/noise.h"
#include "gradus/nn/normalization.h"
#include "gradus/nn/pools.h"
#include "gradus/nn/preprocessing.h"
#include "gradus/nn/rearranging.h"
#include "gradus/nn/recurrent.h"
#include "gradus/nn/spectral_normalization.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/special.h"

namespace gradus::open_layers_test {
namespace {

enum class Programs { one, few };  // few: something has to know the sizes

struct OpenLayer {
  std::string name;
  std::function<Module()> make;
  Spec input;
  Programs programs = Programs::one;
};

constexpr std::int64_t any = any_size;
const Spec rows{f32, {any, 6}}, steps{f32, {any, any, 6}}, images{f32, {any, any, any, 4}},
    volumes{f32, {any, any, any, any, 2}}, tokens{i32, {any, any}};

std::vector<OpenLayer> layers_without_windows() {
  return {
      {"dense", [] { return Dense(3, relu); }, steps},
      {"flatten", [] { return Flatten(); }, {f32, {any, 3, 2}}},
      {"flatten_what_is_open", [] { return Flatten(); }, steps},
      {"dropout", [] { return Dropout(0.4); }, steps},
      {"lambda", [] { return Lambda([](const Tensor& x) { return x * 2; }); }, steps},
      {"embedding", [] { return Embedding(5, 3); }, tokens},
      {"position_embedding", [] { return PositionEmbedding(64); }, steps},
      {"masking", [] { return Masking(); }, steps},
      {"masked_lstm", [] { return Sequential{Masking(0.25), LSTM(3)}; }, steps},
      {"attention", [] { return MultiHeadAttention(2, 3); }, steps},
      {"causal_attention", [] { return MultiHeadAttention(2, 3, {.causal = true}); }, steps},
      {"dot_attention", [] { return Attention(); }, steps},
      {"additive_attention", [] { return AdditiveAttention(); }, steps},
      {"einsum_dense", [] { return EinsumDense("abc,cd->abd", {any_size, 3}); }, steps},
      {"spatial_dropout", [] { return SpatialDropout1D(0.4); }, steps},
      {"gaussian_noise", [] { return GaussianNoise(0.4); }, steps},
      {"gaussian_dropout", [] { return GaussianDropout(0.4); }, steps},
      {"alpha_dropout", [] { return AlphaDropout(0.4); }, steps},
      {"batch_normalization", [] { return BatchNormalization(); }, images},
      {"layer_normalization", [] { return LayerNormalization(); }, steps},
      {"rms_normalization", [] { return RMSNormalization(); }, steps},
      {"group_normalization", [] { return GroupNormalization(2); }, images},
      {"unit_normalization", [] { return UnitNormalization(); }, steps},
      {"unit_normalization_of_steps", [] { return UnitNormalization({1}); }, steps},
      {"identity", [] { return Identity(); }, steps},
      {"rescaling", [] { return Rescaling(0.5, 1); }, images},
      {"reshape", [] { return Reshape({-1, 3}); }, steps},
      {"permute", [] { return Permute({2, 1}); }, steps},
      {"repeat_vector", [] { return RepeatVector(3); }, rows},
      {"leaky_relu", [] { return LeakyReLU(); }, steps},
      {"prelu", [] { return PReLU({1}); }, steps},
      {"softmax", [] { return Softmax(); }, steps},
      {"softmax_of_steps", [] { return Softmax(1); }, steps},
      {"simple_rnn", [] { return SimpleRNN(3); }, steps},
      {"gru", [] { return GRU(3, {.return_sequences = true}); }, steps},
      {"lstm_backwards", [] { return LSTM(3, {.return_sequences = true, .go_backwards = true}); }, steps},
      {"lstm_with_dropout", [] { return LSTM(3, {.dropout = 0.3}); }, steps},
      {"bidirectional", [] { return Bidirectional(GRU(3, {.return_sequences = true})); }, steps},
      {"time_distributed", [] { return TimeDistributed(Dense(3)); }, steps},
      {"rnn_of_cells", [] { return RNN({LSTMCell(3), GRUCell(2)}, {.return_sequences = true}); }, steps},
      {"spectral_normalization", [] { return SpectralNormalization(Dense(3)); }, steps},
      {"random_flip", [] { return RandomFlip(); }, images},
      {"random_brightness", [] { return RandomBrightness(0.2, {.value_range = {-9, 9}}); }, images},
      {"random_contrast", [] { return RandomContrast(0.2, {.value_range = {-9, 9}}); }, images},
      {"random_translation", [] { return RandomTranslation(0.2, 0.1); }, images, Programs::few},
      {"random_rotation", [] { return RandomRotation(0.2); }, images, Programs::few},
      {"random_zoom", [] { return RandomZoom(0.2); }, images, Programs::few},
      {"random_crop", [] { return RandomCrop(3, 4); }, images, Programs::few},
  };
}

std::vector<OpenLayer> layers_with_windows() {
  const auto same = Padding::same;
  return {
      {"conv1d", [] { return Conv1D(3, 3); }, steps},
      {"conv1d_strided", [] { return Conv1D(3, 3, {.strides = 2}); }, steps},
      {"conv1d_same_strided", [=] { return Conv1D(3, 4, {.strides = 3, .padding = same}); }, steps},
      {"conv1d_dilated", [=] { return Conv1D(3, 2, {.padding = same, .dilation = 2}); }, steps},
      {"conv2d_strided", [] { return Conv2D(3, 3, {.strides = 2}); }, images},
      {"conv2d_same_strided", [=] { return Conv2D(3, {3, 2}, {.strides = {2, 3}, .padding = same}); }, images},
      {"conv2d_in_groups", [=] { return Conv2D(4, 3, {.strides = 2, .padding = same, .groups = 2}); }, images},
      {"conv3d_strided", [=] { return Conv3D(2, 2, {.strides = 2, .padding = same}); }, volumes},
      {"depthwise_conv1d", [=] { return DepthwiseConv1D(3, {.strides = 2, .padding = same}); }, steps},
      {"depthwise_conv2d", [=] { return DepthwiseConv2D(3, {.strides = 2, .padding = same}); }, images},
      {"separable_conv1d", [=] { return SeparableConv1D(3, 3, {.strides = 2, .padding = same}); }, steps},
      {"separable_conv2d", [] { return SeparableConv2D(3, 2, {.strides = 2}); }, images},
      {"conv1d_transpose", [] { return Conv1DTranspose(3, 3, {.strides = 2}); }, steps},
      {"conv2d_transpose", [=] { return Conv2DTranspose(3, 3, {.strides = 2, .padding = same}); }, images},
      {"max_pooling1d", [] { return MaxPooling1D(); }, steps},
      {"max_pooling1d_same", [=] { return MaxPooling1D(3, {.strides = 2, .padding = same}); }, steps},
      {"max_pooling1d_overlapping", [=] { return MaxPooling1D(2, {.strides = 1, .padding = same}); }, steps},
      {"max_pooling2d", [=] { return MaxPooling2D(3, {.strides = 2, .padding = same}); }, images},
      {"max_pooling3d", [] { return MaxPooling3D(); }, volumes},
      {"average_pooling1d", [] { return AveragePooling1D(); }, steps},
      {"average_pooling1d_same", [=] { return AveragePooling1D(3, {.strides = 2, .padding = same}); }, steps},
      {"average_pooling2d", [=] { return AveragePooling2D(2, {.strides = 3, .padding = same}); }, images},
      {"average_pooling3d", [] { return AveragePooling3D(); }, volumes},
      {"global_max_pooling", [] { return GlobalMaxPooling1D(); }, steps},
      {"global_average_pooling", [] { return GlobalAveragePooling2D(true); }, images},
      {"zero_padding", [] { return ZeroPadding2D({1, 2}, {0, 3}); }, images},
      {"up_sampling1d", [] { return UpSampling1D(3); }, steps},
      {"up_sampling2d", [] { return UpSampling2D(2); }, images},
      {"up_sampling_bilinear", [] { return UpSampling2D(2, {.interpolation = ResizeMethod::bilinear}); }, images,
       Programs::few},
      {"resizing", [] { return Resizing(5, 6); }, images, Programs::few},
      {"center_crop", [] { return CenterCrop(3, 4); }, images, Programs::few},
      {"cropping1d", [] { return Cropping1D(); }, steps},
      {"cropping2d", [] { return Cropping2D({1, 2}, {0, 1}); }, images},
      {"adaptive_average_pooling", [] { return AdaptiveAveragePooling1D(3); }, steps, Programs::few},
      {"adaptive_max_pooling", [] { return AdaptiveMaxPooling2D(2); }, images, Programs::few},
      {"conv_lstm", [=] { return ConvLSTM1D(2, 3, {.padding = same}); }, {f32, {any, any, 7, 2}}},
      {"all_kinds_in_a_row",
       [=] {
         return Sequential{Conv1D(3, 3, {.strides = 2, .padding = same}),
                           MaxPooling1D(),
                           UpSampling1D(),
                           AveragePooling1D(3, {.strides = 2, .padding = same}),
                           Flatten(),
                           Reshape({-1, 3}),
                           GRU(2)};
       },
       steps},
  };
}

class OpenLayers : public testing::TestWithParam<OpenLayer> {};
const auto name_of_layer = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(All, OpenLayers, testing::ValuesIn(layers_without_windows()), name_of_layer);
INSTANTIATE_TEST_SUITE_P(Windows, OpenLayers, testing::ValuesIn(layers_with_windows()), name_of_layer);

/// An input whose k-th open dimension is `size` + 3 k, the batch at most 5.
Tensor input_of(const Spec& spec, std::int64_t size) {
  Shape shape = spec.shape;
  for (int axis = 0, k = 0; axis < shape.rank(); ++axis)
    if (shape[axis] == any_size) shape.set(axis, axis == 0 ? 1 + size % 5 : size + 3 * k++);
  if (spec.dtype == f32) return random::normal(shape, {.seed = static_cast<std::uint64_t>(size)});
  return cast(random::uniform(shape, {.seed = static_cast<std::uint64_t>(size)}) * 5, spec.dtype);
}

bool are_equal(const Tensor& a, const Tensor& b) {  // 0 and -0 are
  return a.spec() == b.spec() && reduce_all(logical_or(equal(a, b), logical_and(is_nan(a), is_nan(b)))).item() != 0;
}

TEST_P(OpenLayers, OneProgramServesAllSizes) {
  const OpenLayer& row = GetParam();
  const auto made = [&] {
    set_seed(1);
    const Module layer = row.make();
    layer(input_of(row.input, 12));  // builds it
    return layer;
  };
  const auto body = [&](const Module& layer, const Tensor& x) {
    GradientTape tape({.persistent = true});
    if (x.dtype() == f32) tape.watch(x);
    const Tensor y = layer(x, training);
    const Tensor loss = reduce_sum(y * cos(iota(y.shape(), y.dtype())));
    Tensor slope = x.dtype() == f32 ? tape.gradient(loss, x, {.unconnected = Unconnected::zero}) : loss;
    const Variables variables = layer.trainable_variables();
    Tensor of_weights = variables.size() > 0 ? tape.gradient(loss, variables[0]) : loss;
    return std::array{y, slope, of_weights};
  };
  const Module one = made(), other = made();  // some have a state
  const auto compiled =
      function([&](Tensor x) { return body(one, x); }, {.name = row.name, .input_signature = {row.input}});
  const auto eager = function([&](Tensor x) { return body(other, x); }, {.run_eagerly = true});
  for (const std::int64_t size : {12, 7, 16, 9, 8, 31, 4, 40}) {
    const Tensor x = input_of(row.input, size);
    set_seed(2);
    const auto want = eager(x);
    set_seed(2);
    const auto got = compiled(x);
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(are_equal(got[i], want[i])) << x.spec() << ", result " << i;
  }
  // A batch of one may have a program of its own: sums over it are left away.
  const int most = row.programs == Programs::one ? 2 : FunctionOptions().max_variants;
  EXPECT_LE(compiled.explain().variants, most) << text(compiled.explain());
}

}  // namespace
}  // namespace gradus::open_layers_test
