/// Convolutional, pooling, padding and upsampling layers against numbers worked out by hand, and Keras's defaults.
#include "gradus/nn/convolutions.h"
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/pools.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/conv.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/pool.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"
#include "tests/threads.h"

namespace gradus::convolutions_test {
namespace {

/// 0, 1, 2, ... as one image of one channel.
Tensor image(std::int64_t rows, std::int64_t columns) {
  return reshape(range(rows * columns, f32), {1, rows, columns, 1});
}

void expect_values(const Tensor& x, const Shape& shape, const std::vector<float>& values) {
  EXPECT_EQ(x.shape(), shape);
  EXPECT_EQ(x.to_vector<float>(), values);
}

Shape kernel_shape(Module& layer, const Shape& input) {
  layer.build({f32, input});
  return layer.trainable_variables()[0].shape();
}

TEST(Conv2D, SumsWindows) {
  const ConvOptions ones{.kernel_initializer = initializers::ones, .bias_initializer = initializers::ones};
  expect_values(Conv2D(1, 2, ones)(image(3, 3)), {1, 2, 2, 1}, {9, 13, 21, 25});
  // Of an even size with stride 2 nothing is padded before.
  ConvOptions same = ones;
  same.padding = Padding::same;
  same.strides = 2;
  same.use_bias = false;
  expect_values(Conv2D(1, 3, same)(image(4, 4)), {1, 2, 2, 1}, {45, 39, 66, 50});
  ConvOptions negative = ones;
  negative.bias_initializer = initializers::constant(-20);
  negative.activation = relu;
  expect_values(Conv2D(1, {3, 1}, negative)(image(3, 3)), {1, 1, 3, 1}, {0, 0, 0});
  EXPECT_EQ(Conv2D(8, 3, {.dilation = 2})(random::normal({2, 7, 6, 3}, {.seed = 1})).shape(), (Shape{2, 3, 2, 8}));
}

TEST(Conv2D, HasKerasVariables) {
  Conv2D layer(8, {3, 5});
  EXPECT_EQ(kernel_shape(layer, {any_size, 28, 28, 4}), (Shape{3, 5, 4, 8}));
  EXPECT_EQ(layer.trainable_variables().parameters(), 3 * 5 * 4 * 8 + 8);
  // Glorot: fans are the taps times channels in and out.
  const double limit = std::sqrt(6.0 / (15 * 4 + 15 * 8));
  const double most = reduce_max(abs(layer.trainable_variables()[0].value())).item();
  EXPECT_LE(most, limit);
  EXPECT_GT(most, limit / 2);
  EXPECT_EQ(reduce_max(abs(layer.trainable_variables()[1].value())).item(), 0);
  Conv2D grouped(8, 3, {.groups = 2});
  EXPECT_EQ(kernel_shape(grouped, {1, 5, 5, 6}), (Shape{3, 3, 3, 8}));
  expect_says(error_of([] { Conv2D(8, 3, {.groups = 3}); }), "divided among 3 groups");
  expect_says(error_of([] { Conv2D(8, 3, {.strides = 0}); }), "strides must be positive");
  expect_says(error_of([] { Conv2D(8, 3)(zeros({2, 5, 5})); }), "expected 4 dimensions");
  expect_says(error_of([&] { layer(zeros({2, 9, 9, 3})); }), "expected 4 channels");
  expect_says(error_of([] { Conv2D(8, 3)(zeros({2, 9, 9, 3}, i32)); }), "cast it");
}

TEST(Convolutions, OfOneAndThreeDimensions) {
  const Tensor steps = reshape(range(6, f32), {1, 6, 1});
  expect_values(Conv1D(1, 3, {.strides = 2, .padding = Padding::same, .kernel_initializer = initializers::ones})(steps),
                {1, 3, 1}, {3, 9, 9});
  EXPECT_EQ(Conv3D(2, {1, 2, 3})(zeros({1, 4, 4, 4, 3})).shape(), (Shape{1, 4, 3, 2, 2}));
}

TEST(TransposedConvolutions, SpreadEachElement) {
  const ConvOptions ones{.strides = 2, .kernel_initializer = initializers::ones};
  expect_values(Conv2DTranspose(1, 3, ones)(image(2, 2)), {1, 5, 5, 1},
                {0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 2, 2, 6, 4, 4, 2, 2, 5, 3, 3, 2, 2, 5, 3, 3});
  ConvOptions same = ones;
  same.padding = Padding::same;
  Conv2DTranspose layer(4, 3, same);
  EXPECT_EQ(layer(image(2, 3)).shape(), (Shape{1, 4, 6, 4}));
  EXPECT_EQ(layer.trainable_variables()[0].shape(), (Shape{3, 3, 4, 1}));
  EXPECT_EQ(Conv1DTranspose(4, 2, {.strides = 3})(zeros({2, 5, 3})).shape(), (Shape{2, 15, 4}));
  EXPECT_EQ(Conv3DTranspose(4, 2)(zeros({2, 2, 2, 2, 3})).shape(), (Shape{2, 3, 3, 3, 4}));
}

TEST(DepthwiseConv2D, KeepsChannelsApart) {
  DepthwiseConv2D layer(2, {.kernel_initializer = initializers::ones, .depth_multiplier = 2});
  const Tensor x = concat({image(2, 2), image(2, 2) * 10}, -1);
  expect_values(layer(x), {1, 1, 1, 4}, {6, 6, 60, 60});
  EXPECT_EQ(layer.trainable_variables()[0].shape(), (Shape{2, 2, 2, 2}));
  expect_says(error_of([] { DepthwiseConv2D(3, {.groups = 2}); }), "no groups");
}

TEST(SeparableConv2D, IsSpaceThenChannels) {
  SeparableConv2D layer(3, 2, {.kernel_initializer = initializers::ones});
  const Tensor x = concat({image(2, 2), image(2, 2) * 10}, -1);
  expect_values(layer(x), {1, 1, 1, 3}, {66, 66, 66});
  EXPECT_EQ(layer.trainable_variables().size(), 3u);
  EXPECT_EQ(layer.trainable_variables()[0].name(), "separable_conv2d/depthwise_kernel");
  EXPECT_EQ(SeparableConv1D(3, 2)(zeros({1, 4, 5})).shape(), (Shape{1, 3, 3}));
}

TEST(Pooling, OfImages) {
  expect_values(MaxPooling2D()(image(4, 5)), {1, 2, 2, 1}, {6, 8, 16, 18});
  expect_values(AveragePooling2D()(image(4, 4)), {1, 2, 2, 1}, {2.5, 4.5, 10.5, 12.5});
  // Padding counts for neither.
  expect_values(AveragePooling2D(2, {.strides = 2, .padding = Padding::same})(image(3, 3)), {1, 2, 2, 1},
                {2, 3.5, 6.5, 8});
  expect_values(MaxPooling2D({1, 2}, {.strides = 1, .padding = Padding::same})(-image(1, 3)), {1, 1, 3, 1},
                {0, -1, -2});
  expect_values(GlobalMaxPooling2D()(image(2, 3)), {1, 1}, {5});
  expect_values(GlobalAveragePooling2D()(image(2, 3)), {1, 1}, {2.5});
  expect_values(GlobalAveragePooling2D(true)(image(2, 3)), {1, 1, 1, 1}, {2.5});
  EXPECT_EQ(MaxPooling1D(3)(zeros({2, 9, 4})).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(AveragePooling3D()(zeros({2, 4, 4, 4, 3})).shape(), (Shape{2, 2, 2, 2, 3}));
  EXPECT_EQ(GlobalMaxPooling1D()(zeros({2, 9, 4})).shape(), (Shape{2, 4}));
  expect_says(error_of([] { MaxPooling2D()(zeros({2, 9, 4})); }), "expected 4 dimensions");
}

TEST(Pooling, TiesAndNothing) {
  const Tensor x = constant({{1.0, 3.0}, {3.0, 3.0}});
  const auto gradient = [](auto layer, const Tensor& at) {
    const Tensor given = reshape(at, {1, 2, 2, 1});
    GradientTape tape;
    tape.watch(given);
    const Tensor y = reduce_sum(layer(given));
    return tape.gradient(y, given);
  };
  expect_values(gradient(MaxPooling2D(), x), {1, 2, 2, 1}, {0, 1, 0, 0});
  const float third = 1.0f / 3;
  expect_values(gradient(GlobalMaxPooling2D(), x), {1, 2, 2, 1}, {0, third, third, third});
  EXPECT_TRUE(std::isnan(max_pool(reshape(constant({{1.0, std::nan("")}, {2.0, 3.0}}), {1, 2, 2, 1}), {2}).item()));
  EXPECT_EQ(max_pool(zeros({1, 1, 1}), {2}, {.strides = {1}, .paddings = {{1, 1}}, .dilations = {2}}).item(),
            -std::numeric_limits<double>::infinity());
}

TEST(ZeroPaddingAndUpSampling, OfImages) {
  expect_values(ZeroPadding2D({1, 0})(image(1, 2)), {1, 3, 2, 1}, {0, 0, 0, 1, 0, 0});
  expect_values(ZeroPadding2D({0, 1}, {2, 0})(image(1, 2)), {1, 2, 4, 1}, {0, 0, 0, 1, 0, 0, 0, 0});
  expect_values(UpSampling2D({2, 3})(image(1, 2)), {1, 2, 6, 1}, {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1});
  expect_values(UpSampling2D({1, 2}, {.interpolation = ResizeMethod::bilinear})(image(1, 2)), {1, 1, 4, 1},
                {0, 0.25, 0.75, 1});
  EXPECT_EQ(UpSampling3D()(ZeroPadding3D()(zeros({1, 1, 1, 1, 2}))).shape(), (Shape{1, 6, 6, 6, 2}));
  EXPECT_EQ(UpSampling1D()(ZeroPadding1D(2)(zeros({1, 1, 2}))).shape(), (Shape{1, 10, 2}));
}

TEST(Convolutions, OfSizesThatAreNotKnown) {
  const Tensor w = random::normal({3, 3, 2, 4}, {.seed = 1}), d = random::normal({3, 3, 2, 1}, {.seed = 2});
  const auto f = [&](const Tensor& x) {
    const Tensor a = conv2d(x, w, {.padding = Padding::same}), b = depthwise_conv2d(x, d);
    const Tensor c = conv2d_transpose(a, w, {.strides = {2}});
    return reduce_sum(a) + reduce_sum(b) + reduce_sum(c) +
           reduce_sum(avg_pool(x, {3}, {.strides = {1}, .padding = Padding::same})) +
           reduce_sum(max_pool(x, {2}, {.strides = {1}}));
  };
  const auto step = function(f, {.input_signature = {{f32, {any_size, any_size, any_size, 2}}}});
  for (const Shape& shape : {Shape{2, 5, 4, 2}, Shape{3, 7, 3, 2}, Shape{1, 3, 9, 2}}) {
    const Tensor x = random::normal(shape, {.seed = 3});
    EXPECT_EQ(step(x).item(), f(x).item()) << shape;
  }
  const auto strided = [&](const Tensor& x) { return conv2d(x, w, {.strides = {2}}); };
  const auto every = function(strided, {.input_signature = {{f32, {any_size, any_size, 8, 2}}}});
  for (const std::int64_t rows : {3, 8, 11}) {
    const Tensor x = random::normal({1, rows, 8, 2}, {.seed = 3});
    EXPECT_TRUE(bitwise_equal(every(x), strided(x))) << rows;
  }
  EXPECT_EQ(every.explain().variants, 1);
}

/// Forward, both gradients, depthwise and pooling, whatever the number of threads: the same bits.
TEST(Convolutions, DoNotDependOnThreads) {
  const Tensor x = random::normal({3, 17, 16, 5}, {.seed = 1}), w = random::normal({3, 3, 5, 24}, {.seed = 2}),
               d = random::normal({3, 3, 24, 1}, {.seed = 3});
  const auto f = function([](const Tensor& images, const Tensor& full, const Tensor& depthwise) {
    GradientTape tape;
    for (const Tensor& source : {images, full, depthwise}) tape.watch(source);
    const Tensor y = conv2d(images, full, {.strides = {2}, .padding = Padding::same});
    const Tensor z = max_pool(depthwise_conv2d(y, depthwise, {.padding = Padding::same}), {3}, {.strides = {2}});
    const auto gradients = tape.gradient(reduce_sum(z * z), {images, full, depthwise});
    return std::tuple{z, gradients[0], gradients[1], gradients[2]};
  });
  std::vector<Tensors> results;
  for (int threads : {1, 2, 5})
    for (int call = 0; call < 2; ++call) {
      const Threads scope(threads);
      const auto [z, dx, dw, dd] = f(x, w, d);
      results.push_back({z, dx, dw, dd});
      for (const Tensor& result : results.back()) result.observed();
    }
  for (const Tensors& result : results)
    for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(bitwise_equal(result[i], results[0][i])) << i;
}

/// Examples do not mix in convolutions and pooling, so that their Jacobians are computed for all of them at once.
TEST(Convolutions, KeepExamplesApart) {
  const Tensor x = random::normal({2, 4, 4, 2}, {.seed = 1}), w = random::normal({2, 2, 2, 3}, {.seed = 2});
  const auto f = [&](const Tensor& images) {
    const Tensor y = conv2d(images, w, {.padding = Padding::same});
    return max_pool(conv2d_transpose(y, w, {.padding = Padding::same}) *
                        avg_pool(images, {2}, {.strides = {1}, .padding = Padding::same}),
                    {2});
  };
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = f(x), by_example = tape.batch_jacobian(y, x), whole = tape.jacobian(y, x);
  for (int n = 0; n < 2; ++n)
    EXPECT_LT(
        max_abs_difference(by_example[n], squeeze(slice(whole[n], {0, 0, 0, n, 0, 0, 0}, {2, 2, 2, 1, 4, 4, 2}), {3})),
        1e-5);
}

TEST(Convolutions, InAModel) {
  Sequential model{Conv2D(4, 3, {.padding = Padding::same, .activation = relu}), MaxPooling2D(), Conv2D(8, 3),
                   GlobalAveragePooling2D(), Dense(2)};
  model.build({f32, {any_size, 8, 8, 1}});
  const std::string table = model.summary();
  for (const char* part : {"conv2d", "max_pooling2d", "conv2d_1", "(?, 4, 4, 4)", "(?, 2, 2, 8)"})
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  Sequential copy = model;
  const Tensor x = random::normal({3, 8, 8, 1}, {.seed = 4});
  EXPECT_TRUE(bitwise_equal(copy(x), model(x)));
}

}  // namespace
}  // namespace gradus::convolutions_test
