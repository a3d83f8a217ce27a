/// fit that goes on with another division of batches than it began with: bits would change in the midst, so that is an
/// error where somebody has said the number of shards, and else a notice.
#include <gtest/gtest.h>
#include "gradus/gradus.h"
#include "gradus/train/checkpoint_directory.h"
#include "tests/distribute/strategies_as_threads.h"
#include "tests/distribute/trained.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::resumed_shards_test {
namespace {

using Division = std::optional<Strategy>;

Division shards(int replicas, int micro_shards) {
  return MirroredStrategy({.devices = devices(replicas), .micro_shards = micro_shards});
}

/// What it says on standard error.
std::string train(const std::filesystem::path& folder, int epochs, const Division& strategy) {
  testing::internal::CaptureStderr();
  set_seed(3);
  Sequential model{Dense(2)};
  Adam optimizer;
  std::string problem;
  try {
    fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(ones({16, 3}), ones({16, 2})).batch(8),
        {.epochs = epochs, .checkpoints = {.directory = folder}, .strategy = strategy, .verbose = false});
  } catch (const InvalidArgument& error) { problem = error.what(); }
  return testing::internal::GetCapturedStderr() + problem;
}

TEST(ResumedShards, AreThoseOfTheCheckpoint) {
  struct Row {
    Division before, now;
    const char* says;  // null: nothing
  };
  const Row rows[] = {
      {shards(1, 4), shards(2, 4), nullptr},
      {shards(4, 0), shards(2, 4), nullptr},
      {{}, {}, nullptr},
      {shards(1, 4), shards(2, 2),
       "fit: the checkpoint is of a training with batches in 4 shards, and micro_shards is now 2, which would change "
       "its bits in the midst: go on with micro_shards = 4"},
      {shards(4, 0), shards(2, 0), "had batches in 4 shards, and goes on with batches in 2 shards"},
      {{}, shards(1, 4), "gradus: this training had whole batches, and goes on with batches in 4 shards"},
      {shards(1, 4), {}, "had batches in 4 shards, and goes on with whole batches"},
  };
  for (const Row& row : rows) {
    const TestDirectory folder("resumed_shards");
    EXPECT_EQ(train(folder, 1, row.before), "");
    const std::string said = train(folder, 2, row.now);
    if (row.says != nullptr) expect_says(said, row.says);
    EXPECT_EQ(said.empty(), row.says == nullptr) << said;
  }
}

/// Writes the newest checkpoint again after `change`.
void change_newest(const TestDirectory& folder, const std::function<void(CheckpointContents&)>& change) {
  const CheckpointDirectory files({.directory = folder.path(), .max_to_keep = 0, .max_shard_bytes = 1 << 20});
  std::vector<std::string> damaged;
  std::optional<CheckpointContents> contents = files.read_newest(damaged);
  ASSERT_TRUE(contents && damaged.empty());
  change(*contents);
  files.write(*contents);
}

TEST(ResumedShards, AreNotAskedOfACheckpointThatDoesNotSayThem) {
  const TestDirectory folder("older_shards");
  EXPECT_EQ(train(folder, 1, shards(1, 4)), "");
  change_newest(folder, [](CheckpointContents& contents) {
    EXPECT_EQ(contents.micro_shards, 4);
    contents.micro_shards.reset();
  });
  EXPECT_EQ(train(folder, 2, shards(1, 2)), "");
  change_newest(folder, [](const CheckpointContents& contents) { EXPECT_EQ(contents.micro_shards, 2); });
}

/// All ranks read the same checkpoint, and rank 0 reports on it.
TEST(ResumedShards, OfAnotherNumericContractAreToldOnce) {
  const TestDirectory folder("older_contract");
  EXPECT_EQ(train(folder, 1, shards(1, 4)), "");
  change_newest(folder, [](CheckpointContents& contents) { contents.contract = 1; });
  testing::internal::CaptureStderr();
  expect_all_well(run_on_ranks({.ranks = 3}, [&](const Strategy& strategy, int) {
    set_seed(3);
    Sequential model{Dense(2)};
    Adam optimizer;
    fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(ones({16, 3}), ones({16, 2})).batch(8),
        {.epochs = 2, .checkpoints = {.directory = folder.path()}, .strategy = strategy, .verbose = false});
  }));
  const std::string said = testing::internal::GetCapturedStderr();
  const std::string line = "this training has the bits of version 1 of the numeric contract, and goes on by version ";
  EXPECT_NE(said.find(line), std::string::npos) << said;
  EXPECT_EQ(said.find(line), said.rfind(line)) << said;
}

}  // namespace
}  // namespace gradus::resumed_shards_test
