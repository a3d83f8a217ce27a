/// Parts without examples, weights of exactly 0 and labels that are ignored: value and gradients are those of the
/// examples that are left, whatever the others hold.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::left_out_test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

enum class Targets { numbers, signs, shares, labels, sequences, groups };

struct OneLoss {
  std::string name;
  LossFunction loss;
  Targets targets = Targets::numbers;
  bool wants_probabilities = false;
};

std::vector<OneLoss> all_losses() {
  return {
      {"categorical", CategoricalCrossentropy(from_logits), Targets::shares},
      {"categorical, smoothed", CategoricalCrossentropy(from_logits, {.label_smoothing = 0.1}), Targets::shares},
      {"categorical of shares", CategoricalCrossentropy(from_probabilities), Targets::shares, true},
      {"binary", BinaryCrossentropy(from_logits), Targets::shares},
      {"binary of shares", BinaryCrossentropy(from_probabilities), Targets::shares, true},
      {"sparse", SparseCategoricalCrossentropy(from_logits), Targets::labels},
      {"sparse of shares", SparseCategoricalCrossentropy(from_probabilities), Targets::labels, true},
      {"sparse, ignoring", SparseCategoricalCrossentropy(from_logits, {.ignore_class = 7}), Targets::labels},
      {"squared", MeanSquaredError()},
      {"absolute", PerExampleLoss(mean_absolute_error)},
      {"huber", Huber()},
      {"percentage", MeanAbsolutePercentageError()},
      {"logarithmic", MeanSquaredLogarithmicError(), Targets::shares, true},
      {"log_cosh", LogCosh()},
      {"hinge", Hinge(), Targets::signs},
      {"squared_hinge", SquaredHinge(), Targets::signs},
      {"categorical_hinge", CategoricalHinge(), Targets::signs},
      {"kl_divergence", KLDivergence(), Targets::shares, true},
      {"poisson", Poisson(), Targets::shares, true},
      {"cosine", CosineSimilarity()},
      {"binary_focal", BinaryFocalCrossentropy(from_logits), Targets::shares},
      {"binary_focal of shares", BinaryFocalCrossentropy(from_probabilities), Targets::shares, true},
      {"categorical_focal", CategoricalFocalCrossentropy(from_logits), Targets::shares},
      {"categorical_focal of shares", CategoricalFocalCrossentropy(from_probabilities), Targets::shares, true},
      {"dice", Dice({.axis = {1}}), Targets::shares, true},
      {"tversky", Tversky({.axis = {1}}), Targets::shares, true},
      {"circle", Circle(), Targets::groups},
      {"generalized", CategoricalGeneralizedCrossEntropy(), Targets::labels, true},
      {"ctc", CTC(), Targets::sequences},
  };
}

constexpr std::int64_t classes = 4;

Tensor random_targets(Targets kind, std::int64_t n) {
  switch (kind) {
    case Targets::numbers: return random::normal({n, classes}, {.seed = 11});
    case Targets::signs: return cast(random::uniform({n, classes}, {.seed = 11}) > 0.5, f32);
    case Targets::shares: return one_hot(random::integers({n}, {.low = 0, .high = classes, .seed = 11}), classes, f32);
    case Targets::labels: return random::integers({n}, {.low = 0, .high = classes, .seed = 11});
    case Targets::sequences: return random::integers({n, 2}, {.low = 1, .high = classes, .seed = 11});
    case Targets::groups: return mod(range(n), 2);
  }
  return {};
}

Tensor random_prediction(const OneLoss& each, std::int64_t n) {
  const Shape shape = each.targets == Targets::sequences ? Shape{n, 5, classes} : Shape{n, classes};
  const Tensor x = random::normal(shape, {.seed = 12});
  if (each.targets == Targets::groups) return l2_normalize(x, {-1});
  return each.wants_probabilities ? softmax(x) * 0.9 : x;
}

Tensor rows_of(const Tensor& x, const std::vector<std::int64_t>& at) {
  return gather(x, from_values(at, {static_cast<std::int64_t>(at.size())}));
}

Tensor with_rows_of(const Tensor& x, const Tensor& out, double value) {
  Tensor counts = out;
  while (counts.shape().rank() < x.shape().rank()) counts = expand_dims(counts, -1);
  return where(counts, fill_like(x, value), x);
}

