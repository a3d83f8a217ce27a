/// `gradus tune` from end to end on small files: what it finds, writes and refuses.
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include "apps/gradus/commands.h"
#include "apps/gradus/config.h"
#include "apps/gradus/tune.h"
#include "tests/apps/command_fixture.h"

namespace gradus::command::tune_command_test {
namespace {
namespace fs = std::filesystem;

/// A data set whose label is the brightest row of an image.
class TuneCommand : public CommandTest {
 protected:
  void SetUp() override {
    write_images("train", 200, 4);
    write_images("test", 20, 4);
    write("config.toml", R"([data]
train_images = "train_images"
train_labels = "train_labels"
test_images = "test_images"
test_labels = "test_labels"
[[layers]]
type = "flatten"
[[layers]]
type = "dense"
units = 4
[optimizer]
type = "sgd"
learning_rate = 0.1
[train]
epochs = 3
batch_size = 16
)");
  }

  /// The exit status, as main gives it.
  int status_of(TuneArguments arguments) {
    arguments.config = root_ / "config.toml";
    if (!arguments.output) arguments.output = root_ / "out";
    return CommandTest::status_of([&] { return tune(arguments); });
  }
  std::string written(const std::string& file) const { return contents(root_ / "out" / file); }
  static std::int64_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }
};

TEST_F(TuneCommand, AGridFindsTheBestAndWritesItsConfiguration) {
  ASSERT_EQ(status_of({.vary = {"optimizer.learning_rate=1e-6,0.5,1e300", "optimizer.momentum=0.0,0.5"}}), ok)
      << errors_;
  EXPECT_EQ(lines(written("trials.csv")), 7);
  EXPECT_EQ(lines(written("trials.jsonl")), 6);
  EXPECT_NE(written("trials.svg").find("<circle"), std::string::npos);
  EXPECT_NE(output_.find("diverged"), std::string::npos) << output_;
  EXPECT_NE(errors_.find("trial 0: optimizer.learning_rate=1e-06"), std::string::npos) << errors_;
  const TrainConfig best = read_config(root_ / "out/best.toml");
  EXPECT_EQ(best.optimizer.learning_rate, 0.5);
  EXPECT_EQ(best.epochs, 3);
  EXPECT_TRUE(best.data.directory.is_absolute()) << best.data.directory;
  ASSERT_EQ(status_of({.vary = {"layers[1].units=4,8"}, .epochs = 1, .json = true, .quiet = true}), ok) << errors_;
  const auto result = nlohmann::json::parse(output_);
  EXPECT_EQ(result["trials"], 2);
  EXPECT_TRUE(result["best"]["layers[1].units"] == 4 || result["best"]["layers[1].units"] == 8) << output_;
  EXPECT_EQ(errors_, "");
}

TEST_F(TuneCommand, TheSameTrialsWithAnyNumberOfThreads) {
  const auto scores = [&](std::int64_t parallel, std::string search) {
    EXPECT_EQ(status_of({.vary = {"optimizer.learning_rate=log:1e-4..1.0", "train.batch_size=8..32:8"},
                         .search = std::move(search),
                         .trials = 4,
                         .parallel = parallel,
                         .quiet = true}),
              ok)
        << errors_;
    std::vector<nlohmann::json> rows;
    std::istringstream in(written("trials.jsonl"));
    for (std::string line; std::getline(in, line);) {
      rows.push_back(nlohmann::json::parse(line));
      rows.back().erase("seconds");
    }
    return rows;
  };
  EXPECT_EQ(scores(1, ""), scores(3, "random"));
  EXPECT_EQ(scores(1, "halving"), scores(3, "halving"));
  EXPECT_EQ(scores(0, "hyperband").size(), 5u);
}

TEST_F(TuneCommand, LearningRateAndBatchSize) {
  ASSERT_EQ(status_of({.learning_rate = true, .json = true}), ok) << errors_;
  const double rate = nlohmann::json::parse(output_)["learning_rate"];
  EXPECT_GT(rate, 1e-5);
  EXPECT_LT(rate, 100);
  EXPECT_GT(lines(written("learning_rates.csv")), 10);
  EXPECT_NE(written("learning_rates.svg").find("<polyline"), std::string::npos);
  ASSERT_EQ(status_of({.batch_size = true, .quiet = true}), ok) << errors_;
  EXPECT_NE(output_.find("batch size "), std::string::npos) << output_;
  EXPECT_GT(lines(written("batch_sizes.csv")), 1);
}

TEST_F(TuneCommand, MistakesOfUse) {
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {"", "KEY=VALUES"},
      {"optimizer.learning_rate", "KEY=VALUES"},
      {"optimizer.learning_rate=", "KEY=VALUES"},
      {"=1", "KEY=VALUES"},
      {"optimizer.lerning_rate=0.1,0.2", "learning_rate"},
      {"optimizer.learning_rate=-1.0,0.2", "positive"},
      {"optimizer.learning_rate=1..x", "LOW..HIGH"},
      {"optimizer.learning_rate=0.5..0.1", "smaller one first"},
      {"optimizer.learning_rate=log:0.0..0.1", "positive"},
      {"optimizer.learning_rate=0.1..0.5:2", "integers"},
      {"train.batch_size=8..32:0", "step"},
      {"train.batch_size=8,8", "twice"},
      {"layers[7].units=1,2", "layers[7]"},
      {"layers[1=1,2", "layers[1"},
      {"data.mean=0.0,1.0", "data"},
  };
  for (const auto& [vary, says] : mistakes) {
    EXPECT_EQ(status_of({.vary = {vary}, .quiet = true}), usage) << vary;
    EXPECT_NE(errors_.find(says), std::string::npos) << vary << ": " << errors_;
  }
  for (const char* search : {"halving", "hyperband"}) {
    EXPECT_EQ(status_of({.vary = {"train.epochs=1,2"}, .search = search, .quiet = true}), usage) << search;
    EXPECT_NE(errors_.find("itself sets the epochs"), std::string::npos) << errors_;
  }
  EXPECT_EQ(status_of({}), usage);
  EXPECT_NE(errors_.find("--vary"), std::string::npos);
  EXPECT_EQ(status_of({.vary = {"optimizer.momentum=0.0,0.5"}, .validation_share = 1}), usage);
  EXPECT_EQ(status_of({.vary = {"optimizer.momentum=0.0,0.5"}, .validation_share = 1e-9}), bad_data);
}

