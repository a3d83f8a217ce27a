/// Callbacks by what they are told: against Keras 3.15 where it has them, files by their contents, and what is refused.
#include "gradus/train/callbacks.h"
#include <gtest/gtest.h>
#include <cmath>
#include <fstream>
#include <limits>
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/train/fit.h"
#include "gradus/train/tensorboard.h"
#include "gradus/train/weights.h"
#include "tests/errors.h"
#include "tests/train/checkpoint_samples.h"

namespace gradus::callbacks_test {
namespace {

/// A training of which only the numbers matter: the loss of epoch i is losses[i], the weight is i.
struct Pretended {
  Sequential model{Dense(1, linear, {.use_bias = false})};
  SGD optimizer{{.learning_rate = 0.5}};
  bool stop = false;
  std::vector<double> rates = {};

  Pretended() { model.build({f32, {any_size, 1}}); }
  /// The epoch in which it stopped; -1 if it did not.
  int run(const Callback& callback, const std::vector<double>& losses, int first = 0, bool accuracy = false) {
    const auto tell = [&](const auto& what, const auto& log) {
      if (what) what(log);
    };
    stop = false;
    tell(callback.on_train_begin, TrainBegin{model, optimizer, 100, false});
    int stopped = -1;
    for (int epoch = first; stopped < 0 && epoch < first + static_cast<int>(losses.size()); ++epoch) {
      tell(callback.on_epoch_begin, EpochBegin{epoch, model, optimizer, stop});
      model.variables()[0].assign(full({1, 1}, epoch));
      const double now = losses[static_cast<std::size_t>(epoch - first)];
      EpochLog log{epoch, accuracy ? 1 : now, {}, {}, 0.5, model, optimizer, stop};
      if (accuracy) log.metrics = {{"accuracy", now}};
      tell(callback.on_epoch_end, log);
      rates.push_back(optimizer.learning_rate());
      if (stop) stopped = epoch;
    }
    tell(callback.on_train_end, TrainEnd{model, optimizer});
    return stopped;
  }
  double weight() const { return model.variables()[0].value().item(); }
};

std::string contents_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(EarlyStopping, AsKeras) {
  struct Case {
    EarlyStoppingOptions options;
    std::vector<double> losses;
    int stopped;
    double best;
  };
  const std::vector<Case> cases{
      {{.patience = 0}, {1.0178, 0.81, 0.9125, 0.8269, 0.729}, 2, 1},
      {{.patience = 0}, {0.9, 0.94, 0.855, 0.729}, 1, 0},
      {{.patience = 2}, {1.0, 1.0, 1.0, 0.907, 0.9}, 2, 0},
      {{.patience = 2},
       {1.0, 0.9537, 0.9946, 0.911, 0.8237, 0.81, 0.729, 0.7264, 0.6561, 0.6562, 0.5314, 0.5474, 0.5992, 0.6385},
       12,
       10},
      {{.patience = 2, .min_delta = 0.05}, {1.0036, 1.018, 0.9261, 1.0038, 0.81, 0.729, 0.729, 0.729, 0.7198}, 7, 5},
      {{.patience = 3, .start_from_epoch = 4}, {0.9, 0.9, 1.0504, 0.81, 0.81, 0.81, 0.81, 0.81, 0.81}, 7, 4},
      {{.patience = 3, .start_from_epoch = 4},
       {1.1467, 1.0459, 0.9, 0.9, 0.9379, 0.9509, 0.81, 0.729, 0.8019, 0.7573, 0.6475, 0.5984, 0.5203, 0.4783, 0.4305,
        0.5205},
       -1,
       14},
      {{.patience = 2, .baseline = 0.8}, {0.9, 0.81, 0.81, 0.8616, 0.729}, 2, 1},
      {{.patience = 2, .baseline = 0.8}, {0.9, 0.9, 0.9532, 0.81}, 1, 0},
      {{.patience = 3, .baseline = 0.5}, {0.9, 0.9785, 0.8919, 0.6561, 0.6963, 0.5905}, 4, 3},
      {{.patience = 3, .baseline = 0.5}, {0.9, 1.0717, 0.9, 0.9, 0.81}, 2, 0},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Pretended training;
    EarlyStoppingOptions options = cases[i].options;
    options.restore_best_weights = true;
    const Callback callback = early_stopping(options);
    for (int again = 0; again < 2; ++again) {  // it starts over with each training
      EXPECT_EQ(training.run(callback, cases[i].losses), cases[i].stopped) << i;
      EXPECT_EQ(training.weight(), cases[i].best) << i;
    }
  }
}

TEST(EarlyStopping, WatchesWhatItIsTold) {
  Pretended training;
  const std::vector<double> rising{0.1, 0.2, 0.3, 0.25, 0.2, 0.1};
  EXPECT_EQ(training.run(early_stopping({.patience = 2, .restore_best_weights = true, .monitor = "accuracy"}), rising,
                         0, true),
            4);
  EXPECT_EQ(training.weight(), 2);
  EXPECT_EQ(
      training.run(early_stopping({.patience = 2, .monitor = "accuracy", .mode = MonitorMode::min}), rising, 0, true),
      2);
  EXPECT_EQ(training.run(early_stopping({.patience = 2}), {1, 2, 3}), 2);
  EXPECT_EQ(training.weight(), 2) << "the last weights stay";
  const double nan = std::nan("");
  EXPECT_EQ(training.run(early_stopping({.patience = 2}), {3, nan, 2, nan, nan, 1}), 4) << "NaN is no improvement";
  expect_says(error_of<InvalidArgument>([&] { training.run(early_stopping({.monitor = "acuracy"}), rising, 0, true); }),
              "accuracy");
  EXPECT_THROW(early_stopping({.patience = -1}), InvalidArgument);
  EXPECT_THROW(early_stopping({.min_delta = nan}), InvalidArgument);
}

/// The patience is the program's: a training that was stopped goes on where there is more of it.
TEST(EarlyStopping, GoesOnWithMorePatience) {
  const TestDirectory directory("early_stopping_patience");
  const auto data = data::from_tensor_slices(ones({8, 1}), ones({8, 1})).batch(4);
  const auto epochs_with = [&](int patience) {
    set_seed(0);
    Sequential model{Dense(1)};
    SGD optimizer({.learning_rate = 0});  // nothing improves
    const Callback callback = early_stopping({.patience = patience});
    fit(model, optimizer, MeanSquaredError(), data,
        {.epochs = 9, .callbacks = {callback}, .checkpoints = {.directory = directory}, .verbose = false});
    return optimizer.iterations() / 2;
  };
  EXPECT_EQ(epochs_with(1), 2);
  EXPECT_EQ(epochs_with(1), 2);
  EXPECT_EQ(epochs_with(3), 4);
  EXPECT_EQ(epochs_with(2), 4);
  EXPECT_EQ(epochs_with(30), 9);
}

TEST(ReduceLROnPlateau, AsKeras) {
  struct Case {
    ReduceLROnPlateauOptions options;
    std::vector<double> losses, rates;
  };
  const std::vector<Case> cases{
      {{.factor = 0.5, .patience = 2, .min_delta = 0.01, .cooldown = 2, .min_lr = 0.02},
       {1.1832, 0.9, 0.9, 0.81, 0.729, 0.729, 0.6561, 0.7757, 0.6869, 0.4783, 0.4305, 0.5494, 0.5881, 0.3874, 0.3874,
        0.3559},
       {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.125}},
      {{.factor = 0.1, .patience = 1, .min_delta = 0, .min_lr = 0.0001},
       {0.9, 0.81, 0.729, 0.7731, 0.6561, 0.6561, 0.6561, 0.8282, 0.6561, 0.6561, 0.5905},
       {0.5, 0.5, 0.5, 0.05, 0.05, 0.005, 0.0005, 0.0001, 0.0001, 0.0001, 0.0001}},
      {{.factor = 0.3, .patience = 0, .min_delta = 0.05, .cooldown = 3},
       {1.0, 0.9, 0.9, 0.8172, 0.8361, 0.729, 0.794, 0.7281, 0.5905, 0.5314, 0.4783, 0.6729, 0.6052, 0.4783, 0.4911,
        0.3874},
       {0.5, 0.5, 0.15, 0.15, 0.15, 0.15, 0.045, 0.045, 0.045, 0.045, 0.045, 0.0135, 0.0135, 0.0135, 0.00405, 0.00405}},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Pretended training;
    training.run(reduce_lr_on_plateau(cases[i].options), cases[i].losses);
    ASSERT_EQ(training.rates.size(), cases[i].rates.size());
    for (std::size_t k = 0; k < training.rates.size(); ++k)
      EXPECT_NEAR(training.rates[k], cases[i].rates[k], 1e-12) << "case " << i << ", epoch " << k;
  }
  const std::vector<ReduceLROnPlateauOptions> all_bad{{.factor = 1},     {.factor = 0},    {.patience = -1},
                                                      {.min_delta = -1}, {.cooldown = -1}, {.min_lr = -1}};
  for (const ReduceLROnPlateauOptions& bad : all_bad) EXPECT_THROW(reduce_lr_on_plateau(bad), InvalidArgument);
}

TEST(ModelCheckpoint, TheBestOrAll) {
  const TestDirectory directory("model_checkpoint");
  std::filesystem::create_directories(directory.path());
  Pretended training, loaded;
  const auto best = directory.path() / "best.safetensors";
  training.run(model_checkpoint(best, {.save_best_only = true}), {3, 1, 2, 5});
  load_safetensors(best, loaded.model);
  EXPECT_EQ(loaded.weight(), 1);
  training.run(model_checkpoint(directory.path() / "at_{epoch}.safetensors"), {3, 1, 2});
  for (int epoch = 0; epoch < 3; ++epoch) {
    load_safetensors(directory.path() / text("at_", epoch, ".safetensors"), loaded.model);
    EXPECT_EQ(loaded.weight(), epoch);
  }
  EXPECT_THROW(model_checkpoint(""), InvalidArgument);
  EXPECT_THROW(training.run(model_checkpoint(directory.path() / "no" / "place"), {1}), Unavailable);
}

TEST(Logs, AreExactAndGoOn) {
  const TestDirectory directory("logs");
  std::filesystem::create_directories(directory.path());
  const auto csv = directory.path() / "log.csv", lines = directory.path() / "log.jsonl";
  Pretended training;
  const double nan = std::nan("");
  for (const Callback& log : {csv_logger(csv), json_lines_logger(lines)}) {
    training.run(log, {7, 7, 7});              // what stood there before
    training.run(log, {0.1, 1.0 / 3, 3});      // starts over
    training.run(log, {2e-300, nan, 0.5}, 2);  // resumed at epoch 2
  }
  EXPECT_EQ(contents_of(csv),
            "epoch,loss,learning_rate,seconds\n0,0.1,0.5,0.5\n1,0.3333333333333333,0.5,0.5\n2,2e-300,0.5,0.5\n"
            "3,nan,0.5,0.5\n4,0.5,0.5,0.5\n");
  EXPECT_EQ(contents_of(lines),
            R"({"epoch":0,"loss":0.1,"learning_rate":0.5,"seconds":0.5}
{"epoch":1,"loss":0.3333333333333333,"learning_rate":0.5,"seconds":0.5}
{"epoch":2,"loss":2e-300,"learning_rate":0.5,"seconds":0.5}
{"epoch":3,"loss":null,"learning_rate":0.5,"seconds":0.5}
{"epoch":4,"loss":0.5,"learning_rate":0.5,"seconds":0.5}
)");
  training.run(csv_logger(csv, ';'), {1.5}, 0, true);
  EXPECT_EQ(contents_of(csv), "epoch;loss;accuracy;learning_rate;seconds\n0;1;1.5;0.5;0.5\n");
  expect_says(error_of<DataError>([&] { training.run(json_lines_logger(csv), {1}, 3); }), "another file");
  EXPECT_THROW(csv_logger(csv, '.'), InvalidArgument);
  EXPECT_THROW(training.run(csv_logger(directory.path() / "no" / "place"), {1}), Unavailable);
}

/// A regression that any step size learns.
Dataset<2> regression() {
  const Tensor x = random::normal({40, 3}, {.seed = 1});
  return data::from_tensor_slices(x, reduce_sum(x, {.axis = {1}, .keepdims = true})).batch(8);
}

TEST(TerminateOnNaN, EndsTheTrainingQuietly) {
  Sequential model{Dense(1)};
  SGD optimizer({.learning_rate = 1e39});
  bool ended = false;
  const Callback own{.on_train_end = [&](const TrainEnd&) { ended = true; }};
  const History history = fit(model, optimizer, MeanSquaredError(), regression(),
                              {.epochs = 5, .callbacks = {terminate_on_nan(), own}, .verbose = false});
  EXPECT_EQ(history.loss.size(), 0u);
  EXPECT_TRUE(ended);
  EXPECT_LT(optimizer.iterations(), 5);
}

TEST(TimeLimit, EndsWithTheStep) {
  Sequential model{Dense(1)};
  SGD optimizer;
  fit(model, optimizer, MeanSquaredError(), regression(),
      {.epochs = 1000, .callbacks = {time_limit(std::chrono::seconds(0))}, .verbose = false});
  EXPECT_EQ(optimizer.iterations(), 1);
  fit(model, optimizer, MeanSquaredError(), regression(),
      {.epochs = 2, .callbacks = {time_limit(std::chrono::hours(1))}, .verbose = false});
  EXPECT_EQ(optimizer.iterations(), 11);
  EXPECT_THROW(time_limit(std::chrono::seconds(-1)), InvalidArgument);
}

TEST(Fit, TellsCallbacksWhatHappens) {
  Sequential model{Dense(1)};
  SGD optimizer;
  std::string heard;
  const Callback own{.on_epoch_end = [&](const EpochLog& log) { heard += text(" end", log.epoch); },
                     .on_train_begin = [&](const TrainBegin& log) { heard += text("train", log.epochs); },
                     .on_epoch_begin =
                         [&](const EpochBegin& log) {
                           heard += text(" begin", log.epoch);
                           log.stop = log.epoch == 3;
                         },
                     .on_train_end = [&](const TrainEnd&) { heard += " done"; }};
  fit(model, optimizer, MeanSquaredError(), regression(),
      {.epochs = 9, .initial_epoch = 1, .callbacks = {own}, .verbose = false});
  EXPECT_EQ(heard, "train9 begin1 end1 begin2 end2 begin3 done");
}

TEST(FastDevRun, IsAFewSteps) {
  Sequential model{Dense(1)};
  SGD optimizer;
  const History history = fit(model, optimizer, MeanSquaredError(), regression(),
                              {.epochs = 9, .validation = regression(), .verbose = false, .fast_dev_run = 3});
  EXPECT_EQ(history.loss.size(), 1u);
  EXPECT_EQ(history.validation_loss.size(), 1u);
  EXPECT_EQ(optimizer.iterations(), 3);
  EXPECT_THROW(fit(model, optimizer, MeanSquaredError(), regression(), {.verbose = false, .fast_dev_run = -1}),
               InvalidArgument);
}

}  // namespace
}  // namespace gradus::callbacks_test
