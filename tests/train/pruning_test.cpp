/// Pruning in fit: the schedule, the steps at which masks change, and that nothing brings a weight back.
#include "gradus/base/rooms.h"
#include "gradus/train/pruning.h"
#include <gtest/gtest.h>
#include <cmath>
#include <map>
#include "gradus/nn/model.h"
#include "gradus/nn/normalization.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/train/fit.h"
#include "tests/errors.h"
#include "tests/train/checkpoint_samples.h"

namespace gradus::pruning_test {
namespace {

TEST(PruningSchedule, IsThatOfTheToolkit) {
  // tensorflow_model_optimization.sparsity.keras.PolynomialDecay(0.2, 0.8, 100, 300, power)
  const PruningOptions cubic{.initial_sparsity = 0.2, .final_sparsity = 0.8, .begin_step = 100, .end_step = 300};
  PruningOptions linear = cubic;
  linear.power = 1;
  const std::vector<std::tuple<std::int64_t, double, double>> expected{
      {0, 0, 0},         {99, 0, 0},
      {100, 0.2, 0.2},   {150, 0.8 - 0.6 * 0.421875, 0.35},
      {200, 0.725, 0.5}, {299, 0.8 - 0.6 * 0.005 * 0.005 * 0.005, 0.797},
      {300, 0.8, 0.8},   {1000, 0.8, 0.8}};
  for (const auto& [step, of_cubic, of_linear] : expected) {
    EXPECT_NEAR(sparsity_at(cubic, step), of_cubic, 1e-15) << step;
    EXPECT_NEAR(sparsity_at(linear, step), of_linear, 1e-15) << step;
  }
  const PruningOptions constant{.initial_sparsity = 0.5, .final_sparsity = 0.5, .begin_step = 7};
  for (const auto& [step, share] : std::map<std::int64_t, double>{{0, 0}, {6, 0}, {7, 0.5}, {100, 0.5}})
    EXPECT_EQ(sparsity_at(constant, step), share);
}

struct Training {
  Sequential model{Dense(20, relu), BatchNormalization(), Dense(1)};
  Adam optimizer{{.learning_rate = 0.01, .weight_decay = 0.01, .use_ema = true, .ema_momentum = 0.9}};
  Dataset<2> data = [] {
    const Tensor x = random::normal({80, 10}, {.seed = 1});
    return data::from_tensor_slices(x, reduce_sum(x, {.axis = {1}, .keepdims = true})).shuffle({.seed = 3}).batch(16);
  }();  // 5 steps an epoch

