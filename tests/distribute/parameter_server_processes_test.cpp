/// Parameter servers and workers as processes: the bits of a simulated cluster, whoever is lost, stopped or comes again
/// of the workers; an error on every rank, within the timeout, where a server, rank 0 or what all have in common is not
/// there. Skipped where gRPC is not.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include "gradus/gradus.h"
#include "tests/distribute/processes_as_ranks.h"
#include "tests/distribute/trained.h"
#include "tests/errors.h"

namespace gradus::parameter_server_processes_test {
namespace {

using namespace std::chrono_literals;

/// The option: ports of the desk and of the servers. The last processes are servers.
Cluster cluster_of_test(const ProcessOfTest& process, std::chrono::milliseconds timeout = 20s) {
  std::vector<std::string> addresses;
  std::istringstream ports(process.option);
  for (std::string port; ports >> port;) addresses.push_back("127.0.0.1:" + port);
  const int servers = static_cast<int>(addresses.size()) - 1, workers = process.ranks - servers;
  Cluster cluster{.rank = process.rank,
                  .timeout = timeout,
                  .size = workers,
                  .meeting_point = addresses[0],
                  .heartbeat = std::min<std::chrono::milliseconds>(500ms, timeout / 4),
                  .credentials = {.token = "secret"}};
  cluster.parameter_servers.assign(addresses.begin() + 1, addresses.end());
  if (process.rank >= workers) {
    cluster.task = TaskType::parameter_server;
    cluster.rank -= workers;
  }
  return cluster;
}

using BeforeStep = std::function<void(int step)>;

/// The bytes of all variables and of the losses after two rounds and, if `fits`, one epoch of fit.
std::string trained(const ParameterServerStrategy& strategy, const BeforeStep& before_step = {}, bool fits = false) {
  ClassifierOfTest job;
  const auto step = function([&](Tensor xs, Tensor ys) { return job.step(xs, ys); });
  std::string bytes;
  int number = 0;
  for (int round = 0; round < 2; ++round) {
    for (const std::int64_t rows : {16, 16, 13, 2, 16, 16}) {
      if (before_step) before_step(number++);
      strategy.schedule(step, job.x.rows(0, rows), job.labels.rows(0, rows));
    }
    append_bytes(bytes, strategy.join().value());
    job.optimizer.set_learning_rate(5e-3);
  }
  if (fits) {
    const History history =
        fit(job.model, job.optimizer, job.loss_function, job.batches(), {.strategy = strategy, .verbose = false});
    append_bytes(bytes, full({}, history.loss.back()));
    append_bytes(bytes, strategy.run([&](Tensor xs) { return job.model(xs, inference); }, job.x).concat());
  }
  for (const Variable& v : job.variables()) append_bytes(bytes, v.value());
  return bytes;
}

/// Rank 0 compares with a simulated cluster, the others with rank 0.
void check_bits(const ProcessOfTest& process, const std::string& bytes, bool fits = false) {
  if (process.rank > 0) return check(bytes == process.fetch("bytes"), "other bits than rank 0");
  process.publish("bytes", bytes);
  const Cluster cluster = cluster_of_test(process);
  const ParameterServerStrategy simulated(Cluster::simulated(cluster.ranks(), cluster.servers()), {.max_staleness = 2});
  check(bytes == trained(simulated, {}, fits), "other bits than of a simulated cluster");
}

const ProcessJob training_job("parameter servers", [](const ProcessOfTest& process) {
  std::string bytes;
  {
    const ParameterServerStrategy strategy(cluster_of_test(process), {.max_staleness = 2});
    check(strategy.rank() == process.rank && strategy.num_replicas_in_sync() == 1, "another rank");
    bytes = trained(strategy, {}, true);
  }
  check_bits(process, bytes, true);
});

/// One worker raises a signal in the midst of its work.
void train_with_fault(const ProcessOfTest& process, int signal) {
  std::string bytes;
  {
    const ParameterServerStrategy strategy(cluster_of_test(process), {.max_staleness = 2});
    bytes = trained(strategy, [&](int step) {
      const char* const chosen = std::getenv("GRADUS_TEST_STEP");
      if (step == (chosen != nullptr ? std::stoi(chosen) : 4) && process.rank == 1) raise(signal);
    });
  }
  check_bits(process, bytes);
}
const ProcessJob killed_job("worker killed", [](const ProcessOfTest& process) { train_with_fault(process, SIGKILL); });
const ProcessJob stopped_job("worker stopped",
                             [](const ProcessOfTest& process) { train_with_fault(process, SIGSTOP); });

/// It starts itself again, as a launcher does.
const ProcessJob again_job("worker again", [](const ProcessOfTest& process) {
  const bool is_first = !std::filesystem::exists(process.folder / "began");
  std::string bytes;
  {
    const ParameterServerStrategy strategy(cluster_of_test(process), {.max_staleness = 2});
    if (process.rank == 1 && !is_first) process.publish("again", "");
    bytes = trained(strategy, [&](int step) {
      if (step == 3 && process.rank == 1 && is_first) {
        process.publish("began", "");
        if (fork() == 0) {
          execl("/proc/self/exe", "/proc/self/exe", "--gtest_filter=Processes.RunTheJobOfTheirRank", nullptr);
          _exit(1);
        }
        _exit(0);
      }
      if (process.rank == 0 && step == 8) process.fetch("again");
    });
  }
  if (process.rank != 1) check_bits(process, bytes);
});

/// The server, or rank 0, is lost after the first steps.
void lose_one(const ProcessOfTest& process, int signal) {
  const Cluster cluster = cluster_of_test(process, 2s);
  if (cluster.task == TaskType::parameter_server) process.publish("server", std::to_string(getpid()));
  if (process.rank == 0) process.publish("rank 0", std::to_string(getpid()));
  const ParameterServerStrategy strategy(cluster, {.max_staleness = 2});
  trained(strategy, [&](int step) {
    if (step == 5 && process.rank == 1) kill(std::stoi(process.fetch(std::getenv("GRADUS_TEST_VICTIM"))), signal);
  });
}
const ProcessJob kill_job("process killed", [](const ProcessOfTest& process) { lose_one(process, SIGKILL); });
const ProcessJob stop_job("process stopped", [](const ProcessOfTest& process) { lose_one(process, SIGSTOP); });

/// A server is killed and started again in the midst of the training, as by a launcher: nothing is lost.
const ProcessJob back_job("server again", [](const ProcessOfTest& process) {
  const Cluster cluster = cluster_of_test(process);
  if (cluster.task == TaskType::parameter_server)
    process.publish(text("server ", cluster.rank), std::to_string(getpid()));
  std::string bytes;
  {
    const ParameterServerStrategy strategy(
        cluster, {.max_staleness = 2, .checkpoints = process.folder / "checkpoints", .checkpoint_steps = 3});
    bytes = trained(strategy, [&](int step) {
      if ((step != 4 && step != 9) || process.rank != 1) return;
      const std::string victim = step == 4 ? "server 1" : "server 0";
      kill(std::stoi(process.fetch(victim)), SIGKILL);
      if (fork() != 0) return;
      setenv("GRADUS_TEST_RANK", step == 4 ? "3" : "2", 1);
      execl("/proc/self/exe", "/proc/self/exe", "--gtest_filter=Processes.RunTheJobOfTheirRank", nullptr);
      _exit(1);
    });
  }
  check_bits(process, bytes);
});

/// The same without checkpoints.
const ProcessJob blank_job("server again, blank", [](const ProcessOfTest& process) {
  const Cluster cluster = cluster_of_test(process);
  if (cluster.task == TaskType::parameter_server) process.publish("server", std::to_string(getpid()));
  const ParameterServerStrategy strategy(cluster, {.max_staleness = 2});
  trained(strategy, [&](int step) {
    if (step != 4 || process.rank != 1) return;
    kill(std::stoi(process.fetch("server")), SIGKILL);
    if (fork() != 0) return;
    setenv("GRADUS_TEST_RANK", "2", 1);
    execl("/proc/self/exe", "/proc/self/exe", "--gtest_filter=Processes.RunTheJobOfTheirRank", nullptr);
    _exit(1);
  });
});

const ProcessJob failing_job("worker fails", [](const ProcessOfTest& process) {
  const ParameterServerStrategy strategy(cluster_of_test(process), {.max_staleness = 2});
  trained(strategy, [&](int step) {
    if (step == 3 && process.rank == 1) throw Error("the disk is full");
  });
});

const ProcessJob bad_step_job("bad step", [](const ProcessOfTest& process) {
  const ParameterServerStrategy strategy(cluster_of_test(process), {.max_staleness = 2});
  TableOfTest job;
  const auto step = function([&](Tensor rows) { return job.step(rows); });
  for (const std::int32_t row : {0, 1, 7, 2}) strategy.schedule(step, TableOfTest::batch(row));
  strategy.join();
});

const ProcessJob programs_job("other programs", [](const ProcessOfTest& process) {
  const ParameterServerStrategy strategy(cluster_of_test(process), {.max_staleness = 2});
  const double factor = process.rank + 1;
  for (int i = 0; i < 8; ++i) strategy.schedule([&](Tensor x) { return factor * x; }, ones({2}));
  strategy.join();
});
const ProcessJob batches_job("other batches", [](const ProcessOfTest& process) {
  const ParameterServerStrategy strategy(cluster_of_test(process), {.max_staleness = 2});
  const auto step = function([](Tensor x) { return x; });
  for (int i = 0; i < 8; ++i) strategy.schedule(step, full({2}, process.rank));
  strategy.join();
});
const ProcessJob counts_job("other counts", [](const ProcessOfTest& process) {
  const ParameterServerStrategy strategy(cluster_of_test(process), {.max_staleness = 2});
  const auto step = function([](Tensor x) { return x; });
  for (int i = 0; i < 2 + process.rank; ++i) strategy.schedule(step, ones({2}));
  strategy.join();
});
const ProcessJob staleness_job("other staleness", [](const ProcessOfTest& process) {
  const ParameterServerStrategy strategy(cluster_of_test(process), {.max_staleness = process.rank == 1 ? 1 : 0});
});
const ProcessJob absent_job("server absent", [](const ProcessOfTest& process) {
  const Cluster cluster = cluster_of_test(process, 1s);
  if (cluster.task == TaskType::parameter_server) return;
  const ParameterServerStrategy strategy(cluster, {.max_staleness = 2});
});
const ProcessJob token_job("other token", [](const ProcessOfTest& process) {
  Cluster cluster = cluster_of_test(process, 2s);
  if (process.rank == 1) cluster.credentials.token = "another";
  const ParameterServerStrategy strategy(cluster, {.max_staleness = 2});
});

class ParameterServers : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string problem = problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
  }
  static std::vector<EndedProcess> run(const char* job, int workers, int servers,
                                       std::map<std::string, std::string> variables = {}) {
    std::string ports;
    for (int i = 0; i <= servers; ++i) ports += std::to_string(free_port()) + " ";
    variables.emplace("GRADUS_NUM_THREADS", "1");
    return run_as_processes(job, workers + servers, ports, variables, 40s);
  }
  /// All but `lost` end by themselves, with an error that says `part`.
  static void expect_errors(const std::vector<EndedProcess>& ended, std::size_t lost, const std::string& part) {
    SCOPED_TRACE(part);
    for (std::size_t rank = 0; rank < ended.size(); ++rank) {
      if (rank == lost) continue;
      EXPECT_FALSE(ended[rank].was_killed || ended[rank].was_late) << rank;
      EXPECT_LT(ended[rank].seconds, 30) << rank;
      expect_says(ended[rank].problem, part);
    }
  }
};
constexpr std::size_t nobody = 99;

