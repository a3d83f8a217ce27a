/// The report finds the layer that was made to overflow, and the one whose gradients were made to vanish.
#include "gradus/train/precision_report.h"
#include <gtest/gtest.h>
#include <sstream>
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/normalization.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_state.h"
#include "gradus/ops/reduce.h"
#include "tests/errors.h"

namespace gradus::precision_report_test {
namespace {

Dataset<2> data_of(double size) { return data::from_tensor_slices(full({8, 4}, size), zeros({8, 2})).batch(4); }

const LayerPrecision& row_of(const PrecisionReport& report, const std::string& layer) {
  for (const LayerPrecision& row : report.layers)
    if (row.layer == layer) return row;
  throw InternalError("no row for " + layer);
}

/// 300^2 fits into f16, 300^4 does not: the second square overflows, in f16 alone.
Sequential squares(Policy policy) {
  const auto square_of = [](Tensor x) { return x * x; };
  Sequential model({Lambda(square_of, "once"), Dense(4, linear, {.name = "between"}), Lambda(square_of, "twice"),
                    Dense(2, linear, {.name = "last"})},
                   {.policy = policy});
  model.build({f32, {any_size, 4}});
  Variables variables = model.variables();
  variables["between/kernel"].assign(full({4, 4}, 0.25));
  variables["last/kernel"].assign(full({4, 2}, 1e-3));
  return model;
}

TEST(PrecisionReport, NamesTheLayerThatOverflows) {
  const Sequential model = squares(mixed_float16);
  const PrecisionReport report = precision_report(model, MeanSquaredError(), data_of(250));
  EXPECT_EQ(report.overflowing_layer, "sequential/twice");
  expect_says(report.overflow, "the output of layer sequential/twice: `");
  expect_says(report.overflow, "in f16");
  ASSERT_FALSE(report.advice.empty());
  expect_says(report.advice[0], "mixed_bfloat16");
  EXPECT_EQ(report.loss_scale, 32768);
  const LayerPrecision& first = row_of(report, "sequential/once");
  EXPECT_EQ(first.dtype, f16);
  EXPECT_EQ(first.activations.largest, 62496);  // 250^2, to 11 bits
  EXPECT_EQ(first.activations.not_finite, 0);
  const LayerPrecision& second = row_of(report, "sequential/twice");
  EXPECT_EQ(second.activations.not_finite, second.activations.numbers);
  std::ostringstream shown;
  shown << report;
  expect_says(shown.str(), "The first overflow is the output of layer sequential/twice");
  expect_says(shown.str(), "100%");

  for (const Policy& wide : {mixed_bfloat16, float32}) {
    const PrecisionReport fine = precision_report(squares(wide), MeanSquaredError(), data_of(250));
    EXPECT_EQ(fine.overflow, "") << wide.compute;
    EXPECT_EQ(fine.underflowing_layer, "");
    EXPECT_TRUE(fine.advice.empty());
  }
}

/// A gradient of 1e-4 into the last layer, `last` and `tiny` times that into the others.
PrecisionReport report_of(Policy policy, double first, double tiny, double last) {
  Sequential model(
      {Dense(4, linear, {.name = "first"}), Dense(4, linear, {.name = "tiny"}), Dense(2, linear, {.name = "last"})},
      {.policy = policy});
  model.build({f32, {any_size, 4}});
  Variables variables = model.variables();
  variables["first/kernel"].assign(full({4, 4}, first));
  variables["tiny/kernel"].assign(full({4, 4}, tiny));
  variables["last/kernel"].assign(full({4, 2}, last));
  return precision_report(
      model, [](Tensor, Tensor p) { return Loss::of(reduce_sum(cast(p, f32)) * 1e-4); }, data_of(1));
}
constexpr Policy unscaled{f16, f32, false};

/// 8e-7 and 3.2e-6 are subnormal in f16.
TEST(PrecisionReport, NamesTheLayerWhoseGradientsAreSubnormal) {
  const PrecisionReport report = report_of(unscaled, 62.5, 1e-3, 1);
  EXPECT_EQ(report.overflow, "");
  EXPECT_EQ(report.underflowing_layer, "sequential/first");
  const LayerPrecision& row = row_of(report, "sequential/first");
  EXPECT_EQ(row.gradients.underflowed, row.gradients.numbers);
  EXPECT_GT(row.gradients.numbers, 0);
  EXPECT_EQ(row.activations.underflowed, 0);
  EXPECT_EQ(row_of(report, "sequential/last").gradients.underflowed, 0);
  ASSERT_EQ(report.advice.size(), 1u);
  expect_says(report.advice[0], "mixed_float16, which scales the loss");
  for (const Policy& fine : {mixed_float16, mixed_bfloat16, float32})
    EXPECT_EQ(report_of(fine, 62.5, 1e-3, 1).underflowing_layer, "") << fine.compute;
}

/// 2.5e-8 becomes zero in the gradient of what enters the layer; all before it are zeros of zeros.
TEST(PrecisionReport, NamesTheLayerWhoseGradientsBecomeZero) {
  const PrecisionReport report = report_of(unscaled, 625, 6.2e-5, 0.5);
  EXPECT_EQ(report.underflowing_layer, "sequential/tiny");
  EXPECT_EQ(row_of(report, "sequential/tiny").gradients.underflowed, 16);
  EXPECT_EQ(row_of(report, "sequential/first").gradients.largest, 0);
  EXPECT_EQ(report_of(mixed_float16, 625, 6.2e-5, 0.5).underflowing_layer, "");
}

/// Zeros that are zeros in every type, as those of relu, are none that were flushed.
TEST(PrecisionReport, TrueZerosAreNoUnderflow) {
  Sequential model({Dense(4, relu, {.name = "half"}), Dense(2, linear, {.name = "last"})}, {.policy = mixed_float16});
  model.build({f32, {any_size, 4}});
  model.variables()["half/kernel"].assign(full({4, 4}, -1.0));
  const PrecisionReport report = precision_report(model, MeanSquaredError(), data_of(1));
  EXPECT_EQ(row_of(report, "sequential/half").activations.underflowed, 0);
  EXPECT_EQ(report.overflow, "");
}

TEST(PrecisionReport, LeavesTheModelAsItIs) {
  Sequential model({Dense(4), BatchNormalization(), Dropout(0.5), Dense(2, linear, {.dtype = f32})},
                   {.policy = mixed_float16});
  model.build({f32, {any_size, 4}});
  Tensors before;
  for (const Variable& variable : model.variables()) before.push_back(variable.value());
  const std::uint64_t random = random_state();
  precision_report(model, MeanSquaredError(),
                   data::from_tensor_slices(random::normal({8, 4}, {.seed = 1}), zeros({8, 2})).batch(8));
  std::size_t i = 0;
  for (const Variable& variable : model.variables())
    EXPECT_TRUE(bitwise_equal(variable.value(), before[i++])) << variable.name();
  EXPECT_EQ(model.loss_scale(), 32768);
  EXPECT_EQ(random_state(), random) << "a training that is looked at goes on as one that is not";
}

}  // namespace
}  // namespace gradus::precision_report_test
