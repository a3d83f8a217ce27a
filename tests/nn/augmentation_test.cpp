/// Layers that change images at random: ranges of one number against Keras's stored values, and what chance must do.
#include "gradus/nn/augmentation.h"
#include <gtest/gtest.h>
#include <set>
#include "gradus/function/function.h"
#include "gradus/nn/layers.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/image.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"
#include "tests/nn/keras_values.h"

namespace gradus::augmentation_test {
namespace {

Tensor images() { return random::uniform({16, 5, 4, 3}, {.high = 255, .seed = 1}); }

TEST(Augmentation, IsKeras) {
  const KerasValues keras("augmentation");
  const std::pair<const char*, FillMode> modes[] = {
      {"reflect", FillMode::reflect}, {"constant", FillMode::constant}, {"nearest", FillMode::nearest}};
  for (const auto& [name, fill] : modes) {
    const auto check = [&, fill_name = std::string(name)](const std::string& what, const Module& layer) {
      EXPECT_LE(max_abs_difference(layer(keras["x"], training), keras[what + "_" + fill_name]), 2e-3)
          << what << " " << fill_name;
    };
    const RandomMoveOptions options{.fill_mode = fill};
    check("translation", RandomTranslation({0.25, 0.25}, {-0.125, -0.125}, options));
    check("rotation", RandomRotation({0.0625, 0.0625}, options));
    check("zoom", RandomZoom({0.25, 0.25}, {-0.125, -0.125}, options));
    check("zoom_both", RandomZoom({0.25, 0.25}, options));
  }
  EXPECT_LE(max_abs_difference(RandomBrightness({0.25, 0.25})(keras["x"], training), keras["brightness"]), 1e-4);
}

/// As Keras's documentation says; Keras 3.15 gives the whole image.
TEST(Augmentation, InferenceShrinksTheLargestWindow) {
  const Tensor x = random::uniform({2, 6, 9, 3}, {.seed = 1});
  EXPECT_TRUE(bitwise_equal(RandomCrop(3, 4)(x, inference), resize(crop_to_bounding_box(x, 0, 0, 6, 8), {3, 4})));
  EXPECT_TRUE(bitwise_equal(RandomCrop(9, 9)(x, training), resize(crop_to_bounding_box(x, 0, 1, 6, 6), {9, 9})));
}

TEST(Augmentation, NothingInInference) {
  const Tensor x = images();
  const Sequential all{RandomFlip(),    RandomTranslation(0.5, 0.5), RandomRotation(0.5),
                       RandomZoom(0.5), RandomBrightness(0.5),       RandomContrast(0.5)};
  EXPECT_TRUE(bitwise_equal(all(x, inference), x));
  EXPECT_EQ(all(x, training).spec(), x.spec());
  EXPECT_EQ(all(x[0], training).spec(), x[0].spec());
}

/// Each image is one of its mirror images, and not all are treated alike.
TEST(Augmentation, FlipsEachOnItsOwn) {
  set_seed(2);
  const Tensor x = images(), y = RandomFlip(FlipMode::horizontal)(x, training), mirrored = reverse(x, {2});
  int same = 0;
  for (std::int64_t i = 0; i < 16; ++i) {
    const bool is_same = bitwise_equal(y[i], x[i]);
    EXPECT_TRUE(is_same || bitwise_equal(y[i], mirrored[i]));
    same += is_same;
  }
  EXPECT_GT(same, 1);
  EXPECT_LT(same, 15);
  const Tensor both = RandomFlip()(x, training);
  int kinds[4] = {};
  for (std::int64_t i = 0; i < 16; ++i) {
    const Tensor candidates[] = {x[i], reverse(x, {1})[i], mirrored[i], reverse(x, {1, 2})[i]};
    for (int kind = 0; kind < 4; ++kind) kinds[kind] += bitwise_equal(both[i], candidates[kind]);
  }
  for (const int count : kinds) EXPECT_GT(count, 0);
}

TEST(Augmentation, CropsAreBoxesOfTheImage) {
  set_seed(3);
  const Tensor x = reshape(range(5 * 6, i32), {1, 5, 6, 1});
  std::set<std::int64_t> corners;
  for (int i = 0; i < 40; ++i) {
    const Tensor y = RandomCrop(3, 4)(x, training);
    ASSERT_EQ(y.spec(), (Spec{i32, {1, 3, 4, 1}}));
    const auto corner = static_cast<std::int64_t>(reduce_min(y).item());
    EXPECT_TRUE(bitwise_equal(reshape(y, {3, 4}), slice(reshape(x, {5, 6}), {corner / 6, corner % 6}, {3, 4})));
    corners.insert(corner);
  }
  EXPECT_EQ(corners.size(), 9u);
}

TEST(Augmentation, ContrastKeepsMeans) {
  set_seed(4);
  const Tensor x = images() * 0.1 + 120, y = RandomContrast({0.5, 0.5})(x, training);
  const Tensor mean = reduce_mean(x, {.axis = {1, 2}, .keepdims = true});
  EXPECT_LE(max_abs_difference(y, (x - mean) * 1.5 + mean), 1e-3);
  const Tensor each = RandomContrast(0.5)(x, training);
  EXPECT_LE(max_abs_difference(reduce_mean(each, {.axis = {1, 2}}), reduce_mean(x, {.axis = {1, 2}})), 1e-2);
}

TEST(Augmentation, CompiledForEveryBatch) {
  const Sequential all{RandomFlip(), RandomRotation(0.1), RandomBrightness(0.2)};
  const auto compiled =
      function([&](Tensor x) { return all(x, training); }, {.input_signature = {Spec{f32, {any_size, 5, 4, 3}}}});
  EXPECT_EQ(compiled(images()).shape(), images().shape());
  EXPECT_EQ(compiled(images().rows(0, 3)).shape()[0], 3);
}

TEST(Augmentation, Mistakes) {
  expect_says(error_of<InvalidArgument>([] { RandomZoom(Factor(0.3, 0.2)); }), "expected low <= high");
  expect_says(error_of<InvalidArgument>([] { RandomRotation(1.5); }), "within [-1, 1]");
  expect_says(error_of<InvalidArgument>([] { RandomFlip()(ones({2, 3}), training); }), "[batch, height, width");
  expect_says(error_of<InvalidArgument>([] { RandomCrop(0, 2); }), "positive");
}

}  // namespace
}  // namespace gradus::augmentation_test
