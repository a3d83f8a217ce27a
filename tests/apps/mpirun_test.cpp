/// `mpirun -n 2 gradus train`: the bits of one process with as many shards, and what a killed rank leaves. Skipped
/// where Open MPI, UCX, gRPC or the images of Fashion-MNIST are not there.
#include <cstdlib>
#include "tests/apps/command_process.h"
#include "tests/apps/launch_process.h"
#include "tests/components.h"

namespace gradus::command::mpirun_test {
namespace {

constexpr const char* training = R"(
seed = 5
[[layers]]
type = "flatten"
[[layers]]
type = "dense"
units = 16
activation = "relu"
[[layers]]
type = "dropout"
rate = 0.2
[[layers]]
type = "dense"
units = 4
[train]
epochs = 60
batch_size = 25
[distribute]
micro_shards = 4
)";

class UnderMpirun : public LaunchTest {
 protected:
  void SetUp() override {
    if (std::system("mpirun --version > /dev/null 2> /dev/null") != 0)
      GTEST_SKIP() << "SKIPPED: there is no mpirun here: apt-get install openmpi-bin (tools/setup.sh full)";
    if (const std::string problem = problem_of_ucx() + problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
    LaunchTest::SetUp();
  }

  /// Runs a line of the shell; the exit status.
  int run_line(const std::string& line) {
    const std::filesystem::path said = root_ / "stdout.txt", complained = root_ / "stderr.txt";
    const int status =
        std::system(("cd '" + root_.string() + "' && (" + line + ") > stdout.txt 2> stderr.txt < /dev/null").c_str());
    output_ = contents(said);
    errors_ = contents(complained);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  static std::string mpirun(int ranks) { return text("mpirun --oversubscribe -n ", ranks, " "); }
  std::string train(const std::string& arguments) const {
    return std::string(GRADUS_COMMAND) + " train " + arguments + " --threads 1 --quiet";
  }
  std::string weights(const char* run) const { return contents(root_ / run / "weights.safetensors"); }

 private:
  const VariablesOfTest as_root_{{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
};

/// The configuration that `make run` trains, for an epoch; and the launcher of the command beside it.
TEST_F(UnderMpirun, FashionMnistHasTheBitsOfOneProcess) {
  const std::filesystem::path config = std::filesystem::path(GRADUS_CONFIGS) / "fashion_mnist.toml";
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
    GTEST_SKIP() << "SKIPPED: there is no /usr/share/datasets/fashion-mnist here";
  write("config.toml", contents(config) + "\n[distribute]\nmicro_shards = 8\n");
  const std::string options = "config.toml --epochs 1 --batch-size 500 --output ";
  ASSERT_EQ(run_line(train(options + "one")), ok) << errors_;
  ASSERT_EQ(run_line(mpirun(2) + train(options + "two")), ok) << errors_;
  EXPECT_EQ(errors_.find("whole batches"), std::string::npos) << errors_;  // each rank reads its rows
  ASSERT_EQ(run_line(std::string(GRADUS_COMMAND) + " launch -n 2 -- " + train(options + "launched")), ok) << errors_;
  ASSERT_FALSE(weights("one").empty());
  EXPECT_TRUE(weights("one") == weights("two"));
  EXPECT_TRUE(weights("one") == weights("launched"));
}

/// mpirun ends the other ranks itself. The newest checkpoint is whole, and one process goes on to the same bits.
TEST_F(UnderMpirun, AKilledRankEndsTheJob) {
  write_images("train", 160, 8);
  write_images("test", 40, 8);
  write("config.toml", std::string(training) + idx_data);
  ASSERT_EQ(run_line(train("config.toml --output one")), ok) << errors_;
  write("rank.sh", "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then\n" + train("config.toml --output killed") +
                       " & process=$!\nuntil ls killed/checkpoints/* > files 2> no; do sleep 0.01; done\n"
                       "kill -9 $process; wait $process; exit 137\nfi\nexec " +
                       train("config.toml --output killed") + "\n");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NE(run_line(mpirun(2) + "/bin/sh rank.sh"), ok);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  EXPECT_TRUE(weights("killed").empty());
  ASSERT_EQ(run_line(train("--resume killed")), ok) << errors_;
  ASSERT_FALSE(weights("one").empty());
  EXPECT_TRUE(weights("one") == weights("killed"));
}

}  // namespace
}  // namespace gradus::command::mpirun_test
