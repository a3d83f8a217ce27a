/// A resumed training gives each callback the state of its own kind, wherever it stands in the list, and one line names
/// callbacks of program and checkpoint that have no partner.
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/gradus.h"
#include "gradus/train/checkpoint_directory.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::resumed_callbacks_test {
namespace {

Dataset<2> data() {
  const Tensor x = random::normal({32, 3}, {.seed = 1});
  return data::from_tensor_slices(x, reduce_sum(x, {.axis = {1}, .keepdims = true})).batch(8);
}

/// A callback of a user's own, which counts the epochs of the whole training.
Callback counting(std::string name, const Variable& count) {
  Variables state;
  state.add(count);
  return {.on_epoch_end = [state](const EpochLog&) { state[0].assign(state[0].value() + 1); },
          .on_train_begin = [state](const TrainBegin&) { state[0].assign(zeros({}, f64)); },
          .variables = [state] { return state; },
          .name = std::move(name)};
}
Variable count_of(const char* name) { return Variable(zeros({}, f64), name, {.trainable = false}); }

struct Outcome {
  double rate;
  std::int64_t steps;
  std::string said;
};

/// Trains to `epochs` with these callbacks, by a rate so large that losses do not fall.
Outcome run(std::vector<Callback> callbacks, int epochs, const std::filesystem::path& directory, bool verbose = false) {
  set_seed(1);
  Sequential model{Dense(1)};
  SGD optimizer({.learning_rate = 1e-12});
  testing::internal::CaptureStderr();
  fit(model, optimizer, MeanSquaredError(), data(),
      {.epochs = epochs,
       .callbacks = std::move(callbacks),
       .checkpoints = {.directory = directory},
       .verbose = verbose});
  return {optimizer.learning_rate(), optimizer.iterations(), testing::internal::GetCapturedStderr()};
}

// Nothing improves by 1, so patience counts epochs.
Callback plateau(int patience) {
  return reduce_lr_on_plateau({.factor = 0.5, .patience = patience, .min_delta = 1, .min_lr = 0});
}
Callback stopping(int patience, std::string monitor = {}) {
  return early_stopping({.patience = patience, .min_delta = 1e6, .monitor = std::move(monitor)});
}

TEST(ResumedCallbacks, FindTheirStateByNameWhereverTheyStand) {
  for (const bool swapped : {false, true}) {
    const TestDirectory directory("resumed_callbacks");
    const auto callbacks = [&](bool turned) {
      std::vector<Callback> all{stopping(5), plateau(3), model_checkpoint(directory.path() / "weights.safetensors")};
      if (turned) std::ranges::reverse(all);
      return all;
    };
    run(callbacks(false), 3, directory.path() / "run");
    const Outcome resumed = run(callbacks(swapped), 20, directory.path() / "run");
    EXPECT_EQ(resumed.said, "") << swapped;
    // The first epoch improves on nothing known before; then 5 epochs of patience.
    EXPECT_EQ(resumed.steps, 6 * 4) << swapped;
    EXPECT_EQ(resumed.rate, 0.5e-12) << swapped << ": after the fourth epoch, not again by the sixth";
  }
}

TEST(ResumedCallbacks, OfOneKindGoByTheirMonitorThenInOrder) {
  const TestDirectory directory("resumed_callbacks");
  const Variable a = count_of("n"), b = count_of("n"), c = count_of("n");
  run({counting("epochs", a), stopping(50, "loss"), counting("callback", b)}, 3, directory.path());
  const auto count = [](const Variable& of) { return of.value().item(); };
  const Outcome swapped =
      run({counting("callback", b), counting("epochs", a), stopping(50, "loss")}, 4, directory.path());
  EXPECT_EQ(count(a), 4);
  EXPECT_EQ(count(b), 4);
  EXPECT_EQ(swapped.said, "");
  run({counting("epochs", a), counting("epochs", b), counting("epochs", c)}, 6, directory.path());
  EXPECT_EQ(count(a), 6) << "the first of its name";
  EXPECT_EQ(count(b), 2) << "a second one is new";
  EXPECT_EQ(count(c), 2);
  const Outcome second = run({counting("epochs", a), counting("epochs", b)}, 7, directory.path());
  EXPECT_EQ(count(b), 3);
  expect_says(second.said, "epochs#3");
}

TEST(ResumedCallbacks, WithoutAPartnerAreNamedInTheLine) {
  const TestDirectory directory("resumed_callbacks");
  run({stopping(9), plateau(9)}, 2, directory.path());
  const Outcome other =
      run({plateau(9), stopping(9, "loss"), csv_logger(directory.path() / "log.csv")}, 3, directory.path());
  EXPECT_EQ(
      other.said,
      text("gradus: the training of ", directory.path().string(),
           " goes on after step 8 in epoch 3 of 3; callbacks that start from the beginning, since the checkpoint has "
           "no state of "
           "them: early_stopping of loss; state in the checkpoint that is not used, since the program has no such "
           "callback: early_stopping\n"));
}

/// Checkpoints of earlier versions have callbacks by number.
TEST(ResumedCallbacks, OfEarlierVersionsGoByTheirNumber) {
  const TestDirectory directory("resumed_callbacks");
  const Variable first = count_of("n"), second = count_of("n");
  run({counting("one", first), counting("two", second)}, 3, directory.path());
  const CheckpointDirectory files({.directory = directory.path()});
  std::vector<std::string> damaged;
  auto contents = files.read_newest(damaged);
  ASSERT_TRUE(contents.has_value());
  int renamed = 0;
  for (NamedArray& array : contents->arrays)
    for (const auto& [name, number] : {std::pair<std::string, std::string>{"one", "0"}, {"two", "1"}, {"", "2"}})
      if (array.name == text("callback/", name, "/n")) array.name = text("callback_", number, "/n"), ++renamed;
  ASSERT_EQ(renamed, 2);
  files.write(*contents);
  EXPECT_EQ(run({counting("three", first)}, 4, directory.path()).said,
            text("gradus: the training of ", directory.path().string(),
                 " goes on after step 12 in epoch 4 of 4; state in the checkpoint that is not used, since the program "
                 "has no such callback: callback_1\n"));
  EXPECT_EQ(first.value().item(), 4);
}

/// A metric of several results has a history for each.
TEST(ResumedMetrics, OfSeveralClassesKeepTheirHistories) {
  const TestDirectory directory("resumed_callbacks");
  const Tensor x = random::normal({32, 3}, {.seed = 1}), y = one_hot(argmax(x), 3);
  const auto train = [&](int epochs) {
    set_seed(1);
    Sequential model{Dense(3, softmax)};
    SGD optimizer({.learning_rate = 0.1});
    return fit(
        model, optimizer, CategoricalCrossentropy(from_probabilities), data::from_tensor_slices(x, y).batch(8),
        {.epochs = epochs, .metrics = {F1Score(3)}, .checkpoints = {.directory = directory.path()}, .verbose = false});
  };
  const History first = train(2);
  train(3);
  const History whole = train(3);  // nothing is left to do
  ASSERT_EQ(whole.metrics.size(), 3);
  for (std::size_t k = 0; k < 3; ++k) {
    const auto& [name, values] = whole.metrics[k];
    EXPECT_EQ(name, text("f1_score_", k));
    ASSERT_EQ(values.size(), 3) << name;
    for (std::size_t epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(values[epoch], first.metrics[k].second[epoch]) << name;
    EXPECT_FALSE(std::isnan(values[2])) << name;
  }
}

}  // namespace
}  // namespace gradus::resumed_callbacks_test
