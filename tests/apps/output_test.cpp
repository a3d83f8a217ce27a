/// A result that did not arrive is a failure, of every command: on a full disk, with a closed standard output, with a
/// reader that has gone.
#include <sys/resource.h>
#include <unistd.h>
#include <csignal>
#include "gradus/formats/npy.h"
#include "gradus/onnx/export.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "tests/apps/command_process.h"

namespace gradus::command::output_test {
namespace {
namespace fs = std::filesystem;

/// A run of a table and one of a text, a model of ONNX, and for each command what says something with them.
class Output : public CommandProcessTest {
 protected:
  void SetUp() override {
    std::string table = "a,b,y\n", questions = "a,b\n";
    for (int i = 0; i < 64; ++i) {
      const std::string row = text(i % 7, ',', i % 5);
      table += row + ',' + (i % 2 ? "odd" : "even") + '\n';
      questions += row + '\n';
    }
    write("train.csv", table);
    write("questions.csv", questions);
    write("config.toml",
          "[data]\nkind = \"csv\"\ntrain = \"train.csv\"\nlabel = \"y\"\ncategories = [\"y\"]\n"
          "[[layers]]\ntype = \"dense\"\nunits = 2\n[train]\nepochs = 1\n");
    write("text.txt", "abcdefgh abcdefgh abcdefgh abcdefgh abcdefgh abcdefgh abcdefgh abcdefgh ");
    write("text.toml",
          "[data]\nkind = \"text\"\ntext = \"text.txt\"\ncontext = 4\nstride = 2\ntest_share = 0.2\n"
          "[[layers]]\ntype = \"embedding\"\nwidth = 4\n[[layers]]\ntype = \"scores\"\n[train]\nepochs = 1\n");
    for (const char* name : {"config", "text"})
      ASSERT_EQ(status_of([&] {
                  return train({.config = root_ / (name + std::string(".toml")),
                                .output = root_ / (name + std::string("_run")),
                                .quiet = true});
                }),
                ok)
          << errors_;
    fs::create_directories(root_ / "suite/case/test_data_set_0");
    export_onnx(root_ / "suite/case/model.onnx", [](auto in) { return Tensors{in[0] + in[0]}; }, {{f32, {}}});
    save_npy(root_ / "x.npy", constant(4.0));
  }
  std::string at(const char* name) const { return (root_ / name).string(); }
  std::vector<std::vector<std::string>> commands() const {
    return {{"predict", at("config_run"), at("questions.csv")},
            {"eval", at("config_run")},
            {"eval", at("config_run"), "--json"},
            {"inspect", at("config_run")},
            {"inspect", at("config_run"), "--json"},
            {"inspect", at("suite/case/model.onnx"), "--graph"},
            {"devices"},
            {"devices", "--json"},
            {"sample", at("text_run"), "--characters", "4"},
            {"run", at("suite/case/model.onnx"), "--input", "x=" + at("x.npy"), "--output", at("results")},
            {"train", "--resume", at("config_run"), "--quiet"},
            {"train", "--resume", at("config_run"), "--quiet", "--json"},
            {"train", at("config.toml"), "--fast-dev-run", "1", "--quiet"},
            {"tune", at("config.toml"), "--learning-rate", "--quiet", "--output", at("tuned")},
            {"tune", at("config.toml"), "--vary", "seed=1,2", "--quiet", "--json", "--output", at("tuned")},
            {"--help"},
            {"--version"},
            {"train", "--help"}};
  }
  static std::string spelt(const std::vector<std::string>& arguments) {
    std::string all = "gradus";
    for (const std::string& each : arguments) all += ' ' + each;
    return all;
  }
};

TEST_F(Output, ThatDoesNotArriveIsAFailure) {
  const SetUpFiles full = [](auto& files) { posix_spawn_file_actions_addopen(&files, 1, "/dev/full", O_WRONLY, 0); };
  for (const auto& arguments : commands()) {
    EXPECT_EQ(run(arguments), ok) << spelt(arguments) << ": " << errors_;
    EXPECT_NE(output_, "") << spelt(arguments);
    EXPECT_EQ(run(arguments, full), failed) << spelt(arguments);
    EXPECT_EQ(errors_, "gradus: the result cannot be written to standard output: No space left on device\n")
        << spelt(arguments);
  }
  EXPECT_EQ(run({"onnx-test", at("suite")}, full), failed);
  EXPECT_EQ(run({"train", "--nonsense"}, full), usage);  // nothing was to be said there
}

TEST_F(Output, WithoutAPlaceForItIsAFailure) {
  const SetUpFiles closed = [](auto& files) { posix_spawn_file_actions_addclose(&files, 1); };
  const SetUpFiles none = [](auto& files) {
    for (const int descriptor : {0, 1, 2}) posix_spawn_file_actions_addclose(&files, descriptor);
  };
  for (const auto& arguments : {commands()[0], commands()[4], commands()[6]}) {
    EXPECT_EQ(run(arguments, closed), failed) << spelt(arguments);
    expect_error("gradus: the result cannot be written to standard output: Bad file descriptor");
    EXPECT_EQ(run(arguments, none), failed) << spelt(arguments);
  }
  // Nothing is said there, and no file comes to stand in its place.
  std::vector<std::string> into_a_file = commands()[0];
  ASSERT_EQ(run(into_a_file), ok);
  const std::string table = output_;
  into_a_file.insert(into_a_file.end(), {"--output", at("table.csv")});
  for (const SetUpFiles& set_up : {closed, none}) {
    EXPECT_EQ(run(into_a_file, set_up), ok) << errors_;
    EXPECT_EQ(contents(root_ / "table.csv"), table);
  }
}

TEST_F(Output, OfWhichAPartFitsIsAFailure) {
  std::string questions = "a,b\n";
  for (int i = 0; i < 4000; ++i) questions += text(i % 7, ',', i % 5, '\n');
  write("many.csv", questions);
  const std::vector<std::string> arguments{"predict", at("config_run"), at("many.csv")};
  ASSERT_EQ(run(arguments), ok);
  EXPECT_EQ(std::count(output_.begin(), output_.end(), '\n'), 4001);
  const std::string whole = output_;
  rlimit before{}, small{8192, 8192};
  getrlimit(RLIMIT_FSIZE, &before);
  small.rlim_max = before.rlim_max;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const int status = run(arguments);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status, failed);
  EXPECT_EQ(output_, whole.substr(0, 8192));
  expect_error("File too large");
}

TEST_F(Output, ThatNobodyReadsEndsAsItDoesElsewhere) {
  for (const auto& arguments : {commands()[0], commands()[3], commands()[7], commands()[15]})
    for (const bool ignored : {false, true}) {
      int ends[2];
      ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
      close(ends[0]);
      const auto handler = std::signal(SIGPIPE, ignored ? SIG_IGN : SIG_DFL);
      const int status = run(arguments, [&](auto& files) { posix_spawn_file_actions_adddup2(&files, ends[1], 1); });
      std::signal(SIGPIPE, handler);
      close(ends[1]);
      EXPECT_EQ(status, 128 + SIGPIPE) << spelt(arguments) << ignored;
      EXPECT_EQ(errors_, "") << spelt(arguments) << ignored;
    }
}

}  // namespace
}  // namespace gradus::command::output_test
