/// fit with checkpoints: what was interrupted anywhere and resumed in new objects ends in the bits of what was not.
#include <gtest/gtest.h>
#include "gradus/base/rooms.h"
#include "gradus/nn/normalization.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/train/callbacks.h"
#include "gradus/train/fit.h"
#include "tests/errors.h"
#include "tests/train/checkpoint_samples.h"

namespace gradus::resume_test {
namespace {

/// A training with everything that has state: noise, moving statistics, slots, a schedule or a plateau, shuffling.
struct Training {
  Sequential model{Dense(12, relu), BatchNormalization(), Dropout(0.3), Dense(1)};
  Adam optimizer;
  Dataset<2> training, validation;
  FitOptions options;

  static Dataset<2> data(std::uint64_t seed, std::int64_t rows) {
    const Tensor x = random::normal({rows, 5}, {.seed = seed});
    return data::from_tensor_slices(x, reduce_sum(x, {.axis = {1}, .keepdims = true}));
  }
  explicit Training(bool scheduled)
      : optimizer({.learning_rate = scheduled
                                        ? Schedule(CosineDecay({.initial_learning_rate = 0.05, .decay_steps = 40}))
                                        : Schedule(0.05)}),
        training(data(1, 70).shuffle({.seed = 4}).batch(16).prefetch()),
        validation(data(2, 40).batch(40)),
        options{.epochs = 8,
                .metrics = {MeanAbsoluteError()},
                .validation = validation,
                .callbacks = {early_stopping(
                    {.patience = 3, .restore_best_weights = true, .monitor = "validation_mean_absolute_error"})},
                .verbose = false} {
    if (!scheduled)
      options.callbacks.push_back(reduce_lr_on_plateau({.factor = 0.5, .patience = 1, .min_delta = 0.02}));
  }
  History run() { return fit(model, optimizer, MeanSquaredError(), training, options); }
};

void expect_same(const Training& a, const Training& b) {
  const Variables of_a = a.model.variables() + a.optimizer.variables(),
                  of_b = b.model.variables() + b.optimizer.variables();
  ASSERT_EQ(of_a.size(), of_b.size());
  for (std::size_t i = 0; i < of_a.size(); ++i)
    EXPECT_TRUE(bitwise_equal(of_a[i].value(), of_b[i].value())) << of_a[i].name();
}

TEST(Resume, FromAnyStepInTheBitsOfTheUndisturbed) {
  // Stopped after so many steps, 5 an epoch: within epochs, at their ends, twice.
  const std::vector<std::vector<std::int64_t>> all_stops{{3}, {5}, {7, 9}, {10, 23}};
  for (const bool scheduled : {false, true}) {
    set_seed(11);
    Training straight(scheduled);
    const History whole = straight.run();
    for (const std::vector<std::int64_t>& stops : all_stops) {
      const TestDirectory directory("resume");
      set_seed(11);
      for (const std::int64_t stop : stops) {
        Training part(scheduled);
        part.options.checkpoints = {.directory = directory};
        part.options.callbacks.push_back(
            {.on_step_end = [stop](const StepLog& log) { log.stop = log.stop || log.step == stop; }});
        part.run();
        set_seed(99);  // whatever happens between
      }
      Training rest(scheduled);
      rest.options.checkpoints = {.directory = directory};
      const History history = rest.run();
      expect_same(straight, rest);
      ASSERT_GT(history.loss.size(), 0u);
      const auto skipped = static_cast<std::ptrdiff_t>(whole.loss.size() - history.loss.size());
      EXPECT_EQ(skipped, stops.back() / 5);
      EXPECT_EQ(history.loss, std::vector<double>(whole.loss.begin() + skipped, whole.loss.end()));
      EXPECT_EQ(history["mean_absolute_error"], std::vector<double>(whole["mean_absolute_error"].begin() + skipped,
                                                                    whole["mean_absolute_error"].end()));
    }
  }
}

TEST(Resume, WhatIsDoneIsNotDoneAgain) {
  const TestDirectory directory("resume_done");
  set_seed(11);
  Training first(false);
  first.options.checkpoints = {.directory = directory};
  const History history = first.run();
  const std::size_t epochs = history.loss.size();
  Training again(false);
  again.options.checkpoints = {.directory = directory};
  EXPECT_EQ(again.run().loss, history.loss) << "as it was recorded";
  EXPECT_EQ(again.optimizer.iterations(), static_cast<std::int64_t>(epochs) * 5);
  expect_same(first, again);  // the best weights included
}

TEST(Resume, EveryFewSteps) {
  const TestDirectory directory("resume_every");
  set_seed(11);
  Training straight(true);
  straight.run();
  set_seed(11);
  Training failing(true);
  failing.options.checkpoints = {.directory = directory, .every_steps = 2};
  failing.options.callbacks.push_back({.on_step_end = [](const StepLog& log) {
    if (log.step == 13) throw Unavailable("the power");
  }});
  EXPECT_THROW(failing.run(), Unavailable);
  Training rest(true);
  rest.options.checkpoints = {.directory = directory, .every_steps = 2};
  std::int64_t first = 0;
  rest.options.callbacks.push_back({.on_step_end = [&](const StepLog& log) {
    if (first == 0) first = log.step;
  }});
  rest.run();
  EXPECT_EQ(first, 13) << "saved after step 12, the second of the third epoch";
  expect_same(straight, rest);
}

TEST(Resume, TrialsLeaveTheDiskAlone) {
  const TestDirectory directory("resume_trial");
  Training training(true);
  training.options.fast_dev_run = 2;
  training.options.checkpoints = {.directory = directory};
  training.options.callbacks.push_back(csv_logger(directory.path() / "log.csv"));
  training.options.callbacks.push_back(model_checkpoint(directory.path() / "best.safetensors"));
  const History history = training.run();
  EXPECT_EQ(history.loss.size(), 1u);
  EXPECT_EQ(training.optimizer.iterations(), 2);
  EXPECT_FALSE(std::filesystem::exists(directory.path()));
}

TEST(Resume, AFullDiskEndsTheTraining) {
  Training training(true);
  training.options.checkpoints = {.directory = "/proc/no/such/place"};
  EXPECT_THROW(training.run(), Unavailable);
}

}  // namespace
}  // namespace gradus::resume_test