TEST_F(ParameterServers, HaveTheBitsOfASimulatedCluster) { expect_all_well(run("parameter servers", 3, 2)); }

TEST_F(ParameterServers, ALostWorkersStepIsDoneAgain) {
  for (const char* step : {"0", "3", "6", "11"}) {  // of 12
    const auto ended = run("worker killed", 3, 1, {{"GRADUS_TEST_STEP", step}});
    EXPECT_TRUE(ended[1].was_killed) << step;
    for (const std::size_t rank : {0, 2, 3}) EXPECT_EQ(ended[rank].problem, "") << step;
  }
}

TEST_F(ParameterServers, AStoppedWorkersStepIsDoneByAnother) {
  const auto ended = run("worker stopped", 3, 1);
  for (const std::size_t rank : {0, 2, 3}) {
    EXPECT_EQ(ended[rank].problem, "");
    EXPECT_FALSE(ended[rank].was_late);
  }
}

TEST_F(ParameterServers, AWorkerComesAgain) { expect_all_well(run("worker again", 3, 1)); }

TEST_F(ParameterServers, AServerComesBackWithItsValues) {
  const auto ended = run("server again", 2, 2);
  for (const std::size_t rank : {0, 1}) EXPECT_EQ(ended[rank].problem, "");
  for (const std::size_t server : {2, 3}) EXPECT_TRUE(ended[server].was_killed);
  expect_errors({ended.begin(), ended.begin() + 2}, nobody, "");
}

