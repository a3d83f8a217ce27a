/// A run directory belongs to one training at a time, and to the data that it began with.
#include <sys/stat.h>
#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include "apps/gradus/run_directory.h"
#include "gradus/formats/png_writer.h"
#include "gradus/formats/npz.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "tests/apps/command_process.h"

namespace gradus::command::run_directory_test {
namespace {
namespace fs = std::filesystem;

constexpr const char* layers_and_train =
    "[[layers]]\ntype = \"flatten\"\n[[layers]]\ntype = \"dense\"\nunits = 4\n[train]\nepochs = 1\nbatch_size = 32\n";

class RunDirectoryTest : public CommandProcessTest {
 protected:
  TrainArguments beginning() const { return {.config = root_ / "config.toml", .output = root_ / "run", .quiet = true}; }
  TrainArguments resuming(std::int64_t epochs) const {
    return {.config = {}, .resume = root_ / "run", .epochs = epochs, .quiet = true};
  }
  int begin() {
    fs::remove_all(root_ / "run");
    return status_of([&] { return train(beginning()); });
  }
  /// What resuming says is different; that --data-changed allows it, and that these are then the data of the run.
  void expect_refused(const std::string& what) {
    const std::string weights = contents(root_ / "run/weights.safetensors"), facts = contents(root_ / "run/data.json");
    EXPECT_EQ(status_of([&] { return train(resuming(2)); }), bad_data) << what;
    expect_error("are not those that it was trained with: " + what +
                 "; bring those back, or go on with these by "
                 "--data-changed");
    EXPECT_EQ(contents(root_ / "run/weights.safetensors"), weights);
    EXPECT_EQ(contents(root_ / "run/data.json"), facts);
    TrainArguments allowed = resuming(2);
    allowed.data_changed = true;
    EXPECT_EQ(status_of([&] { return train(allowed); }), ok) << errors_;
    EXPECT_EQ(status_of([&] { return train(resuming(3)); }), ok) << errors_;
  }

