/// Checkpoints of several ranks, and the places from which they resume: an impossible place is an error on every rank
/// before the first step.
#include <gtest/gtest.h>
#include <atomic>
#include "gradus/gradus.h"
#include "tests/distribute/strategies_as_threads.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::checkpoint_places_test {
namespace {

struct Trained {
  std::vector<std::string> problems;
  int steps = 0;  // sum over all ranks
};

/// Two ranks train on 48 rows, to the end of two epochs or for `stop` steps.
Trained train(const std::filesystem::path& directory, std::int64_t batch, std::int64_t stop = 0) {
  const Tensor x = ones({48, 3}), y = ones({48, 1});
  std::atomic<int> steps = 0;
  Trained trained;
  trained.problems = run_on_ranks({.ranks = 2}, [&](const Strategy& strategy, int) {
    Sequential model{Dense(1)};
    SGD optimizer;
    const Callback counts{.on_step_end = [&](const StepLog& log) {
      ++steps;
      log.stop = log.stop || log.step == stop;
    }};
    fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(x, y).batch(batch),
        {.epochs = 2,
         .callbacks = {counts},
         .checkpoints = {.directory = directory},
         .strategy = strategy,
         .verbose = false});
  });
  trained.steps = steps;
  return trained;
}

TEST(CheckpointPlaces, ThatCannotBeMadeEndAllRanksBeforeTheFirstStep) {
  const Trained trained = train("/proc/nope", 8);
  EXPECT_EQ(trained.steps, 0);
  ASSERT_EQ(trained.problems.size(), 2u);
  for (const std::string& problem : trained.problems)
    expect_says(problem, "/proc/nope: the directory of checkpoints cannot be made: ");
}

TEST(CheckpointPlaces, AreCountedInRowsOnAllRanks) {
  const TestDirectory directory("checkpoint_places");
  expect_all_well(train(directory, 8, 3).problems);  // 24 rows
  const Trained refused = train(directory, 16);
  EXPECT_EQ(refused.steps, 0);
  for (const std::string& problem : refused.problems) expect_says(problem, "several processes");
  const Trained rest = train(directory, 12);
  expect_all_well(rest.problems);
  EXPECT_EQ(rest.steps, 2 * (2 + 4));
}

}  // namespace
}  // namespace gradus::checkpoint_places_test