struct Result {
  double value, weight;
  Tensor gradient;
};

Result result_of(const LossFunction& loss, const Tensor& y, const Tensor& prediction, const Tensor& weight) {
  GradientTape tape;
  tape.watch(prediction);
  const Loss found = weight.defined() ? loss(y, prediction, weight) : loss(y, prediction);
  const Tensor gradient = tape.gradient(found, prediction);
  return {found.item(), found.weight().item(), gradient};
}

/// By reductions over examples: a weight of 0 and removing the example are the same.
TEST(WeightZero, TakesAnExampleOutOfEveryLoss) {
  const Tensor weight = constant({1.0f, 0.0f, 2.0f, 0.0f, 0.5f}), out = equal(weight, 0);
  const std::vector<std::int64_t> left{0, 2, 4}, taken{1, 3};
  for (const OneLoss& each : all_losses()) {
    const Tensor y = random_targets(each.targets, 5), p = random_prediction(each, 5);
    const Result want = result_of(each.loss, rows_of(y, left), rows_of(p, left), rows_of(weight, left));
    for (const double bad : {nan, inf, -inf, 0.0, 1e38, -1e38}) {
      for (const bool y_too : {false, true}) {
        const Tensor wrong = is_floating(y.dtype()) ? with_rows_of(y, out, bad)
                             : each.targets == Targets::groups || each.targets == Targets::sequences
                                 ? y
                                 : with_rows_of(y, out, 99);
        const Result got = result_of(each.loss, y_too ? wrong : y, with_rows_of(p, out, bad), weight);
        const std::string what = text(each.name, ", ", bad, y_too ? " in both" : "");
        EXPECT_NEAR(got.value, want.value, 1e-5 * std::max(1.0, std::abs(want.value))) << what;
        EXPECT_EQ(got.weight, want.weight) << what;
        EXPECT_LE(reduce_max(abs(rows_of(got.gradient, left) - want.gradient)).item(), 1e-5) << what;
        EXPECT_TRUE(reduce_all(equal(rows_of(got.gradient, taken), 0)).item()) << what;
      }
    }
  }
}

TEST(WeightZero, CompiledAndInNarrowTypesToo) {
  const Tensor weight = constant({0.0f, 1.0f, 0.0f});
  for (const OneLoss& each : all_losses()) {
    if (each.targets == Targets::sequences || each.targets == Targets::groups) continue;
    const Tensor y = random_targets(each.targets, 3);
    for (const DType t : {f32, f16, bf16}) {
      const Tensor p = cast(with_rows_of(random_prediction(each, 3), equal(weight, 0), nan), t);
      auto step = function([&](Tensor labels, Tensor prediction, Tensor w) {
        GradientTape tape;
        tape.watch(prediction);
        const Loss loss = each.loss(labels, prediction, w);
        return std::pair{loss.value(), tape.gradient(loss, prediction)};
      });
      const Tensor targets = is_floating(y.dtype()) ? cast(y, t) : y;
      const auto [value, gradient] = step(targets, p, weight);
      EXPECT_TRUE(std::isfinite(value.item())) << each.name << ' ' << t;
      EXPECT_TRUE(reduce_all(is_finite(gradient)).item()) << each.name << ' ' << t;
      EXPECT_EQ(value.item(), each.loss(targets, p, weight).item()) << each.name << ' ' << t;
    }
  }
}

TEST(WeightZero, OfAllExamplesLeavesNothing) {
  for (const OneLoss& each : all_losses()) {
    const Tensor y = random_targets(each.targets, 3), p = fill_like(random_prediction(each, 3), nan);
    const Result got = result_of(each.loss, y, p, zeros({3}));
    EXPECT_EQ(got.value, 0) << each.name;
    EXPECT_EQ(got.weight, 0) << each.name;
    EXPECT_TRUE(reduce_all(equal(got.gradient, 0)).item()) << each.name;
  }
}

