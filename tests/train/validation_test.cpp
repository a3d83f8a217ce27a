/// Options of fit about what is validated and how examples count: validation_split, validation_freq, averages in the
/// validation, Keras's names of validation numbers, weights of classes.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <fstream>
#include "gradus/nn/layers.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/callbacks.h"
#include "gradus/train/fit.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::validation_test {
namespace {

/// Examples 0 ... 49 of which each says its number.
struct Numbered {
  Tensor x = cast(reshape(range(50), {50, 1}), f32), y = 2 * x;
  Sequential model{Dense(1)};
  SGD optimizer{{.learning_rate = 1e-5}};
};

/// The mean numbers of the examples that a fit with validation_split = 0.2 trains on, and of those that it validates.
std::pair<double, double> means_of_parts(const Dataset<2>& dataset) {
  Numbered numbered;
  const auto step = [](Tensor x, Tensor) { return Logs{{"mean", Loss::mean(x)}}; };
  const History history = fit(numbered.model, numbered.optimizer, TrainingSteps{.train = step, .test = step}, dataset,
                              {.epochs = 3, .validation_split = 0.2, .verbose = false});
  return {history["mean"].back(), history["val_mean"].back()};
}

TEST(Validation, SplitTakesTheLastExamplesWhateverTheirOrder) {
  const Numbered numbered;
  const auto examples = data::from_tensor_slices(numbered.x, numbered.y);
  const auto same = [](Tensor x, Tensor y) { return std::pair{x, y}; };
  for (const Dataset<2>& dataset :
       {examples.batch(8), examples.shuffle().batch(8), examples.batch(7).shuffle().prefetch(2),
        examples.shuffle().map(same).batch(9).cache(), examples.repeat(2).batch(8), examples.take(50).batch(8)}) {
    const auto [trained, validated] = means_of_parts(dataset);
    EXPECT_NEAR(trained, 19.5, 1e-6);  // of 0 ... 39
    EXPECT_NEAR(validated, 44.5, 1e-6);
  }
  // A cache keeps a shuffled order, whose last examples they are.
  const auto [trained, validated] = means_of_parts(examples.shuffle().cache().batch(8));
  EXPECT_NEAR(40 * trained + 10 * validated, 49 * 25, 1e-4);
}

TEST(Validation, SplitIsTakeAndSkip) {
  Numbered split, apart;
  const auto examples = data::from_tensor_slices(split.x, split.y);
  const auto run = [&](Numbered& of, const Dataset<2>& dataset, FitOptions options) {
    options.epochs = 3;
    options.verbose = false;
    set_seed(6);
    return fit(of.model, of.optimizer, MeanSquaredError(), dataset, options);
  };
  const History a = run(split, examples.shuffle({.seed = 1}).batch(8), {.validation_split = 0.3});
  const History b =
      run(apart, examples.take(35).shuffle({.seed = 1}).batch(8), {.validation = examples.skip(35).batch(8)});
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_NEAR(a.validation_loss.back(), b.validation_loss.back(), 1e-6 * b.validation_loss.back());
}

TEST(Validation, SplitOfWhatCannotBeDivided) {
  Numbered numbered;
  const auto examples = data::from_tensor_slices(numbered.x, numbered.y);
  const auto refuses = [&](const Dataset<2>& dataset, FitOptions options, std::initializer_list<const char*> parts) {
    options.verbose = false;
    expect_error<InvalidArgument>(
        [&] { fit(numbered.model, numbered.optimizer, MeanSquaredError(), dataset, options); }, parts);
  };
  const auto half = [](Tensor x, Tensor) { return x[0] < 25; };
  refuses(examples.filter(half).batch(8), {.validation_split = 0.2}, {"validation_split", "filter", ".validation"});
  const auto generated = data::from_generator<2>(std::array<Spec, 2>{Spec{f32, {1}}, Spec{f32, {1}}},
                                                 [i = 0]() mutable -> std::optional<std::pair<Tensor, Tensor>> {
                                                   if (i++ == 20) return std::nullopt;
                                                   return std::pair{ones({1}), ones({1})};
                                                 });
  refuses(generated.batch(4), {.validation_split = 0.2}, {"validation_split", "read"});
  refuses(examples.batch(8), {.validation_split = 1e-20}, {"50 examples", "none for validation"});
  refuses(examples.batch(8), {.validation_split = 0.99}, {"50 examples", "none for training"});
  refuses(examples.batch(8), {.validation_split = 1}, {"validation_split"});
  refuses(examples.batch(8), {.validation = examples.batch(8), .validation_split = 0.2}, {"both given"});
}

TEST(Validation, FrequencyAndTheNamesOfKeras) {
  Numbered numbered;
  const auto dataset = data::from_tensor_slices(numbered.x, numbered.y).batch(25);
  const TestDirectory directory("validation_freq");
  std::filesystem::create_directories(directory.path());
  std::vector<int> validated;
  const Callback notes{.on_epoch_end = [&](const EpochLog& log) {
    if (log.validation_loss) validated.push_back(log.epoch);
    EXPECT_EQ(log.absent.size(), log.validation_loss ? 0u : 2u);
  }};
  const auto run = [&](ValidationFrequency frequency) {
    validated.clear();
    return fit(numbered.model, numbered.optimizer, MeanSquaredError(), dataset,
               {.epochs = 6,
                .metrics = {MeanAbsoluteError()},
                .validation = dataset,
                .validation_freq = std::move(frequency),
                .callbacks = {notes, early_stopping({.patience = 4, .monitor = "val_mean_absolute_error"}),
                              csv_logger(directory.path() / "log.csv")},
                .verbose = false});
  };
  const History second = run(2);
  EXPECT_EQ(validated, (std::vector<int>{1, 3, 5}));
  EXPECT_EQ(second["val_loss"].size(), 3u);
  EXPECT_EQ(second["val_loss"], second.validation_loss);
  EXPECT_EQ(&second["val_mean_absolute_error"], &second["validation_mean_absolute_error"]);
  EXPECT_EQ(second["loss"].size(), 6u);
  run({1, 2, 5});
  EXPECT_EQ(validated, (std::vector<int>{0, 1, 4}));
  std::ifstream log(directory.path() / "log.csv");
  for (std::string line; std::getline(log, line);) EXPECT_EQ(std::ranges::count(line, ','), 6) << line;
  expect_error<InvalidArgument>([&] { run(0); }, {"validation_freq"});
  expect_error<InvalidArgument>([&] { run({0, 1}); }, {"validation_freq", "numbered from 1"});
  const History plain = fit(numbered.model, numbered.optimizer, MeanSquaredError(), dataset, {.verbose = false});
  expect_error<InvalidArgument>([&] { (void)plain["val_loss"]; }, {"val_loss", "loss"});
}

TEST(Validation, FrequencyIsPartOfARecordedHistory) {
  const TestDirectory directory("recorded_freq");
  const auto run = [&](int epochs, ValidationFrequency frequency) {
    Numbered numbered;
    const auto dataset = data::from_tensor_slices(numbered.x, numbered.y).batch(25);
    return fit(numbered.model, numbered.optimizer, MeanSquaredError(), dataset,
               {.epochs = epochs,
                .metrics = {MeanAbsoluteError()},
                .validation = dataset,
                .validation_freq = std::move(frequency),
                .checkpoints = {.directory = directory},
                .verbose = false});
  };
  const History half = run(3, 2), rest = run(6, 2), whole = run(6, 2), other = run(6, 1);
  EXPECT_EQ(half["val_loss"].size() + rest["val_loss"].size(), 3u);
  EXPECT_EQ(whole.loss.size(), 6u);
  EXPECT_EQ(whole["val_loss"].size(), 3u);
  EXPECT_EQ(whole["val_mean_absolute_error"].back(), rest["val_mean_absolute_error"].back());
  EXPECT_TRUE(std::isnan(other["val_loss"].back()));  // of every epoch they were not recorded
}

TEST(ClassWeights, OfPartsAndShardsOfABatch) {
  const Tensor x = random::normal({60, 4}, {.seed = 1});
  const auto dataset = data::from_tensor_slices(x, argmax(x)).batch(20);
  const auto run = [&](FitOptions options) {
    set_seed(3);
    Sequential model{Dense(4)};
    SGD optimizer({.learning_rate = 0.1});
    options.epochs = 2;
    options.class_weight = {{0, 0.5}, {1, 1}, {2, 2}, {3, 0}};
    options.verbose = false;
    return fit(model, optimizer, SparseCategoricalCrossentropy(from_logits), dataset, options).loss[1];
  };
  const double whole = run({});
  EXPECT_NEAR(run({.micro_batch = 6}), whole, 1e-5);
  EXPECT_NEAR(run({.strategy = MirroredStrategy({.devices = {cpu(0), cpu(1), cpu(2)}})}), whole, 1e-5);
  EXPECT_EQ(run({.function = {.run_eagerly = true}}), whole);
}

TEST(Validation, AveragesAreInTheModelWhileItIsValidated) {
  Numbered numbered;
  const auto dataset = data::from_tensor_slices(numbered.x / 50, numbered.y).batch(10);
  const auto run = [&](bool use_ema, std::vector<Callback> callbacks) {
    set_seed(2);
    Sequential model{Dense(1)};
    SGD optimizer({.learning_rate = 0.1, .use_ema = use_ema, .ema_momentum = 0.9});
    return fit(model, optimizer, MeanSquaredError(), dataset,
               {.epochs = 3, .validation = dataset, .callbacks = std::move(callbacks), .verbose = false});
  };
  std::vector<double> expected;
  const Callback validates{.on_epoch_end = [&](const EpochLog& log) {
    const Variables variables = log.model.trainable_variables(), averages = log.optimizer.averages();
    const Tensor kernel = averages[0].value(), bias = averages[1].value();
    ASSERT_EQ(variables.size(), averages.size());
    expected.push_back(reduce_mean(square(numbered.x / 50 * reshape(kernel, {1, 1}) + bias - numbered.y)).item());
  }};
  const History averaged = run(true, {swap_ema_weights(), validates}), plain = run(true, {});
  EXPECT_EQ(averaged.loss, plain.loss);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(averaged.validation_loss[i], expected[i], 1e-4 * expected[i]);
    EXPECT_NE(averaged.validation_loss[i], plain.validation_loss[i]);
  }
  expect_error<InvalidArgument>([&] { run(false, {swap_ema_weights()}); }, {"use_ema"});
}

