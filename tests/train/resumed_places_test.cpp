/// A training that is resumed with other batches, other numbers of steps, or other data: either no row is read twice or
/// left out, or an error says so before the first step.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <fstream>
#include <set>
#include "gradus/gradus.h"
#include "gradus/train/checkpoint_directory.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::resumed_places_test {
namespace {

constexpr std::int64_t rows = 60;

/// The way in which rows are read.
struct ReadBy {
  std::int64_t batch = 8;
  bool drop_remainder = false, shuffles = true, maps = false;
  std::int64_t steps_per_epoch = 0;
  std::uint64_t seed = 4;
  std::int64_t of_rows = rows;
  bool is_counted = true;
  std::int64_t takes = 0;  // batches of a pass; 0: all
};

/// Row i is one-hot, so weight i of a model that starts at 0 counts how often the row was trained on.
Dataset<2> data_of(const ReadBy& reading) {
  std::vector<float> values(static_cast<std::size_t>(reading.of_rows * rows), 0);
  for (std::int64_t i = 0; i < reading.of_rows; ++i) values[static_cast<std::size_t>(i * rows + i % rows)] = 1;
  Dataset<2> data = data::from_tensor_slices(from_values(values, {reading.of_rows, rows}), zeros({reading.of_rows, 1}));
  if (reading.shuffles) data = data.shuffle({.seed = reading.seed});
  if (!reading.is_counted) data = data.filter([](Tensor x, Tensor) { return reduce_sum(x) > 0; });
  data = data.batch(reading.batch, {.drop_remainder = reading.drop_remainder});
  if (reading.takes > 0) data = data.take(reading.takes);
  if (reading.maps) data = data.map([](Tensor x, Tensor y) { return std::pair{x * 1, y}; }).prefetch();
  return data;
}

struct Trained {
  std::vector<float> visits;
  std::int64_t steps = 0;
  std::string error, said;
};

Trained train(const ReadBy& reading, int epochs, const std::filesystem::path& directory, std::int64_t stop_after = 0) {
  set_seed(0);
  Sequential model{Dense(1, linear, {.use_bias = false, .kernel_initializer = initializers::zeros})};
  SGD optimizer({.learning_rate = 1});
  const auto loss = [](Tensor, Tensor prediction) { return Loss::of(-reduce_sum(prediction)); };
  Trained trained;
  FitOptions options{.epochs = epochs,
                     .steps_per_epoch = reading.steps_per_epoch,
                     .checkpoints = CheckpointOptions{.directory = directory},
                     .function = {.run_eagerly = !reading.maps},  // the same bits; programs with maps are compiled
                     .verbose = false};
  options.callbacks.push_back({.on_step_end = [&](const StepLog& log) {
    ++trained.steps;
    log.stop = log.stop || trained.steps == stop_after;
  }});
  testing::internal::CaptureStderr();
  try {
    fit(model, optimizer, loss, data_of(reading), options);
  } catch (const InvalidArgument& error) { trained.error = error.what(); }
  trained.said = testing::internal::GetCapturedStderr();
  trained.visits = model.trainable_variables()[0].value().to_vector<float>();
  return trained;
}

/// The numbers of times that rows were trained on.
std::set<float> counts(const Trained& trained) { return {trained.visits.begin(), trained.visits.end()}; }

TEST(ResumedPlaces, CountRowsWhateverTheSizesOfBatches) {
  for (const std::int64_t before : {1, 8, 25, 60})
    for (const std::int64_t now : {3, 8, 16, 60, 100})
      for (const ReadBy& kind : {ReadBy{}, ReadBy{.shuffles = false, .maps = true}, ReadBy{.is_counted = false}}) {
        ReadBy first = kind, second = kind;
        first.batch = before;
        second.batch = now;
        for (const std::int64_t stop : {1, 5}) {
          const TestDirectory directory("resumed_places");
          const std::string what = text(before, " -> ", now, " after ", stop, kind.is_counted ? "" : ", not counted");
          const Trained part = train(first, 2, directory, stop);
          const Trained rest = train(second, 2, directory);
          EXPECT_EQ(rest.error, "") << what;
          EXPECT_EQ(counts(rest), std::set<float>{2}) << what;
          const bool is_finished = stop >= 2 * ((rows + before - 1) / before);
          if (before == now || is_finished) EXPECT_EQ(rest.said, "") << what;
          else expect_says(rest.said, text("batch_size ", now, " from the program (the checkpoint had ", before, ')'));
        }
      }
}

TEST(ResumedPlaces, OfCountedStepsToo) {
  // 60 rows: passes of 8 and of 4 batches.
  for (const std::int64_t batch : {8, 15, 20})
    for (const std::int64_t steps : {3, 4, 8, 12})
      for (const std::int64_t stop : {2, 4, 7}) {
        const TestDirectory directory("resumed_streams");
        const ReadBy before{.batch = 8, .steps_per_epoch = 4};
        train(before, 100, directory, stop);
        const ReadBy now{.batch = batch, .steps_per_epoch = steps};
        const std::string what = text("batch ", batch, ", ", steps, " steps, after ", stop);
        const Trained rest = train(now, 40, directory, 50);
        if (stop % 4 > steps) continue;  // refused
        EXPECT_EQ(rest.error, "") << what;
        // 50 steps end within a pass, so the numbers of readings of two rows differ by at most one.
        const std::set<float> found = counts(rest);
        EXPECT_LE(found.size(), 2u) << what;
        EXPECT_LE(*found.rbegin() - *found.begin(), 1) << what;
      }
}

TEST(ResumedPlaces, WithStepsCountedFromNowOn) {
  const TestDirectory directory("resumed_counting");
  train({.batch = 15}, 2, directory);  // two passes
  const Trained more = train({.batch = 15, .steps_per_epoch = 2}, 6, directory);
  EXPECT_EQ(counts(more), std::set<float>{4}) << "epochs 3 to 6 are two passes";
  const Trained again = train({.batch = 15}, 7, directory);  // two epochs a pass are not one
  expect_says(again.error, "go on with 2");
  const TestDirectory same("resumed_uncounted");
  train({.batch = 15, .steps_per_epoch = 4}, 2, same);
  EXPECT_EQ(counts(train({.batch = 15}, 3, same)), std::set<float>{3});
}

TEST(ResumedPlaces, ThatCannotBeAreRefusedBeforeTheFirstStep) {
  const auto refused = [](const ReadBy& now, const std::string& why, const ReadBy& before = {}) {
    const TestDirectory directory("resumed_refused");
    train(before, 2, directory, 3);
    const Trained rest = train(now, 2, directory);
    EXPECT_EQ(rest.steps, 0) << why;
    expect_says(rest.error, directory.path().string());
    expect_says(rest.error, why);
    EXPECT_EQ(counts(train(before, 2, directory)), std::set<float>{2}) << "the training itself goes on";
  };
  refused({.seed = 5}, "within epoch 1, after 24 rows, and the program has another order of rows");
  refused({.shuffles = false}, "another order of rows");
  refused({.of_rows = 64}, "rows 64, the checkpoint 60");
  const TestDirectory directory("resumed_whole");
  const ReadBy whole{.batch = 8, .drop_remainder = true};
  train(whole, 2, directory, 3);
  const Trained rest = train({.batch = 10, .drop_remainder = true}, 2, directory);
  EXPECT_EQ(rest.steps, 0);
  expect_says(rest.error, "4 rows into a batch of the size that the program has now");
  expect_says(rest.error, "drop_remainder");
  // As many batches of another size are other rows.
  const TestDirectory taken("resumed_taken");
  train({.takes = 4}, 2, taken, 2);
  const Trained others = train({.batch = 15, .takes = 4}, 2, taken);
  EXPECT_EQ(others.steps, 0);
  expect_says(others.error, "another order of rows");
}

TEST(ResumedPlaces, AtTheBeginOfAPassOtherDataAreTheProgramsOwn) {
  const TestDirectory directory("resumed_data");
  train({}, 1, directory);
  const Trained more = train({.seed = 5, .of_rows = 120}, 2, directory);
  EXPECT_EQ(more.error, "");
  EXPECT_EQ(counts(more), std::set<float>{3});
  expect_says(more.said, "rows 120 from the program (the checkpoint had 60)");
  expect_says(more.said, "the order of rows from the program");
}

/// Checkpoints after every n updates of the training, for any length of an epoch.
TEST(ResumedPlaces, EverySoManySteps) {
  for (const std::int64_t every : {1, 3, 5, 7})
    for (const int resumed_after : {0, 1, 2}) {
      const TestDirectory directory("resumed_every");
      const auto go_on = [&](int epochs) {
        Sequential model{Dense(1)};
        SGD optimizer;
        fit(model, optimizer, MeanSquaredError(), data_of({.batch = 30}),
            {.epochs = epochs,
             .checkpoints = CheckpointOptions{.directory = directory, .max_to_keep = 0, .every_steps = every},
             .function = {.run_eagerly = true},
             .verbose = false});
      };
      if (resumed_after > 0) go_on(resumed_after);
      go_on(6);  // of two steps
      std::set<std::int64_t> saved, wanted;
      for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
        if (entry.path().extension() == ".json")
          saved.insert(std::stoll(entry.path().stem().string().substr(std::string("checkpoint-000000-step-").size())));
      for (std::int64_t step = 1; step <= 12; ++step)
        if (step % 2 == 0 || step % every == 0) wanted.insert(step);
      EXPECT_EQ(saved, wanted) << every << ", resumed after epoch " << resumed_after;
    }
}

TEST(CheckpointDirectories, ThatCannotBeWrittenAreToldBeforeTheFirstStep) {
  const TestDirectory directory("unwritable");
  std::filesystem::create_directories(directory.path());
  std::ofstream(directory.path() / "file") << "no directory";
  for (const std::filesystem::path& place :
       {std::filesystem::path("/proc/nope"), directory.path() / "file", directory.path() / "file" / "below"}) {
    Sequential model{Dense(1)};
    SGD optimizer;
    int steps = 0;
    const std::string message = error_of<Unavailable>([&] {
      fit(model, optimizer, MeanSquaredError(), data_of({}),
          {.callbacks = {{.on_step_end = [&](const StepLog&) { ++steps; }}},
           .checkpoints = CheckpointOptions{.directory = place},
           .verbose = false});
    });
    EXPECT_EQ(steps, 0) << place;
    expect_says(message, place.string());
  }
}

TEST(CheckpointDirectories, WithoutRoomAreToldBeforeTheFirstStep) {
  const TestDirectory directory("no_room");
  const CheckpointDirectory files({.directory = directory, .max_shard_bytes = std::size_t{1} << 62});
  EXPECT_NO_THROW(files.require_writable(1 << 20));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path())) << "a trial leaves nothing";
  expect_says(error_of<ResourceExhausted>([&] { files.require_writable(std::int64_t{1} << 60); }), "no room");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1 << 16, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);  // writing beyond it would be a signal
  const std::string message = error_of<ResourceExhausted>([&] { files.require_writable(1 << 20); });
  setrlimit(RLIMIT_FSIZE, &before);
  expect_says(message, directory.path().string());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace gradus::resumed_places_test