/// Weights may be differentiated, at 0 too: by them the gradient is what the example would add.
TEST(WeightZero, KeepsTheDerivativesByTheWeight) {
  const Tensor y = random::normal({3, 2}, {.dtype = f64, .seed = 1}),
               p = random::normal({3, 2}, {.dtype = f64, .seed = 2});
  const Tensor weight = constant({1.0, 0.0, 2.0}, f64);
  const MeanSquaredError loss;
  GradientTape tape({.persistent = true});
  tape.watch(weight);
  tape.watch(p);
  const Tensor sum = loss(y, p, weight).sum(), by_weight = tape.gradient(sum, weight);
  const Tensor each = mean_squared_error(y, p);
  EXPECT_LE(reduce_max(abs(by_weight - each)).item(), 1e-12);
  // d/dw of d/dp: 2 (p - y) / 2 of the example alone.
  const Tensor by_prediction = tape.gradient(sum, p), mixed = tape.gradient(reduce_sum(by_prediction), weight);
  EXPECT_LE(reduce_max(abs(mixed - reduce_sum(p - y, {.axis = {1}}))).item(), 1e-12);
}

TEST(IgnoredLabels, HaveNoGradientWhateverTheirLogits) {
  for (const std::int64_t ignored : {-1, 0, 255}) {
    const SparseCategoricalCrossentropy loss(from_logits, {.ignore_class = ignored});
    const Tensor y = from_values(std::vector<std::int64_t>{1, ignored, 2, ignored}, {4});
    for (const double bad : {nan, inf, -inf, 3.0}) {
      const Tensor p = with_rows_of(random::normal({4, 3}, {.seed = 3}), equal(y, ignored), bad);
      const Result got = result_of(loss, y, p, {});
      const Result want = result_of(loss, rows_of(y, {0, 2}), rows_of(p, {0, 2}), {});
      EXPECT_NEAR(got.value, want.value, 1e-6) << bad;
      EXPECT_EQ(got.weight, 2) << bad;
      EXPECT_LE(reduce_max(abs(rows_of(got.gradient, {0, 2}) - want.gradient)).item(), 1e-6) << bad;
      EXPECT_TRUE(reduce_all(equal(rows_of(got.gradient, {1, 3}), 0)).item()) << bad;
      // Their weights count nothing either, NaN included.
      const Result weighted = result_of(loss, y, p, constant({1.0f, static_cast<float>(nan), 1.0f, 4.0f}));
      EXPECT_NEAR(weighted.value, want.value, 1e-6) << bad;
      EXPECT_EQ(weighted.weight, 2) << bad;
    }
    const Tensor none = fill({3}, ignored, i64), p = fill({3, 3}, nan, f32);
    EXPECT_EQ(result_of(loss, none, p, {}).value, 0);
  }
}

TEST(EmptyParts, HaveALossOfNothing) {
  for (const OneLoss& each : all_losses()) {
    const Tensor y = slice_axis(random_targets(each.targets, 3), 0, 0, 0, "rows");
    const Tensor p = slice_axis(random_prediction(each, 3), 0, 0, 0, "rows");
    for (const Tensor& weight : {Tensor(), zeros({0})}) {
      const Result got = result_of(each.loss, y, p, weight);
      EXPECT_EQ(got.value, 0) << each.name;
      EXPECT_EQ(got.weight, 0) << each.name;
      EXPECT_EQ(got.gradient.shape(), p.shape()) << each.name;
    }
  }
}

/// Parts of no rows and of no weight, in any order, among others: sums and gradients stay what they were.
TEST(EmptyParts, AddNothing) {
  Dense layer(2);
  layer.build({f32, {any_size, 3}});
  const Tensor x = random::normal({4, 3}, {.seed = 1}), y = random::normal({4, 2}, {.seed = 2});
  const MeanSquaredError loss_function;
  const auto part = [&](std::int64_t begin, std::int64_t rows, double weight, double scale = 1) {
    const Tensor a = slice_axis(x, 0, begin, rows, "rows") * scale, b = slice_axis(y, 0, begin, rows, "rows");
    GradientTape tape;
    const Loss loss = loss_function(b, layer(a), fill({rows}, weight, f32));
    return std::pair{loss, tape.gradient(loss, layer.trainable_variables())};
  };
  const auto sum_of = [&](const std::vector<std::pair<Loss, Gradients>>& parts) {
    Loss total;
    Gradients gradients;
    for (const auto& [loss, gradient] : parts) total += loss, gradients += gradient;
    return std::pair{total, gradients};
  };
  const auto [want, wanted] = sum_of({part(0, 2, 1), part(2, 2, 1)});
  const auto [got, gradients] =
      sum_of({part(0, 0, 1), part(0, 2, 1), part(1, 0, 1), part(1, 3, 0, nan), part(2, 2, 1), part(3, 0, 0)});
  EXPECT_EQ(got.item(), want.item());
  EXPECT_EQ(got.weight().item(), 4);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(bitwise_equal(gradients[i], wanted[i])) << i;
  // Nothing but such parts.
  const auto [nothing, none] = sum_of({part(0, 0, 1), part(0, 2, 0, nan)});
  EXPECT_EQ(nothing.item(), 0);
  for (std::size_t i = 0; i < none.size(); ++i) EXPECT_TRUE(reduce_all(equal(none[i], 0)).item()) << i;
}