  History run(FitOptions options) {
    options.verbose = false;
    return fit(model, optimizer, MeanSquaredError(), data, std::move(options));
  }
};

TEST(Pruning, MasksChangeAtTheStepsOfTheSchedule) {
  const PruningOptions options{
      .initial_sparsity = 0.1, .final_sparsity = 0.7, .begin_step = 3, .end_step = 12, .frequency = 4};
  Training training;
  std::map<std::int64_t, double> seen;
  Callback look{.on_step_end = [&](const StepLog& log) { seen[log.step] = sparsity(training.model); }};
  training.run({.epochs = 4, .callbacks = {prune_low_magnitude(training.model, options), look}});
  double now = 0;
  for (std::int64_t step = 1; step <= 20; ++step) {
    if (step == 3 || step == 7 || step == 11 || step == 12) now = sparsity_at(options, step);
    EXPECT_NEAR(seen[step], now, 1.0 / 200) << step;
  }
  EXPECT_NEAR(sparsity(training.model), 0.7, 1.0 / 200);
  for (const Variable& variable : training.model.variables())
    EXPECT_EQ(variable.mask().defined(), variable.name().ends_with("kernel")) << variable.name();
}

TEST(Pruning, StartsAtOnceAndHoldsInLaterTrainings) {
  Training training;
  training.run({.epochs = 2});
  const Callback prune = prune_low_magnitude(training.model, {.initial_sparsity = 0.5, .final_sparsity = 0.5});
  double first = 0;
  Callback look{.on_step_end = [&](const StepLog& log) {
    if (log.step == 11) first = sparsity(training.model);
  }};
  training.run({.epochs = 1, .callbacks = {prune, look}});
  EXPECT_DOUBLE_EQ(first, 0.5) << "before the first step of a training that begins after begin_step";
  Variables kernels = prunable_variables(training.model);
  const Tensor mask = kernels[0].mask();
  training.run({.epochs = 2});
  SGD another({.learning_rate = 0.01, .momentum = 0.9});
  fit(training.model, another, MeanSquaredError(), training.data, {.epochs = 2, .verbose = false});
  EXPECT_DOUBLE_EQ(sparsity(training.model), 0.5);
  EXPECT_TRUE(bitwise_equal(kernels[0].mask(), mask));
  Sequential copy = training.model;
  Lion lion({.learning_rate = 0.01});
  fit(copy, lion, MeanSquaredError(), training.data, {.epochs = 1, .verbose = false});
  EXPECT_DOUBLE_EQ(sparsity(copy), 0.5);
}

TEST(Pruning, CompilesTheStepOnce) {
  const auto variants = [](bool pruned) {
    Training t;
    std::int64_t shapes = 0;  // of what the model is called with, as often as it is traced
    t.model = Sequential{Lambda([&shapes](const Tensor& x) { return ++shapes, x; }), Dense(20, relu), Dense(1)};
    FitOptions options{.epochs = 6};
    if (pruned)
      options.callbacks = {prune_low_magnitude(t.model, {.final_sparsity = 0.8, .end_step = 25, .frequency = 1})};
    t.run(std::move(options));
    EXPECT_NEAR(sparsity(t.model), pruned ? 0.8 : 0, 1.0 / 200);
    return shapes;
  };
  EXPECT_EQ(variants(true), variants(false));
}

TEST(Pruning, ResumesInTheBitsOfTheUndisturbed) {
  const auto prune = [](Training& t) {
    return prune_low_magnitude(t.model, {.final_sparsity = 0.8, .end_step = 17, .frequency = 4});
  };
  const auto all_of = [](const Training& t) { return t.model.variables() + t.optimizer.variables(); };
  set_seed(5);
  Training straight;
  straight.run({.epochs = 5, .callbacks = {prune(straight)}});
  for (const std::int64_t stop : {2, 4, 5, 8, 13, 17, 20}) {
    const TestDirectory directory("pruning");
    set_seed(5);
    Training part;
    Callback stopping{.on_step_end = [stop](const StepLog& log) { log.stop = log.stop || log.step == stop; }};
    part.run({.epochs = 5, .callbacks = {prune(part), stopping}, .checkpoints = {.directory = directory}});
    set_seed(99);
    Training rest;
    rest.run({.epochs = 5, .callbacks = {prune(rest)}, .checkpoints = {.directory = directory}});
    const Variables a = all_of(straight), b = all_of(rest);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_TRUE(bitwise_equal(a[i].value(), b[i].value())) << a[i].name() << " stopped at " << stop;
      ASSERT_EQ(a[i].mask().defined(), b[i].mask().defined()) << a[i].name();
      if (!a[i].mask().defined()) continue;
      EXPECT_TRUE(bitwise_equal(a[i].mask(), b[i].mask())) << a[i].name();
    }
  }
}

TEST(Pruning, CheckpointsBringMasksAndTheirAbsence) {
  const TestDirectory directory("masks");
  Numbered plain, pruned;
  prune_to(pruned.model, 0.5);
  Checkpoints of_pruned({.directory = directory}, pruned.model, pruned.optimizer);
  of_pruned.save(1);
  Checkpoints of_plain({.directory = directory}, plain.model, plain.optimizer);
  ASSERT_TRUE(of_plain.restore());
  plain.set(3);
  EXPECT_DOUBLE_EQ(sparsity(plain.model), 0.5);
  EXPECT_TRUE(bitwise_equal(plain.model.variables()[0].mask(), pruned.model.variables()[0].mask()));
  Numbered dense;
  Checkpoints({.directory = directory}, dense.model, dense.optimizer).save(2);
  ASSERT_TRUE(of_pruned.restore());
  EXPECT_FALSE(pruned.model.variables()[0].mask().defined());
  EXPECT_TRUE(bitwise_equal(pruned.model.variables()[0].value(), dense.model.variables()[0].value()));
}

TEST(Pruning, GoesTogetherWithLossScalingPartsAndBestWeights) {
  const Tensor x = random::normal({64, 8}, {.seed = 1}), y = random::integers({64}, {.high = 3, .seed = 2});
  const auto data = data::from_tensor_slices(x, y).batch(16);
  Sequential model({Dense(16, relu), Dense(3)}, {.policy = mixed_float16});
  SGD optimizer({.learning_rate = 0.1, .momentum = 0.9, .global_clipnorm = 1});
  fit(model, optimizer, SparseCategoricalCrossentropy(from_logits), data,
      {.epochs = 4,
       .callbacks = {early_stopping({.patience = 10, .restore_best_weights = true}),
                     prune_low_magnitude(model, {.final_sparsity = 0.5, .end_step = 8, .frequency = 2})},
       .micro_batch = 6,
       .verbose = false});
  EXPECT_NEAR(sparsity(model), 0.5, 0.01) << "best weights of an earlier epoch are masked, too";
}

struct Weighted {
  Variable w{random::normal({10, 1}, {.seed = 1}), "w"};
  Tensor operator()(const Tensor& x) const { return matmul(x, w); }
};

TEST(Pruning, OfNamedVariables) {
  Model<Weighted> model;
  Training training;
  SGD optimizer({.learning_rate = 0.01});
  fit(model, optimizer, MeanSquaredError(), training.data,
      {.epochs = 2,
       .callbacks = {prune_low_magnitude(Variables{model->w}, {.final_sparsity = 0.6, .end_step = 9, .frequency = 3})},
       .verbose = false});
  EXPECT_DOUBLE_EQ(sparsity(model), 0.6);
}

TEST(Pruning, RefusesOptionsThatMakeNoSense) {
  Sequential model{Dense(2)};
  const PruningOptions good{.final_sparsity = 0.5, .end_step = 10};
  const auto refuses = [&](auto change, const char* part) {
    PruningOptions options = good;
    change(options);
    expect_says(error_of<InvalidArgument>([&] { prune_low_magnitude(model, options); }), part);
  };
  refuses([](PruningOptions& o) { o.final_sparsity = 1; }, "final_sparsity");
  refuses([](PruningOptions& o) { o.final_sparsity = 0; }, "final_sparsity");
  refuses([](PruningOptions& o) { o.final_sparsity = std::nan(""); }, "final_sparsity");
  refuses([](PruningOptions& o) { o.initial_sparsity = 0.6; }, "initial_sparsity");
  refuses([](PruningOptions& o) { o.initial_sparsity = -0.1; }, "initial_sparsity");
  refuses([](PruningOptions& o) { o.begin_step = -1; }, "begin_step");
  refuses([](PruningOptions& o) { o.begin_step = 10; }, "end_step");
  refuses([](PruningOptions& o) { o.frequency = 0; }, "frequency");
  refuses([](PruningOptions& o) { o.power = 0; }, "power");
}

}  // namespace
}  // namespace gradus::pruning_test
