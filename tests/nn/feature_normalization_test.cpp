/// Normalization by the statistics of a data set.
#include <gtest/gtest.h>
#include <functional>
#include <iostream>
#include "gradus/gradients/tape.h"
#include "gradus/nn/feature_normalization.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/new_process.h"

namespace gradus::feature_normalization_test {
namespace {

double largest(const Tensor& x) { return reduce_max(abs(x)).item(); }

TEST(FeatureNormalization, OfATensorAndOfDatasetsIsTheSame) {
  set_seed(1);
  const Tensor x = random::normal({1000, 4}, {.dtype = f64}) * cast(constant({1, 10, 100, 1000}), f64) + 5000;
  Normalization whole, rows, batches;
  whole.adapt(x);
  const auto dataset = data::from_tensor_slices(x);
  rows.adapt(dataset);
  batches.adapt(dataset.batch(64));
  const Tensor z = whole(x);
  EXPECT_LT(largest(reduce_mean(z, {.axis = {0}})), 1e-10);
  EXPECT_LT(largest(reduce_std(z, {.axis = {0}}) - 1.0), 1e-10);
  EXPECT_LT(max_abs_difference(rows(x), z), 1e-9);
  EXPECT_LT(max_abs_difference(batches(x), z), 1e-9);
  EXPECT_TRUE(bitwise_equal(rows(x)[7], rows(x[7]))) << "single elements as batches";
  EXPECT_EQ(whole.variables().size(), 2u);
  EXPECT_EQ(whole.trainable_variables().size(), 0u);
}

TEST(FeatureNormalization, ConstantFeaturesAndIntegers) {
  Normalization layer;
  layer.adapt(full({10, 3}, 7, u8));
  EXPECT_EQ(largest(layer(full({2, 3}, 7, u8))), 0);
  EXPECT_EQ(layer(full({2, 3}, 7, u8)).dtype(), f32);
  Normalization not_adapted;
  EXPECT_TRUE(bitwise_equal(not_adapted(ones({2, 3})), ones({2, 3})));
}

TEST(FeatureNormalization, OverAnotherAxis) {
  set_seed(2);
  const Tensor images = random::normal({20, 3, 5, 6});
  Normalization layer(1);
  layer.adapt(images);
  const Tensor z = layer(images);
  EXPECT_LT(largest(reduce_mean(z, {.axis = {0, 2, 3}})), 1e-5);
  EXPECT_LT(largest(reduce_std(z, {.axis = {0, 2, 3}}) - 1.0), 1e-5);
}

TEST(FeatureNormalization, OfStatisticsThatAreKnown) {
  const Tensor x = constant({{-2.0f, -1.0f, 0.0f}, {1.0f, 2.0f, 3.0f}});
  const Tensor each = constant({{-1.5f, -3.0f, -3e7f}, {0.0f, 0.0f, 0.0f}});
  EXPECT_TRUE(bitwise_equal(Normalization({1, 2, 3}, {4, 1, 0})(x), each));
  EXPECT_TRUE(bitwise_equal(Normalization({1}, {4})(x), (x - 1.0) / 2.0));
  EXPECT_THROW(Normalization({1, 2}, {4, 1})(x), InvalidArgument);
  EXPECT_THROW(Normalization({1}, {-1}), InvalidArgument);
  EXPECT_THROW(Normalization({1, 2}, {1}), InvalidArgument);
}

TEST(FeatureNormalization, Mistakes) {
  Normalization layer;
  EXPECT_THROW(layer.adapt(data::range(4)), InvalidArgument);
  EXPECT_THROW(layer.adapt(data::from_tensor_slices(ones({4, 2})).repeat()), InvalidArgument);
  EXPECT_THROW(layer.adapt(data::from_tensor_slices(ones({4, 2})).take(0)), DataError);
  EXPECT_THROW(layer.adapt(constant(3.0)), InvalidArgument);
  layer.adapt(ones({4, 2}));
  EXPECT_THROW(layer.adapt(ones({4, 3})), InvalidArgument);
}

/// What a training step through `model` says on stderr; the warning comes once a process, so each has its own.
void expect_warning(const char* pattern, const std::function<void(Normalization&)>& prepare) {
  GRADUS_IN_NEW_PROCESS();
  EXPECT_EXIT(
      {
        Normalization normalize;
        prepare(normalize);
        const Variable w(ones({4}));
        GradientTape tape;
        const Tensor loss = reduce_sum(normalize(ones({2, 4})) * w);
        tape.gradient(loss, Variables{w});
        std::cerr << "end\n";
        std::exit(0);
      },
      testing::ExitedWithCode(0), pattern);
}

TEST(FeatureNormalizationDeathTest, TrainingThroughOneThatNobodyAdaptedIsTold) {
  expect_warning("normalization, which was not adapted.*end", [](Normalization&) {});
  expect_warning("normalization, which was not adapted.*end", [](Normalization& n) { n.build({f32, {any_size, 4}}); });
  expect_warning("^end\n$", [](Normalization& n) { n.adapt(random::normal({9, 4}, {.seed = 1})); });
  expect_warning("^end\n$", [](Normalization& n) { n = Normalization({1, 2, 3, 4}, {1, 1, 1, 1}); });
  expect_warning("^end\n$", [](Normalization& n) {  // as loading weights does
    n.build({f32, {any_size, 4}});
    n.variables()["normalization/mean"].assign(zeros({4}));
  });
  expect_warning("^end\n$", [](Normalization& n) {
    Normalization adapted;
    adapted.adapt(random::normal({9, 4}, {.seed = 1}));
    n = adapted;
  });
}

}  // namespace
}  // namespace gradus::feature_normalization_test