TEST(EmptyParts, OfOpenSizes) {
  auto mean =
      function([](Tensor x) { return Loss::mean(square(x)).value(); }, {.input_signature = {{f32, {any_size}}}});
  EXPECT_EQ(mean(constant({1.0f, 3.0f})).item(), 5);
  EXPECT_EQ(mean(zeros({0})).item(), 0);
  EXPECT_EQ(mean(constant({2.0f})).item(), 4);
}

/// Statistics of no rows, or of places that all are masked, are none: the moving ones stay, and gradients are 0.
TEST(EmptyParts, LeaveBatchNormalizationAsItWas) {
  for (const bool open : {false, true}) {
    BatchNormalization layer;
    layer.build({f32, {any_size, 3}});
    const auto run = [&](const Tensor& x) {
      GradientTape tape;
      const Tensor y = layer(x, training);
      return tape.gradient(reduce_sum(square(y)), layer.trainable_variables(), {.unconnected = Unconnected::zero});
    };
    auto traced =
        function([&](Tensor x) { return reduce_sum(layer(x, training)); }, {.input_signature = {{f32, {any_size, 3}}}});
    const auto call = [&](const Tensor& x) {
      if (open) (void)traced(x).item();
      else (void)run(x)[0].to_vector<float>();
    };
    call(random::normal({5, 3}, {.seed = 4}));
    Tensors before;
    for (const Variable& variable : layer.variables()) before.push_back(variable.value());
    call(zeros({0, 3}));
    for (std::size_t i = 0; !open && i < 2; ++i) EXPECT_TRUE(reduce_all(equal(run(zeros({0, 3}))[i], 0)).item()) << i;
    std::size_t i = 0;
    for (const Variable& variable : layer.variables())
      EXPECT_TRUE(bitwise_equal(variable.value(), before[i++])) << variable.name() << open;
    call(random::normal({5, 3}, {.seed = 5}));
    EXPECT_FALSE(bitwise_equal(layer.variables()[2].value(), before[2]));
  }
}

TEST(EmptyParts, OfOtherNormalizationsAreEmpty) {
  for (const Module& given :
       {Module(LayerNormalization()), Module(GroupNormalization(1)), Module(RMSNormalization()),
        Module(UnitNormalization()), Module(Dropout(0.5)), Module(LSTM(2)), Module(MultiHeadAttention(1, 2))}) {
    Module layer = given;
    layer.build({f32, {any_size, 2, 3}});
    GradientTape tape;
    const Tensor y = layer(zeros({0, 2, 3}), training);
    const Gradients gradients =
        tape.gradient(reduce_sum(y), layer.trainable_variables(), {.unconnected = Unconnected::zero});
    EXPECT_EQ(y.shape()[0], 0);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      EXPECT_TRUE(reduce_all(equal(gradients[i], 0)).item()) << layer.layer_behind().kind() << ' ' << i;
  }
}

