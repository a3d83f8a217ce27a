/// A run's config.toml is its program: a change there holds when the run is resumed, and prints a line. A training that
/// fails before its first step leaves nothing. Also paths of the wrong kind, words in tables, and missing columns.
#include <nlohmann/json.hpp>
#include "apps/gradus/advise.h"
#include "apps/gradus/experiment.h"
#include "apps/gradus/profile.h"
#include "apps/gradus/run_directory.h"
#include "apps/gradus/tune.h"
#include "tests/apps/command_fixture.h"

namespace gradus::command::resumed_configuration_test {
namespace {
namespace fs = std::filesystem;

class ResumedConfiguration : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    std::string table = "a,b,y\n";
    for (int i = 0; i < 64; ++i) table += text(i % 7, ',', i % 3, ',', 0.5 * (i % 7), '\n');
    write("table.csv", table);
  }
  std::string config(const std::string& optimizer, const std::string& data = "", int units = 1) const {
    return "[data]\nkind = \"csv\"\ndirectory = \"" + root_.string() +
           "\"\ntrain = \"table.csv\"\ntest = \"table.csv\"\nlabel = \"y\"\n" + data +
           "[[layers]]\ntype = \"dense\"\nunits = " + std::to_string(units) + "\n" + optimizer +
           "[train]\nepochs = 2\nbatch_size = 16\nloss = \"mean_squared_error\"\n";
  }
  int begin() {
    return status_of([&] { return train({.config = root_ / "config.toml", .output = root_ / "run"}); });
  }
  int resume(std::int64_t epochs, std::vector<std::string> settings = {}) {
    return status_of(
        [&] { return train({.config = {}, .resume = root_ / "run", .epochs = epochs, .settings = settings}); });
  }
  /// The rate of the last epoch.
  double learning_rate() const {
    std::istringstream lines(contents(root_ / "run/metrics.jsonl"));
    std::string line, last;
    while (std::getline(lines, line)) last = line;
    return nlohmann::json::parse(last).at("learning_rate").get<double>();
  }
};

const std::string sgd = "[optimizer]\ntype = \"sgd\"\nlearning_rate = 0.01\n";
const std::string cosine = sgd + "[optimizer.schedule]\ntype = \"cosine_decay\"\ndecay_steps = 100\n";

TEST_F(ResumedConfiguration, WhatIsChangedHolds) {
  write("config.toml", config(sgd));
  ASSERT_EQ(begin(), ok) << errors_;
  ASSERT_EQ(resume(3, {"optimizer.learning_rate=0.001"}), ok) << errors_;
  expect_error("learning_rate 0.001 from the program (the checkpoint had 0.01)");
  expect_error("goes on after step 8 in epoch 3 of 3");
  EXPECT_EQ(learning_rate(), 0.001);
  ASSERT_EQ(resume(4), ok) << errors_;  // config.toml contains it
  EXPECT_EQ(learning_rate(), 0.001);
  EXPECT_EQ(errors_.find("from the program"), std::string::npos) << errors_;
  ASSERT_EQ(resume(5, {"optimizer.momentum=0.9"}), failed);
  expect_error("the program has momentum 0.9, the checkpoint 0");
  ASSERT_EQ(resume(4), ok) << errors_;
  expect_error("is finished, after epoch 4 and step 16: nothing is left to do");
}

TEST_F(ResumedConfiguration, AScheduleMayComeAndGo) {
  write("config.toml", config(cosine));
  ASSERT_EQ(begin(), ok) << errors_;
  write("run/config.toml", config(sgd));
  ASSERT_EQ(resume(3), ok) << errors_;
  EXPECT_EQ(learning_rate(), 0.01);
  expect_error("learning_rate 0.01 from the program (the checkpoint had CosineDecay(initial_learning_rate 0.01");
  write("run/config.toml", config(cosine));
  ASSERT_EQ(resume(4), ok) << errors_;
  EXPECT_LT(learning_rate(), 0.0099);
  expect_error("learning_rate CosineDecay(");
}

TEST_F(ResumedConfiguration, ATrainingWithoutAStepLeavesNothing) {
  write("config.toml", config(sgd, "columns = [\"a\"]\n", 3));  // y has one number
  EXPECT_EQ(begin(), failed);
  EXPECT_FALSE(fs::exists(root_ / "run"));
  write("config.toml", config(sgd, "columns = [\"b\"]\n"));
  ASSERT_EQ(begin(), ok) << errors_;
  EXPECT_EQ(read_facts(root_ / "run/data.json").columns, (std::vector<std::string>{"b"}));
  fs::remove_all(root_ / "run");
  fs::create_directory(root_ / "run");  // the user's own directory stays
  write("config.toml", config(sgd, "", 3));
  EXPECT_EQ(begin(), failed);
  EXPECT_TRUE(fs::is_empty(root_ / "run"));
  write("run/config.toml", "# the user's own\n" + config(sgd, "", 3));
  EXPECT_EQ(begin(), failed);
  EXPECT_TRUE(contents(root_ / "run/config.toml").starts_with("# the user's own\n"));
  EXPECT_FALSE(fs::exists(root_ / "run/data.json"));
}

