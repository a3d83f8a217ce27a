/// Losses against double loops, their gradients, their weights, and what they refuse.
#include "gradus/base/rooms.h"
#include "gradus/nn/losses.h"
#include <gtest/gtest.h>
#include "gradus/base/notice.h"
#include <algorithm>
#include <cmath>
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "tests/errors.h"

namespace gradus::losses_test {
namespace {

using Row = std::vector<double>;

void expect_near(const Tensor& x, const Row& wanted, double tolerance = 1e-12) {
  const Row got = x.to_vector<double>();
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << i;
}

struct Case {
  std::int64_t rows = 9, classes = 7;
  Tensor logits = random::normal({rows, classes}, {.stddev = 3, .dtype = f64, .seed = 1});
  Tensor labels = random::integers({rows}, {.high = classes, .seed = 2});
  Row x = logits.to_vector<double>();
  std::vector<std::int32_t> y = labels.to_vector<std::int32_t>();

  double log_sum(std::int64_t r) const {
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(at(r, c));
    return std::log(sum);
  }
  double at(std::int64_t r, std::int64_t c) const { return x[static_cast<std::size_t>(r * classes + c)]; }
  Row sparse() const {
    Row losses;
    for (std::int64_t r = 0; r < rows; ++r) losses.push_back(log_sum(r) - at(r, y[static_cast<std::size_t>(r)]));
    return losses;
  }
};

TEST(SparseCrossentropy, OfLogits) {
  const Case c;
  expect_near(sparse_categorical_crossentropy(c.labels, c.logits, from_logits), c.sparse());
}

TEST(SparseCrossentropy, TakesEveryIntegerType) {
  const Case c;
  for (DType t : {i32, i64, u8})
    expect_near(sparse_categorical_crossentropy(cast(c.labels, t), c.logits, from_logits), c.sparse());
}

TEST(SparseCrossentropy, ManyClassesAndU8Labels) {
  const Tensor logits = random::normal({3, 1000}, {.dtype = f64, .seed = 1});
  const Tensor labels = constant({0, 255, 7});
  EXPECT_TRUE(bitwise_equal(sparse_categorical_crossentropy(cast(labels, u8), logits, from_logits),
                            sparse_categorical_crossentropy(labels, logits, from_logits)));
}

TEST(SparseCrossentropy, OfProbabilities) {
  const Case c;
  expect_near(sparse_categorical_crossentropy(c.labels, softmax(c.logits), from_probabilities), c.sparse(), 1e-5);
}

TEST(SparseCrossentropy, GradientIsSoftmaxLessOneHot) {
  const Case c;
  const auto f = [&](const Tensor& x) { return reduce_sum(sparse_categorical_crossentropy(c.labels, x, from_logits)); };
  const Tensor wanted = softmax(c.logits) - one_hot(c.labels, c.classes, f64);
  EXPECT_LT(max_abs_difference(gradient(f, c.logits), wanted), 1e-14);
}

TEST(SparseCrossentropy, LargeLogitsLoseNothing) {
  const Tensor logits = constant({{1000.0, 0.0, -1000.0}, {-1000.0, 1000.0, 999.0}}), labels = constant({1, 1});
  const std::vector<float> losses = sparse_categorical_crossentropy(labels, logits, from_logits).to_vector<float>();
  EXPECT_EQ(losses[0], 1000);
  EXPECT_NEAR(losses[1], std::log1p(std::exp(-1.0)), 1e-6);
}

TEST(SparseCrossentropy, LeadingAxesAreExamples) {
  const Tensor logits = random::normal({4, 5, 3}, {.dtype = f64, .seed = 3});
  const Tensor labels = random::integers({4, 5}, {.high = 3, .seed = 4});
  const Loss loss = SparseCategoricalCrossentropy(from_logits)(labels, logits);
  EXPECT_EQ(loss.weight().item(), 20);
  const Loss flat = SparseCategoricalCrossentropy(from_logits)(reshape(labels, {20}), reshape(logits, {20, 3}));
  EXPECT_NEAR(loss.item(), flat.item(), 1e-14);
}

TEST(SparseCrossentropy, LabelsOutsideTheClasses) {
  const Tensor logits = zeros({3, 4});
  const SparseCategoricalCrossentropy loss(from_logits);
  for (int bad : {4, -1, 1000}) {
    const std::string message = error_of([&] { loss(constant({0, bad, 1}), logits).item(); });
    expect_says(message, "label");
    expect_says(message, std::to_string(bad));
  }
  const auto compiled = function([&](Tensor y, Tensor x) { return loss(y, x); });
  EXPECT_NEAR(compiled(constant({0, 3, 1}), logits).item(), std::log(4), 1e-6);
  expect_says(error_of([&] { compiled(constant({0, 4, 1}), logits).item(); }), "label");
}

TEST(SparseCrossentropy, IgnoredLabelsCountNothing) {
  const Case c;
  const SparseCategoricalCrossentropy loss(from_logits, {.ignore_class = -1});
  const Tensor some = where(c.labels < 3, -1, c.labels);
  Row kept;
  for (std::size_t i = 0; i < c.y.size(); ++i)
    if (c.y[i] >= 3) kept.push_back(c.sparse()[i]);
  double sum = 0;
  for (double each : kept) sum += each;
  const Loss partly = loss(some, c.logits);
  EXPECT_EQ(partly.weight().item(), static_cast<double>(kept.size()));
  EXPECT_NEAR(partly.item(), sum / static_cast<double>(kept.size()), 1e-12);
  const Tensor none = fill({c.rows}, -1, i32);
  EXPECT_EQ(loss(none, c.logits).item(), 0);
  const auto f = [&](const Tensor& x) { return loss(none, x).value(); };
  EXPECT_EQ(max_abs_difference(gradient(f, c.logits), zeros_like(c.logits)), 0);
}

TEST(CategoricalCrossentropy, OfOneHotRowsIsTheSparseOne) {
  const Case c;
  const Tensor y = one_hot(c.labels, c.classes, f64);
  expect_near(categorical_crossentropy(y, c.logits, from_logits), c.sparse());
  expect_near(categorical_crossentropy(y, softmax(c.logits), from_probabilities), c.sparse(), 1e-5);
  expect_near(categorical_crossentropy(cast(y, i32), c.logits, from_logits), c.sparse());
}

TEST(CategoricalCrossentropy, LabelSmoothing) {
  const Case c;
  const double s = 0.1;
  double wanted = 0;
  for (std::int64_t r = 0; r < c.rows; ++r)
    for (std::int64_t k = 0; k < c.classes; ++k) {
      const double target = (c.y[static_cast<std::size_t>(r)] == k) * (1 - s) + s / static_cast<double>(c.classes);
      wanted += target * (c.log_sum(r) - c.at(r, k)) / static_cast<double>(c.rows);
    }
  const CategoricalCrossentropy loss(from_logits, {.label_smoothing = s});
  EXPECT_NEAR(loss(one_hot(c.labels, c.classes, f64), c.logits).item(), wanted, 1e-12);
}

TEST(BinaryCrossentropy, OfLogitsAndProbabilities) {
  const Tensor x = random::normal({6, 3}, {.stddev = 2, .dtype = f64, .seed = 1});
  const Tensor y = cast(random::uniform({6, 3}, {.seed = 2}) < 0.5, f64);
  const Row xs = x.to_vector<double>(), ys = y.to_vector<double>();
  Row wanted;
  for (std::size_t r = 0; r < 6; ++r) {
    double sum = 0;
    for (std::size_t k = 3 * r; k < 3 * r + 3; ++k) {
      const double p = 1 / (1 + std::exp(-xs[k]));
      sum -= ys[k] * std::log(p) + (1 - ys[k]) * std::log(1 - p);
    }
    wanted.push_back(sum / 3);
  }
  expect_near(binary_crossentropy(y, x, from_logits), wanted);
  expect_near(binary_crossentropy(y, sigmoid(x), from_probabilities), wanted, 1e-5);
  EXPECT_EQ(BinaryCrossentropy(from_logits)(cast(y, boolean), x).weight().item(), 6);
  EXPECT_EQ(binary_crossentropy(constant({1.0}), constant({-1e4}), from_logits).item(), 1e4);
}

TEST(Regression, Losses) {
  const Tensor y = constant({{1.0, 2.0}, {3.0, 5.0}}), p = constant({{1.5, 2.0}, {0.0, 9.0}});
  EXPECT_EQ(mean_squared_error(y, p).to_vector<float>(), (std::vector<float>{0.125, 12.5}));
  EXPECT_EQ(mean_absolute_error(y, p).to_vector<float>(), (std::vector<float>{0.25, 3.5}));
  EXPECT_EQ(MeanSquaredError()(y, p).item(), 6.3125);
  EXPECT_EQ(MeanSquaredError()(y, p).weight().item(), 2);
  EXPECT_EQ(Huber()(y, p).item(), (0.125 / 2 + (2.5 + 3.5) / 2) / 2);
  EXPECT_EQ(Huber({.delta = 10})(y, p).item(), 6.3125 / 2);
}

TEST(Regression, EachElementOfAVectorIsAnExample) {
  const Loss loss = MeanSquaredError()(constant({1.0, 2.0, 3.0}), constant({1.0, 2.0, 6.0}));
  EXPECT_EQ(loss.item(), 3);
  EXPECT_EQ(loss.weight().item(), 3);
}

TEST(Losses, SampleWeights) {
  const Tensor y = zeros({2, 3, 1}), p = reshape(constant({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}), {2, 3, 1});
  const Loss by_row = MeanSquaredError()(y, p, constant({1.0, 3.0}));
  EXPECT_EQ(by_row.weight().item(), 12);
  EXPECT_NEAR(by_row.item(), (1 + 4 + 9 + 3 * (16 + 25 + 36)) / 12.0, 1e-5);
  const Loss each = MeanSquaredError()(y, p, constant({{1, 0, 0}, {0, 0, 2}}));
  EXPECT_NEAR(each.item(), (1 + 2 * 36) / 3.0, 1e-5);
  expect_says(error_of([&] { MeanSquaredError()(y, p, constant({1.0, 2.0, 3.0})); }), "sample_weight");
  const Tensor labels = constant({0, 1, 9});
  const SparseCategoricalCrossentropy ignoring(from_logits, {.ignore_class = 9});
  EXPECT_EQ(ignoring(labels, zeros({3, 4}), constant({2.0, 3.0, 5.0})).weight().item(), 5);
}

TEST(Losses, RefuseWhatDoesNotFit) {
  const Tensor logits = random::normal({4, 3}, {.seed = 1}), labels = constant({0, 1, 2, 0});
  expect_says(error_of([&] { sparse_categorical_crossentropy(labels, softmax(logits), from_logits); }), "softmax");
  expect_says(error_of([&] { categorical_crossentropy(logits, softmax(logits), from_logits); }), "softmax");
  expect_says(error_of([&] {
                categorical_crossentropy(logits, reshape(softmax(reshape(logits, {2, 6})), {4, 3}), from_logits);
              }),
              "softmax");
  expect_says(error_of([&] { binary_crossentropy(logits, sigmoid(logits), from_logits); }), "sigmoid");
  expect_says(error_of([&] {
                function([](Tensor y, Tensor x) {
                  return sparse_categorical_crossentropy(y, softmax(x), from_logits);
                })(labels, logits);
              }),
              "softmax");
  expect_says(error_of([&] { mean_squared_error(zeros({4}), zeros({4, 1})); }), "f32[4,1]");
  expect_says(error_of([&] { mean_squared_error(zeros({4, 1}), zeros({4, 2})); }), "shapes");
  EXPECT_EQ(mean_squared_error(zeros({4}, f64), zeros({4})).dtype(), f32);  // cast, as Keras does
  expect_says(error_of([&] { sparse_categorical_crossentropy(constant({0, 1}), logits, from_logits); }), "label");
  expect_says(error_of([&] { sparse_categorical_crossentropy(cast(labels, f32), logits, from_logits); }),
              "classes as integers");
  expect_says(error_of([&] { sparse_categorical_crossentropy(logits, logits, from_logits); }), "one-hot");
  expect_says(error_of([&] { categorical_crossentropy(labels, logits, from_logits); }), "shapes");
  expect_says(error_of([&] { CategoricalCrossentropy(from_logits, {.label_smoothing = 2}); }), "label_smoothing");
  expect_says(error_of([&] { Huber({.delta = 0}); }), "delta");
  EXPECT_FALSE(is_softmax(logits / reduce_sum(logits)));
  EXPECT_FALSE(is_softmax(exp(logits) / reduce_sum(exp(logits * 2))));
}

TEST(RepeatedSoftmax, IsRefusedOrNoticedOncePerLoss) {
  std::vector<std::string> notices;
  set_notice_sink([&](std::string_view message) { notices.emplace_back(message); });
  EXPECT_EQ(set_repeated_softmax(RepeatedSoftmax::noticed), RepeatedSoftmax::refused);
  const Tensor logits = random::normal({4, 3}, {.seed = 1}), labels = constant({0, 1, 2, 0}), y = one_hot(labels, 3);
  for (int i = 0; i < 2; ++i) {
    // They take the prediction for logits.
    expect_near(cast(sparse_categorical_crossentropy(labels, softmax(logits), from_logits), f64),
                cast(sparse_categorical_crossentropy(labels, softmax(softmax(logits)), from_probabilities), f64)
                    .to_vector<double>(),
                1e-5);
    categorical_crossentropy(y, softmax(logits), from_logits);
    binary_crossentropy(y, sigmoid(logits), from_logits);
    function([&](const Tensor& x) { return CategoricalCrossentropy(from_logits)(y, softmax(x)); })(logits);
  }
  ASSERT_EQ(notices.size(), 3u);
  for (const char* name : {"sparse_categorical_crossentropy", "categorical_crossentropy", "binary_crossentropy"})
    EXPECT_EQ(std::ranges::count_if(
                  notices, [&](const std::string& each) { return each.starts_with("gradus: " + std::string(name)); }),
              1);
  set_repeated_softmax(RepeatedSoftmax::noticed);
  categorical_crossentropy(y, softmax(logits), from_logits);
  EXPECT_EQ(notices.size(), 4u);
  EXPECT_EQ(set_repeated_softmax(RepeatedSoftmax::refused), RepeatedSoftmax::noticed);
  expect_says(error_of<InvalidArgument>([&] { categorical_crossentropy(y, softmax(logits), from_logits); }),
              "would apply again");
  set_notice_sink({});
}

}  // namespace
}  // namespace gradus::losses_test