/// Every metric: weight 0 takes out NaN and labels that are no classes; a batch of nothing changes nothing.
TEST(Metrics, CountNothingOfWeightZero) {
  struct OneMetric {
    Metric metric;
    Targets targets;
  };
  const std::vector<OneMetric> all{
      {SparseCategoricalAccuracy(), Targets::labels},
      {CategoricalAccuracy(), Targets::shares},
      {SparseTopKCategoricalAccuracy({.k = 2}), Targets::labels},
      {TopKCategoricalAccuracy({.k = 2}), Targets::shares},
      {BinaryAccuracy(from_logits), Targets::shares},
      {MeanAbsoluteError(), Targets::numbers},
      {RootMeanSquaredError(), Targets::numbers},
      {LogCoshError(), Targets::numbers},
      {F1Score(classes, {.average = ClassAverage::macro}), Targets::shares},
      {FBetaScore(classes, {.average = ClassAverage::macro, .threshold = 0.5}), Targets::shares},
      {AUC(), Targets::shares},
      {Precision(), Targets::shares},
      {BinaryIoU(), Targets::shares},
      {R2Score(), Targets::numbers},
  };
  const Tensor weight = constant({1.0f, 0.0f, 2.0f, 0.0f}), out = equal(weight, 0);
  const std::vector<std::int64_t> left{0, 2};
  for (const OneMetric& each : all) {
    const Tensor y = random_targets(each.targets, 4), p = random::uniform({4, classes}, {.seed = 6});
    const auto weights_for = [&](const Tensor& w) {  // of F1Score: one an element
      return each.metric.name().ends_with("score") || each.metric.name() == "root_mean_squared_error"
                 ? broadcast_to(expand_dims(w, 1), {w.shape()[0], classes})
                 : w;
    };
    Metric want = each.metric, got = each.metric;
    want.update(rows_of(y, left), rows_of(p, left), weights_for(rows_of(weight, left)));
    const Tensor wrong = with_rows_of(y, out, is_floating(y.dtype()) ? nan : -5);
    got.update(wrong, with_rows_of(p, out, nan), weights_for(weight));
    EXPECT_NEAR(got.result(), want.result(), 1e-6) << want.name();
    got.update(rows_of(y, {}), rows_of(p, {}));
    got.update(rows_of(y, {}), rows_of(p, {}), weights_for(rows_of(weight, {})));
    EXPECT_NEAR(got.result(), want.result(), 1e-6) << want.name();
  }
  const Tensor classes_given = constant({0, 1, -7, 1}), seen = constant({0, 99, 1, 1});
  for (Metric metric : {Metric(MeanIoU(2)), Metric(IoU(2, {1}))}) {
    metric.update(classes_given, seen, constant({1.0f, 0.0f, 0.0f, 1.0f}));
    EXPECT_EQ(metric.result(), 1) << metric.name();
  }
  for (Metric metric : {Metric(AUC()), Metric(Precision()), Metric(Recall()), Metric(TruePositives())}) {
    Metric want = metric;
    const Tensor y = constant({0.0f, 1.0f, 1.0f, 0.0f}), p = constant({0.3f, 0.6f, static_cast<float>(nan), 0.7f});
    const Tensor w = constant({1.0f, 1.0f, 0.0f, 1.0f});
    metric.update(y, p, w);
    want.update(rows_of(y, {0, 1, 3}), rows_of(p, {0, 1, 3}), rows_of(w, {0, 1, 3}));
    EXPECT_EQ(metric.result(), want.result()) << metric.name();
  }
}

/// fit: examples of weight 0 are out, with all that their features and targets hold; also as a part of their own.
TEST(Training, GoesPastExamplesOfWeightZero) {
  const Tensor weight = constant({1.0f, 1.0f, 0.0f, 0.0f, 1.0f, 0.0f}), out = equal(weight, 0);
  const Tensor x = random::normal({6, 3}, {.seed = 1}), y = random::normal({6, 1}, {.seed = 2});
  const auto weights_after = [&](const Tensor& features, const Tensor& targets, const Tensor& w, std::int64_t parts) {
    set_seed(4);
    Sequential model{Dense(4, tanh), Dense(1)};
    SGD optimizer({.learning_rate = 0.1});
    fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(features, targets, w).batch(6),
        {.epochs = 3, .sample_weight = true, .micro_batch = parts, .verbose = false});
    Tensors values;
    for (const Variable& variable : model.variables()) values.push_back(variable.value());
    return values;
  };
  const std::vector<std::int64_t> left{0, 1, 4};
  const Tensors want = weights_after(rows_of(x, left), rows_of(y, left), rows_of(weight, left), 0);
  for (const double bad : {nan, inf, 5.0})
    for (const std::int64_t parts : {0, 2}) {
      const Tensors got = weights_after(with_rows_of(x, out, bad), with_rows_of(y, out, bad), weight, parts);
      for (std::size_t i = 0; i < want.size(); ++i)
        EXPECT_LE(reduce_max(abs(got[i] - want[i])).item(), 1e-5) << i << ' ' << bad << ' ' << parts;
    }
}

}  // namespace
}  // namespace gradus::left_out_test