/// Files of a killed training mislead neither a new training nor a resumed one.
TEST_F(ResumedConfiguration, AKilledTrainingWithoutACheckpointMisleadsNobody) {
  write("config.toml", config(sgd, "columns = [\"a\"]\n"));
  const auto leave = [&] {
    fs::remove_all(root_ / "run");
    ASSERT_EQ(begin(), ok) << errors_;
    fs::remove_all(root_ / "run/checkpoints");
    EXPECT_EQ(read_facts(root_ / "run/data.json").columns, (std::vector<std::string>{"a"}));
  };
  leave();
  write("config.toml", config(sgd, "columns = [\"b\"]\n"));
  ASSERT_EQ(begin(), ok) << errors_;
  EXPECT_EQ(read_facts(root_ / "run/data.json").columns, (std::vector<std::string>{"b"}));
  write("config.toml", config(sgd, "columns = [\"a\"]\n"));
  leave();
  ASSERT_EQ(resume(2, {"data.columns=[\"b\"]"}), ok) << errors_;
  EXPECT_EQ(read_facts(root_ / "run/data.json").columns, (std::vector<std::string>{"b"}));
}

TEST_F(ResumedConfiguration, OtherColumnsAreRefused) {
  write("config.toml", config(sgd, "columns = [\"a\"]\n"));
  ASSERT_EQ(begin(), ok) << errors_;
  EXPECT_EQ(resume(3, {"data.columns=[\"b\"]"}), usage);
  expect_error("data.columns of its config.toml is b, and the run was trained with a");
  EXPECT_EQ(resume(3, {"data.categories=[\"a\"]"}), usage);
  expect_error("data.categories of its config.toml is a, and the run was trained with none");
}

TEST_F(ResumedConfiguration, PathsOfTheOtherKindAreNamed) {
  write("config.toml", config(sgd));
  ASSERT_EQ(begin(), ok) << errors_;
  const fs::path toml = root_ / "config.toml", run = root_ / "run";
  const std::vector<std::pair<std::string, std::function<int(const fs::path&)>>> of_runs{
      {"eval", [](const fs::path& path) { return eval({.run = path}); }},
      {"predict", [&](const fs::path& path) { return predict_examples({.run = path, .input = root_ / "table.csv"}); }},
      {"sample", [](const fs::path& path) { return sample({.run = path}); }},
      {"train --resume", [](const fs::path& path) { return train({.config = {}, .resume = path}); }}};
  for (const auto& [name, command] : of_runs) {
    EXPECT_EQ(status_of([&] { return command(toml); }), usage) << name;
    expect_error(name + ": " + toml.string() + " is a configuration; expected the run directory");
    EXPECT_EQ(status_of([&] { return command(root_ / "table.csv"); }), usage) << name;
    expect_error("is a file; expected a run directory");
    EXPECT_EQ(status_of([&] { return command(root_ / "nowhere"); }), failed) << name;
    expect_error(name + ": " + (root_ / "nowhere").string() + ": there is no such file or directory; expected a run ");
  }
  EXPECT_EQ(status_of([&] { return sample({.run = run}); }), usage);
  expect_error("this run is not of a text");
  const std::vector<std::pair<std::string, std::function<int(const fs::path&)>>> of_configurations{
      {"profile", [](const fs::path& path) { return profile_training({.config = path}); }},
      {"advise", [](const fs::path& path) { return advise_training({.config = path}); }},
      {"tune", [](const fs::path& path) { return tune({.config = path, .learning_rate = true}); }},
      {"train", [](const fs::path& path) { return train({.config = path}); }}};
  fs::create_directory(root_ / "empty");
  for (const auto& [name, command] : of_configurations) {
    EXPECT_EQ(status_of([&] { return command(run); }), usage) << name;
    expect_error(name + ": " + run.string() + " is a run directory; expected a configuration, " +
                 (run / "config.toml").string());
    EXPECT_EQ(status_of([&] { return command(root_ / "empty"); }), usage) << name;
    expect_error("is a directory; expected a configuration, a .toml file");
    EXPECT_EQ(status_of([&] { return command(root_ / "nowhere.toml"); }), failed) << name;
    expect_error(name + ": " + (root_ / "nowhere.toml").string() +
                 ": there is no such file or directory; expected a c");
  }
}

TEST_F(ResumedConfiguration, WordsAndColumnsOfTables) {
  std::string table = "a,town,y\n";
  for (int i = 0; i < 60; ++i) table += text(i % 7, ',', i % 3 == 0 ? "Bonn" : i % 3 == 1 ? "Kiel" : "Ulm", ",1.5\n");
  write("table.csv", table);
  write("config.toml", config(sgd));
  EXPECT_EQ(begin(), bad_data);
  expect_error("column `town`: expected a number, found \"Bonn\"; if the column is of words, name it in `categories`");
  write("config.toml", config(sgd, "categories = [\"town\"]\n"));
  ASSERT_EQ(begin(), ok) << errors_;
  expect_error("data.categories: the words of `town` become 0 to 2 in one column");
  write("short.csv", "a,area\n1,2\n");
  EXPECT_EQ(status_of([&] { return predict_examples({.run = root_ / "run", .input = root_ / "short.csv"}); }),
            bad_data);
  expect_error("has no column `town`");
  expect_error("`a`, `area`");
  write("config.toml", config(sgd, "columns = [\"aa\"]\n"));
  fs::remove_all(root_ / "run");
  EXPECT_EQ(begin(), bad_data);
  expect_error("did you mean `a`? The columns are `a`, `town`, `y`");
}

TEST_F(ResumedConfiguration, MemoryThatRunsOutIsSaid) {
  const auto thrown = [&](const auto& error) { return status_of([&]() -> int { throw error; }); };
  EXPECT_EQ(thrown(std::bad_alloc()), failed);
  expect_error("gradus: out of memory; allow the process more");
  EXPECT_EQ(thrown(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again))), failed);
  expect_error("the system starts no further thread");
}

}  // namespace
}  // namespace gradus::command::resumed_configuration_test
