/// `gradus advise` from end to end on small files: table, JSON, the configuration that follows, and what it refuses.
#include <gtest/gtest.h>
#include <cmath>
#include <filesystem>
#include <limits>
#include "apps/gradus/advise.h"
#include "apps/gradus/config.h"
#include "apps/gradus/config_changes.h"
#include "apps/gradus/profile.h"
#include "gradus/formats/json.h"
#include "gradus/gradus.h"
#include "tests/apps/command_fixture.h"

namespace gradus::command::advise_command_test {
namespace {
namespace fs = std::filesystem;

constexpr const char* layers =
    "[[layers]]\ntype = \"flatten\"\n[[layers]]\ntype = \"dense\"\nunits = 16\nactivation = \"relu\"\n"
    "[[layers]]\ntype = \"dense\"\nunits = 4\n";

class AdviseCommand : public CommandTest {
 protected:
  void SetUp() override {
    write_images("train", 600, 4);
    write_images("test", 50, 4);
    write("config.toml",
          std::string("# A small one.\n") + idx_data + layers + "[train]\nepochs = 1\nbatch_size = 4  # too few\n");
  }
  AdviseArguments arguments() const { return {.config = root_ / "config.toml", .max_seconds = 1.5}; }
  int train_on(const fs::path& config, std::vector<std::string> settings = {}) {
    return status_of([&] {
      return train({.config = config,
                    .data_directory = {},
                    .output = root_ / "run",
                    .epochs = {},
                    .batch_size = {},
                    .seed = {},
                    .threads = {},
                    .settings = std::move(settings),
                    .quiet = true});
    });
  }
};

TEST_F(AdviseCommand, PrintsATable) {
  ASSERT_EQ(status_of([&] { return advise_training(arguments()); }), ok) << errors_;
  for (const char* part :
       {"lever", "compile", "fuse", "prefetch", "batch size", "micro_batch", "threads", "verdict", "all together"})
    expect_output(part);
  EXPECT_EQ(output_.find("bf16"), std::string::npos);
}

TEST_F(AdviseCommand, SpeaksJson) {
  AdviseArguments given = arguments();
  given.json = given.allow_lower_precision = true;
  given.levers = {"bf16", "float16", "prefetch"};
  ASSERT_EQ(status_of([&] { return advise_training(given); }), ok) << errors_;
  const auto advice = parse_json(output_, "stdout");
  ASSERT_EQ(advice.at("levers").size(), 3u);
  for (const auto& lever : advice.at("levers")) {
    EXPECT_FALSE(lever.at("reason").get<std::string>().empty());
    EXPECT_EQ(lever.at("worth_it").get<bool>(), lever.at("verdict") == "worth it");
  }
}

/// A batch of 4 is so small that a larger one is worth it on every machine. It changes the learned result, so it is
/// taken only by name.
TEST_F(AdviseCommand, TheConfigurationThatFollowsTrains) {
  AdviseArguments given = arguments();
  given.max_seconds = 60;  // a slow machine needs them
  given.levers = {"batch_size"};
  fs::create_directories(root_ / "elsewhere");
  const fs::path out = root_ / "elsewhere/better.toml";
  given.apply = {out.string()};
  ASSERT_EQ(status_of([&] { return advise_training(given); }), ok) << errors_;
  EXPECT_EQ(read_config(out).batch_size, 4);
  expect_error("--apply=batch_size");
  given.apply = {out.string(), "batch_size,precision"};
  ASSERT_EQ(status_of([&] { return advise_training(given); }), ok) << errors_;
  const std::string better = contents(out);
  EXPECT_TRUE(better.starts_with("# A small one.\n")) << "what was written stays: " << better;
  EXPECT_NE(better.find("  # was 4; a step takes "), std::string::npos) << better << output_;
  const TrainConfig config = read_config(out);
  EXPECT_GT(config.batch_size, 4);
  EXPECT_LE(20 * config.batch_size, 600) << "updates in an epoch";
  EXPECT_EQ(config.layers.size(), 3u);
  EXPECT_EQ(train_on(out), ok) << errors_;
}

TEST_F(AdviseCommand, ApplyTakesOneFileAndNames) {
  const std::string out = root_ / "out.toml";
  const auto refused = [&](std::vector<std::string> apply, const std::string& words) {
    AdviseArguments given = arguments();
    given.apply = std::move(apply);
    EXPECT_EQ(status_of([&] { return advise_training(given); }), usage);
    expect_error(words);
  };
  refused({out, "batchsize"}, "did you mean `batch_size`?");
  refused({out, "batch_size,prefetch"}, "got `prefetch`");
  refused({"batch_size"}, "add --apply OUT.toml");
  refused({""}, "got ``");
  refused({out, "batch_size,"}, "got ``");
  refused({out, root_ / "other.toml"}, "expected one file");
  refused({root_ / "out"}, "a file that ends in .toml");
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(AdviseCommand, BadInput) {
  for (const double seconds : {0.0, -3.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    AdviseArguments given = arguments();
    given.max_seconds = seconds;
    EXPECT_EQ(status_of([&] { return advise_training(given); }), usage);
    expect_error("--max-seconds: expected a positive number");
  }
  AdviseArguments given = arguments();
  given.levers = {"prefech"};
  EXPECT_EQ(status_of([&] { return advise_training(given); }), usage);
  expect_error("--lever: there is no lever `prefech`; did you mean `prefetch`?");
  given = arguments();
  for (const char* place : {"missing/out.toml", "."}) {
    given.apply = {root_ / place};
    EXPECT_EQ(status_of([&] { return advise_training(given); }), failed);
    expect_error(given.apply[0]);
  }
  EXPECT_FALSE(fs::exists(root_ / "missing"));
  given = arguments();
  given.config = root_ / "none.toml";
  EXPECT_EQ(status_of([&] { return advise_training(given); }), failed);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(root_)) ++files;
  EXPECT_EQ(files, 5u) << "nothing is half-written";
}

TEST_F(AdviseCommand, SaysWhatRanksWouldTake) {
  AdviseArguments given = arguments();
  given.levers = {"fuse"};
  given.ranks = true;
  given.latency_us = 5;
  given.gigabytes_per_second = 12;
  ASSERT_EQ(status_of([&] { return advise_training(given); }), ok) << errors_;
  expect_output("ranks");
  given.json = true;
  ASSERT_EQ(status_of([&] { return advise_training(given); }), ok) << errors_;
  const auto ranks = parse_json(output_, "stdout").at("simulated_ranks");
  EXPECT_DOUBLE_EQ(ranks.at("latency").get<double>(), 5e-6);
  EXPECT_DOUBLE_EQ(ranks.at("bytes_per_second").get<double>(), 12e9);
  ASSERT_EQ(ranks.at("rows").size(), 3u) << "1, 2 and 4 ranks divide a batch of 4";
  EXPECT_EQ(ranks.at("rows")[0].at("exchange").get<double>(), 0);
  EXPECT_GE(ranks.at("rows")[2].at("exchange").get<double>(), 2 * 5e-6);
  given.ranks = false;
  ASSERT_EQ(status_of([&] { return advise_training(given); }), ok) << errors_;
  EXPECT_FALSE(parse_json(output_, "stdout").contains("simulated_ranks"));
}

TEST_F(AdviseCommand, DevicesSayHowFastTheirNetworkIs) {
  ASSERT_EQ(status_of([] { return list_devices(true, true); }), ok) << errors_;
  const auto all = parse_json(output_, "stdout");
  EXPECT_EQ(all.at("devices")[0].at("device"), "cpu:0");
  ASSERT_EQ(all.at("networks").size(), 2u);
  ASSERT_EQ(status_of([] { return list_devices(false, true); }), ok) << errors_;
  for (const auto& network : all.at("networks")) {
    expect_output(network.at("network").get<std::string>());
    if (network.contains("problem")) continue;  // UCX is not there
    EXPECT_GT(network.at("latency_seconds").get<double>(), 0);
    EXPECT_GT(network.at("bytes_per_second").get<double>(), 0);
  }
}

TEST_F(AdviseCommand, AFailureLeavesTheOldFile) {
  AdviseArguments given = arguments();
  given.apply = {root_ / "old.toml"};
  write("old.toml", "old");
  given.settings = {"train.batch_size=100000"};  // of 600 examples: fine; but the loss is not finite
  given.settings.push_back("data.deviation=1e-38");
  EXPECT_NE(status_of([&] { return advise_training(given); }), ok);
  EXPECT_EQ(contents(root_ / "old.toml"), "old");
}

/// A configuration that divides batches is profiled and tried as it trains.
TEST_F(AdviseCommand, DistributedConfigurations) {
  write("shards.toml",
        std::string(idx_data) + layers + "[train]\nepochs = 1\nbatch_size = 32\n[distribute]\nmicro_shards = 4\n");
  AdviseArguments given = arguments();
  given.config = root_ / "shards.toml";
  given.levers = {"replicas", "prefetch"};
  ASSERT_EQ(status_of([&] { return advise_training(given); }), ok) << errors_;
  expect_output("batches are divided into shards");
  ASSERT_EQ(status_of([&] {
              return profile_training({.config = root_ / "shards.toml", .steps = 5, .output = root_ / "profile"});
            }),
            ok)
      << errors_;
  ::setenv("GRADUS_CLUSTER", R"({"workers": ["127.0.0.1:7001", "127.0.0.1:7002"], "rank": 0})", 1);
  EXPECT_EQ(status_of([&] { return advise_training(given); }), usage);
  expect_error("names 2 ranks");
  EXPECT_EQ(status_of([&] {
              return profile_training({.config = root_ / "shards.toml", .steps = 5, .output = root_ / "profile"});
            }),
            usage);
  expect_error("names 2 ranks");
  ::unsetenv("GRADUS_CLUSTER");
}

// The keys that levers are.

TEST_F(AdviseCommand, EveryKeyOfALeverTrains) {
  const fs::path plain = root_ / "config.toml";
  for (const char* setting : {"data.prefetch=true", "data.prefetch=false", "data.num_parallel_calls=3",
                              "data.cache=true", "train.max_bytes=1000000", "train.replicas=2",
                              "train.run_eagerly=true", "train.disable=[\"fuse\"]", "train.micro_batch=2"}) {
    SCOPED_TRACE(setting);
    fs::remove_all(root_ / "run");
    EXPECT_EQ(train_on(plain, {setting}), ok) << errors_;
    const std::vector<std::string> settings{setting};
    const TrainConfig config = read_config(plain, settings);
    EXPECT_EQ(to_toml(parse_config(to_toml(config), "again")), to_toml(config));
    EXPECT_NE(to_toml(config), to_toml(read_config(plain)));
  }
}

// Changing what is written.

constexpr std::string_view written = R"(# Mine.
seed = 3   # lucky
[data]
directory = "/data"
train_images = "a"
train_labels = "b"
test_images = "c"
test_labels = "d"

[[layers]]
type = "dense"
units = 7     # train

  [train]  # how
 batch_size=4   # few
)";

TEST(ConfigChanges, ChangeLinesAndKeepTheRest) {
  const std::string changed = changed_config(std::string(written), "c", {},
                                             {{"train", "batch_size", "64", "was 4;\nfaster"},
                                              {"train", "micro_batch", "16"},
                                              {"data", "prefetch", "true", "hides"},
                                              {"", "threads", "2", "x"},
                                              {"checkpoints", "max_to_keep", "7", "y"}});
  EXPECT_EQ(changed, R"(# Mine.
seed = 3   # lucky
threads = 2  # x
[data]
directory = "/data"
train_images = "a"
train_labels = "b"
test_images = "c"
test_labels = "d"
prefetch = true  # hides

[[layers]]
type = "dense"
units = 7     # train

  [train]  # how
batch_size = 64  # was 4; faster
micro_batch = 16

[checkpoints]
max_to_keep = 7  # y
)");
}

TEST(ConfigChanges, WhatHasAnotherFormIsWrittenAnew) {
  const std::string head =
      "data = {directory = \"/d\", train_images = \"a\", train_labels = \"b\", test_images = \"c\", test_labels = "
      "\"d\"}\n"
      "layers = [{type = \"dense\", units = 3}]\n";
  for (const std::string& train : {std::string("train = {batch_size = 4}\n"), std::string("train.batch_size = 4\n")}) {
    const std::string changed = changed_config(head + train, "c", {}, {{"train", "batch_size", "64", "was 4"}});
    EXPECT_NE(changed.find("batch_size = 64  # was 4\n"), std::string::npos) << changed;
    const std::vector<std::string> meant{"train.batch_size=64"};
    EXPECT_EQ(to_toml(parse_config(changed, "changed")), to_toml(parse_config(head + train, "c", meant)));
  }
}

TEST(ConfigChanges, SettingsStay) {
  const std::vector<std::string> settings{"layers[0].units=9"};
  const std::string changed =
      changed_config(std::string(written), "c", settings, {{"train", "batch_size", "64", "was 4"}});
  EXPECT_EQ(parse_config(changed, "changed").layers[0].units, 9);
  EXPECT_EQ(parse_config(changed, "changed").batch_size, 64);
}

}  // namespace
}  // namespace gradus::command::advise_command_test