  void write_arrays(const std::vector<int>& order, const std::vector<int>& labels_order, float change = 0,
                    const std::vector<int>& test = {0, 1, 2, 3}) {
    std::vector<float> x, test_x;
    std::vector<std::int32_t> y, test_y;
    for (const int row : order)
      for (int k = 0; k < 3; ++k)
        x.push_back(static_cast<float>(row * 3 + k) / 100 + (row == 0 && k == 0 ? change : 0));
    for (const int row : labels_order) y.push_back(row % 4);
    for (const int row : test) {
      for (int k = 0; k < 3; ++k) test_x.push_back(static_cast<float>(row + k));
      test_y.push_back(row);
    }
    const auto n = static_cast<std::int64_t>(order.size()), m = static_cast<std::int64_t>(test.size());
    save_npz(root_ / "arrays.npz", {{"x_train", from_values(x, {n, 3})},
                                    {"y_train", from_values(y, {n})},
                                    {"x_test", from_values(test_x, {m, 3})},
                                    {"y_test", from_values(test_y, {m})}});
  }
};

TEST_F(RunDirectoryTest, OtherDataAreRefused) {
  write("config.toml",
        std::string("[data]\nkind = \"npz\"\nfile = \"arrays.npz\"\ntest_x = \"x_test\"\ntest_y = \"y_test\"\n") +
            layers_and_train);
  std::vector<int> rows(400), reversed(400), few(31), paired(400);
  std::iota(rows.begin(), rows.end(), 0);
  reversed.assign(rows.rbegin(), rows.rend());
  std::iota(few.begin(), few.end(), 0);
  paired = rows;
  std::shuffle(paired.begin(), paired.end(), std::mt19937(1));
  const auto changed_to = [&](const auto& change, const std::string& what) {
    write_arrays(rows, rows);
    ASSERT_EQ(begin(), ok) << errors_;
    change();
    expect_refused(what);
  };
  changed_to([&] { write_arrays(few, few); }, "31 training examples, not 400");
  changed_to([&] { write_arrays(reversed, reversed); }, "the training examples stand in another order");
  changed_to([&] { write_arrays(paired, rows); }, "features and labels of the training examples go together otherwise");
  changed_to([&] { write_arrays(paired, reversed); },
             "features and labels of the training examples go together otherwise");
  changed_to([&] { write_arrays(rows, paired); }, "features and labels of the training examples go together otherwise");
  changed_to([&] { write_arrays(rows, rows, 1e-3F); }, "the training examples have other features");
  changed_to([&] { write_arrays(rows, rows, 0, {0, 1, 3, 2}); }, "the test examples stand in another order");
  changed_to([&] { write_arrays(few, few, 0, {0, 1, 2}); }, "31 training examples, not 400; 3 test examples, not 4");
}

TEST_F(RunDirectoryTest, TheSameDataAreTakenFromAnywhere) {
  write_images("train", 64, 4);
  write_images("test", 16, 4);
  write("config.toml", std::string(layers_and_train) + idx_data);
  ASSERT_EQ(begin(), ok) << errors_;
  fs::create_directories(root_ / "elsewhere");
  for (const char* file : {"train_images", "train_labels", "test_images", "test_labels"})
    fs::rename(root_ / file, root_ / "elsewhere" / file);
  TrainArguments moved = resuming(2);
  moved.data_directory = root_ / "elsewhere";
  EXPECT_EQ(status_of([&] { return train(moved); }), ok) << errors_;
  std::string facts = contents(root_ / "run/data.json");
  facts.replace(facts.find("\"checksum\""), 10, "\"was_once\"");  // as of a run of long ago
  write("run/data.json", facts);
  EXPECT_EQ(status_of([&] { return train(resuming(3)); }), ok) << errors_;
  expect_error("has no checksum of the data");
  TrainArguments alone = beginning();
  alone.output = root_ / "other";
  alone.data_changed = true;
  EXPECT_EQ(status_of([&] { return train(alone); }), usage);
}

TEST_F(RunDirectoryTest, EveryKindOfDataHasAChecksum) {
  const auto changed = [&](const std::string& config, const std::string& file, const std::string& from,
                           const std::string& to, const std::string& what) {
    write("config.toml", config);
    ASSERT_EQ(begin(), ok) << errors_;
    const std::string before = contents(root_ / file);
    std::string after = before;
    after.replace(after.find(from), from.size(), to);
    write(file, after);
    expect_refused(what);
    write(file, before);
  };
  std::string table = "a,b,w,y\n", prose;
  for (int i = 0; i < 40; ++i) {
    table += text(i, ',', i % 5, ",1,", i % 4, '\n');
    prose += "abcdefgh ijkl ";
  }
  write("train.csv", table);
  write("test.csv", table);
  const std::string csv = std::string(
                              "[data]\nkind = \"csv\"\ntrain = \"train.csv\"\ntest = \"test.csv\"\nlabel = \"y\"\n"
                              "sample_weight = \"w\"\n") +
                          layers_and_train;
  changed(csv, "train.csv", "7,2,1,3", "7,2,9,3", "the training examples have other labels");  // the weight
  changed(csv, "train.csv", "7,2,1,3", "7,2,1,2", "the training examples have other labels");
  changed(csv, "test.csv", "7,2,1,3\n", "", "39 test examples, not 40");
  write("text.txt", prose);
  changed(
      "[data]\nkind = \"text\"\ntext = \"text.txt\"\ncontext = 4\nstride = 2\ntest_share = 0.2\n"
      "[[layers]]\ntype = \"embedding\"\nwidth = 4\n[[layers]]\ntype = \"scores\"\n[train]\nepochs = 1\n",
      "text.txt", "abcd", "abdc", "the training examples have other contents");
}

TEST_F(RunDirectoryTest, PicturesHaveAChecksumOfTheirFiles) {
  const auto picture = [&](const std::string& file, int grey) {
    fs::create_directories((root_ / file).parent_path());
    save_png(root_ / file, full({4, 4, 3}, grey, u8));
  };
  for (int i = 0; i < 20; ++i) picture(text("pictures/", i % 2 ? "bright/" : "dark/", i, ".png"), i % 2 ? 200 + i : i);
  write("config.toml",
        std::string("[data]\nkind = \"images\"\ntrain = \"pictures\"\nheight = 4\nwidth = 4\n") + layers_and_train);
  const auto changed_by = [&](const auto& change, const std::string& what) {
    ASSERT_EQ(begin(), ok) << errors_;
    change();
    expect_refused(what);
  };
  changed_by([&] { picture("pictures/dark/4.png", 77); }, "the training examples have other features");
  changed_by([&] { fs::remove(root_ / "pictures/dark/4.png"); }, "19 training examples, not 20");
  changed_by([&] { fs::rename(root_ / "pictures/dark/6.png", root_ / "pictures/bright/6.png"); },
             "the training examples have other contents");
  changed_by([&] { fs::rename(root_ / "pictures/dark/10.png", root_ / "pictures/dark/z.png"); },
             "the training examples stand in another order");
}

TEST_F(RunDirectoryTest, TwoAtOnceShareNothing) {
  write_images("train", 512, 8);
  write_images("test", 16, 8);
  write("config.toml", std::string(layers_and_train) + idx_data);
  std::vector<std::string> arguments{"train",    (root_ / "config.toml").string(),
                                     "--output", (root_ / "run").string(),
                                     "--quiet",  "--threads",
                                     "1",        "--epochs",
                                     "40",       "--seed",
                                     ""};
  for (int round = 0; round < 3; ++round) {
    fs::remove_all(root_ / "run");
    std::vector<pid_t> both;
    for (const char* seed : {"1", "2"}) {
      arguments.back() = seed;
      both.push_back(start_process(arguments, [&](auto& files) {
        posix_spawn_file_actions_addopen(&files, 1, (root_ / seed).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_adddup2(&files, 1, 2);
      }));
    }
    const std::multiset<int> ends{exit_of(both[0]), exit_of(both[1])};
    EXPECT_EQ(ends, (std::multiset<int>{ok, failed})) << contents(root_ / "1") << contents(root_ / "2");
    const std::string seed = contents(root_ / "run/config.toml").find("seed = 1") == std::string::npos ? "2" : "1";
    const std::string loser = contents(root_ / (seed == "1" ? "2" : "1"));
    EXPECT_TRUE(loser.find("another process is writing into it") != std::string::npos ||
                loser.find("a training was begun there") != std::string::npos)
        << loser;
    EXPECT_NE(contents(root_ / seed).find("report"), std::string::npos) << contents(root_ / seed);
  }
}

TEST_F(RunDirectoryTest, IsClaimedByOneAtATime) {
  const RunDirectory run(root_ / "run");
  {
    RunClaim claim(run);
    claim.begin_training();
    EXPECT_THROW(RunClaim other(run), Unavailable);
    EXPECT_EQ(status_of([&] { return train(beginning()); }), failed);
  }
  EXPECT_FALSE(fs::exists(run.checkpoints()));  // no training came of it
  fs::create_directories(run.checkpoints());    // or of a run that was killed at once
  {
    RunClaim claim(run);
    claim.begin_training();
    std::ofstream(run.checkpoints() / "checkpoint-000001-step-1.json") << "a checkpoint";
  }
  RunClaim claim(run);
  EXPECT_THROW(claim.begin_training(), Unavailable);
}

TEST_F(RunDirectoryTest, WhatIsNoRegularFileIsRefusedAtOnce) {
  write_images("train", 32, 4);
  write_images("test", 16, 4);
  const fs::path pipe = root_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto config = [&](const std::string& data) {
    write("config.toml", data + layers_and_train);
    return status_of([&] { return train(beginning()); });
  };
  EXPECT_EQ(status_of([&] { return train({.config = pipe, .output = root_ / "run"}); }), failed);
  expect_error(pipe.string() + ": is a pipe; expected a regular file");
  for (const char* data : {"[data]\nkind = \"csv\"\ntrain = \"pipe\"\nlabel = \"y\"\n",
                           "[data]\nkind = \"npz\"\nfile = \"pipe\"\n", "[data]\nkind = \"text\"\ntext = \"pipe\"\n",
                           "[data]\ntrain_images = \"pipe\"\ntrain_labels = \"train_labels\"\n"
                           "test_images = \"test_images\"\ntest_labels = \"test_labels\"\n"}) {
    EXPECT_EQ(config(data), failed) << data;
    expect_error(pipe.string() + ": is a pipe; expected a regular file");
  }
  for (const char* name : {"p.npy", "p.npz", "p.safetensors", "p.onnx", "p.toml"}) {
    fs::create_symlink(pipe, root_ / name);
    EXPECT_EQ(status_of([&] { return inspect({.path = root_ / name}); }), failed) << name;
    expect_error("is a pipe; expected a regular file");
  }
}

}  // namespace
}  // namespace gradus::command::run_directory_test