TEST(ClassWeights, AreSampleWeightsOfTheLossAlone) {
  const Tensor x = random::normal({60, 4}, {.seed = 1}), labels = argmax(x);
  const Tensor table = constant({0.5f, 1.0f, 2.0f, 4.0f});
  const SparseCategoricalCrossentropy sparse(from_logits);
  const CategoricalCrossentropy one_hot_loss(from_logits);
  const auto run = [&](const auto& loss, const auto& dataset, FitOptions options) {
    set_seed(3);
    Sequential model{Dense(4)};
    SGD optimizer({.learning_rate = 0.1});
    options.epochs = 2;
    options.verbose = false;
    return fit(model, optimizer, loss, dataset, options);
  };
  const auto plain = data::from_tensor_slices(x, labels).batch(16);
  const ClassWeights weights{{0, 0.5}, {1, 1}, {2, 2}, {3, 4}};
  const History by_class = run(sparse, plain,
                               {.metrics = {SparseCategoricalAccuracy()},
                                .weighted_metrics = {SparseCategoricalAccuracy()},
                                .validation = plain,
                                .class_weight = weights});
  const History by_sample = run(sparse, data::from_tensor_slices(x, labels, gather(table, labels)).batch(16),
                                {.metrics = {SparseCategoricalAccuracy()}, .sample_weight = true});
  EXPECT_EQ(by_class.loss, by_sample.loss);
  EXPECT_EQ(by_class["weighted_sparse_categorical_accuracy"], by_sample["sparse_categorical_accuracy"]);
  EXPECT_NE(by_class["weighted_sparse_categorical_accuracy"], by_class["sparse_categorical_accuracy"]);
  EXPECT_EQ(by_class["val_weighted_sparse_categorical_accuracy"], by_class["val_sparse_categorical_accuracy"]);
  const auto of_one_hot = data::from_tensor_slices(x, one_hot(labels, 4)).batch(16);
  EXPECT_NEAR(run(one_hot_loss, of_one_hot, {.class_weight = weights}).loss[1], by_class.loss[1], 1e-6);
}