TEST_F(ParameterServers, SayThatAServerHasLostItsValues) {
  expect_errors(run("server again, blank", 2, 1), 2, "restarted without a checkpoint");
}

TEST_F(ParameterServers, NameTheServerThatIsLost) {
  for (const char* job : {"process killed", "process stopped"})
    expect_errors(run(job, 2, 1, {{"GRADUS_TEST_VICTIM", "server"}}), 2, "parameter server 0");
}

TEST_F(ParameterServers, NameRank0ThatIsLost) {
  for (const char* job : {"process killed", "process stopped"})
    expect_errors(run(job, 3, 1, {{"GRADUS_TEST_VICTIM", "rank 0"}}), 0, "rank 0");
}

TEST_F(ParameterServers, SayWhyARankFailed) {
  const auto ended = run("worker fails", 3, 1);
  expect_says(ended[1].problem, "the disk is full");
  expect_errors(ended, 1, "rank 1");
  const auto bad = run("bad step", 2, 1);
  expect_errors(bad, nobody, "7");
}

TEST_F(ParameterServers, RefuseWhatDiffers) {
  expect_errors(run("other programs", 2, 1), nobody, "other programs, batches or random numbers");
  expect_errors(run("other batches", 2, 1), nobody, "other programs, batches or random numbers");
  expect_errors(run("other counts", 2, 1), nobody, "the number of scheduled steps is 2 on rank 0");
  expect_errors(run("other staleness", 2, 1), nobody, "max_staleness 1");
  const auto token = run("other token", 2, 1);
  expect_says(token[1].problem, "GRADUS_TOKEN");
  expect_says(token[0].problem, "rank 1");
}

TEST_F(ParameterServers, NameWhoIsMissing) {
  const auto ended = run("server absent", 2, 1);
  for (const std::size_t rank : {0, 1}) expect_says(ended[rank].problem, "parameter server 0");
}

}  // namespace
}  // namespace gradus::parameter_server_processes_test