TEST_F(TuneCommand, ATrialThatCannotBeIsARow) {
  ASSERT_EQ(status_of({.vary = {"optimizer.type=sgd,nonsense"}, .quiet = true}), ok) << errors_;
  EXPECT_NE(output_.find("failed"), std::string::npos) << output_;
  EXPECT_EQ(status_of({.vary = {"optimizer.learning_rate=1e300"}, .quiet = true}), failed) << output_;
  EXPECT_NE(errors_.find("no trial has a score"), std::string::npos) << errors_;
}

TEST(Settings, TakeThePlaceOfWhatIsWritten) {
  const std::string written =
      "[data]\ntrain_images = \"a\"\ntrain_labels = \"b\"\ntest_images = \"c\"\ntest_labels = \"d\"\n"
      "[[layers]]\ntype = \"dense\"\nunits = 4\n";
  const auto parsed = [&](std::vector<std::string> settings) { return parse_config(written, "text", settings); };
  EXPECT_EQ(parsed({"layers[0].units=7"}).layers[0].units, 7);
  EXPECT_EQ(std::get<SGDOptions>(parsed({"optimizer.type=sgd", "optimizer.momentum=0.5"}).optimizer.options).momentum,
            0.5);
  EXPECT_EQ(parsed({"seed=3", "seed=4"}).seed, 4);
  EXPECT_EQ(parsed({"layers[0].activation=relu"}).layers[0].activation, "relu");
  EXPECT_EQ(parsed({"layers[0].activation=\"relu\""}).layers[0].activation, "relu");
  for (const std::string wrong : {"", "=", "seed", "seed.a=1", "layers[1].units=1", "layers[0]=1", "a.b.c=1", ".=1",
                                  "seed=1\nthreads=2", "layers[-1].units=1", "seed=\xff", "[[[=]"})
    EXPECT_THROW(parsed({wrong}), ConfigError) << wrong;
}

}  // namespace
}  // namespace gradus::command::tune_command_test