TEST(ClassWeights, OfTwoClassesInAColumn) {
  const Tensor x = random::normal({40, 3}, {.seed = 1}),
               y = cast(reduce_sum(x, {.axis = {1}, .keepdims = true}) > 1, f32);
  const auto run = [&](const auto& dataset, FitOptions options) {
    set_seed(3);
    Sequential model{Dense(1)};
    SGD optimizer({.learning_rate = 0.1});
    options.verbose = false;
    return fit(model, optimizer, BinaryCrossentropy(from_logits), dataset, options).loss;
  };
  EXPECT_EQ(run(data::from_tensor_slices(x, y).batch(8), {.class_weight = {{0, 1}, {1, 5}}}),
            run(data::from_tensor_slices(x, y, squeeze(1 + 4 * y, {1})).batch(8), {.sample_weight = true}));
}

TEST(ClassWeights, Mistakes) {
  const Tensor x = random::normal({40, 4}, {.seed = 1});
  const auto dataset = data::from_tensor_slices(x, argmax(x)).batch(8);
  const auto weighted = data::from_tensor_slices(x, argmax(x), ones({40})).batch(8);
  Sequential model{Dense(4)};
  SGD optimizer;
  const SparseCategoricalCrossentropy loss(from_logits);
  const auto refuses = [&](const auto& data, FitOptions options, std::initializer_list<const char*> parts) {
    options.verbose = false;
    expect_error<InvalidArgument>([&] { fit(model, optimizer, loss, data, options); }, parts);
  };
  refuses(dataset, {.class_weight = {{0, 1}, {2, 1}}}, {"class_weight", "class 2", "none for class 1"});
  refuses(dataset, {.class_weight = {{0, 1}, {1, -1}}}, {"class 1", "-1"});
  refuses(dataset, {.class_weight = {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}}},
          {"class 4 does not occur", "4 classes, 0 to 3"});
  refuses(dataset, {.class_weight = {{0, 1}, {1, 1}, {2, 1}}}, {"class 3 has no weight", "4 classes"});
  refuses(weighted, {.sample_weight = true, .class_weight = {{0, 1}, {1, 1}, {2, 1}, {3, 1}}},
          {"class_weight and sample_weight"});
}

}  // namespace
}  // namespace gradus::validation_test
