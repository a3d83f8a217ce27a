/// Strategies over processes: the bits of one process with as many shards, and an error on every rank when one of them
/// is lost or differs. Skipped where UCX or gRPC is not there.
#include <gtest/gtest.h>
#include <signal.h>
#include <cstring>
#include "gradus/base/input_file.h"
#include "gradus/gradus.h"
#include "tests/distribute/grids.h"
#include "tests/distribute/processes_as_ranks.h"
#include "tests/distribute/strategies_as_threads.h"
#include "tests/distribute/trained.h"
#include "tests/errors.h"

namespace gradus::strategy_processes_test {
namespace {

using namespace std::chrono_literals;

Cluster cluster_of_test(const ProcessOfTest& process) {
  return {.rank = process.rank,
          .timeout = 30s,
          .size = process.ranks,
          .meeting_point = "127.0.0.1:" + process.option,
          .heartbeat = 3s,
          .credentials = {.token = "secret"}};
}

/// The bytes of all variables after a training by hand and by fit, then the loss.
std::string trained(const Strategy& strategy, const std::function<void(int step)>& before_step = {}) {
  ClassifierOfTest job;
  const auto step =
      function([&](Tensor xs, Tensor ys) { return std::pair{job.step(xs, ys), job.model(xs, inference)}; });
  double loss = 0;
  Tensor outputs;
  int number = 0;
  for (const std::int64_t rows : {16, 16, 13, 2}) {
    if (before_step) before_step(number++);
    const auto [of_all, each] = strategy.run(step, job.x.rows(0, rows), job.labels.rows(0, rows));
    loss = of_all.item();
    outputs = each.concat();
  }
  const History history =
      fit(job.model, job.optimizer, job.loss_function, job.batches(),
          {.epochs = 2, .metrics = {SparseCategoricalAccuracy()}, .strategy = strategy, .verbose = false});
  std::string bytes;
  for (const Variable& v : job.variables()) append_bytes(bytes, v.value());
  append_bytes(bytes, outputs);
  for (const double value : {loss, history.loss.back(), history["sparse_categorical_accuracy"].back()})
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

std::string trained_alone() { return trained(MirroredStrategy({.devices = {cpu(0)}, .micro_shards = 8})); }

/// Whether UCX has mapped memory that other processes map, too.
bool shares_memory() {
  const std::string maps = read_text_file("/proc/self/maps");
  return maps.find("ucx_shm") != std::string::npos || maps.find("/SYSV") != std::string::npos;
}

const ProcessJob training_job("training", [](const ProcessOfTest& process) {
  const MultiWorkerMirroredStrategy strategy(cluster_of_test(process), {.micro_shards = 8});
  check(strategy.rank() == process.rank && strategy.num_replicas_in_sync() == process.ranks, "another rank");
  check(trained(strategy) == trained_alone(), "other bits");
  const char* const said = std::getenv("UCX_TLS");
  const bool shares = said == nullptr || std::string_view(said).find("sm") != std::string_view::npos;
  check(process.ranks == 1 || shares_memory() == shares, "messages do not go the way that was said");
});

const ProcessJob killed_job("killed in training", [](const ProcessOfTest& process) {
  const MultiWorkerMirroredStrategy strategy(cluster_of_test(process), {.micro_shards = 4});
  trained(strategy, [&](int step) {
    if (step == 2 && process.rank == 1) raise(SIGKILL);
  });
});

const ProcessJob stopped_job("stopped in training", [](const ProcessOfTest& process) {
  const MultiWorkerMirroredStrategy strategy(cluster_of_test(process), {.micro_shards = 4});
  trained(strategy, [&](int step) {
    if (step == 2 && process.rank == 1) raise(SIGSTOP);
  });
});

const ProcessJob failing_job("failing in training", [](const ProcessOfTest& process) {
  const MultiWorkerMirroredStrategy strategy(cluster_of_test(process), {.micro_shards = 4});
  trained(strategy, [&](int step) {
    if (step == 2 && process.rank == 1) throw Error("the disk is full");
  });
});

const ProcessJob different_job("different models", [](const ProcessOfTest& process) {
  const MultiWorkerMirroredStrategy strategy(cluster_of_test(process));
  const double factor = process.rank == 0 ? 2 : 3;
  strategy.run([&](Tensor x) { return all_reduce_sum(factor * reduce_sum(x)); }, ones({4}));
});

const ProcessJob batches_job("different batches", [](const ProcessOfTest& process) {
  const MultiWorkerMirroredStrategy strategy(cluster_of_test(process));
  strategy.run([&](Tensor x) { return all_reduce_sum(reduce_sum(x)); }, ones({4 + 2 * process.rank}));
});

const ProcessJob shards_job("different shards", [](const ProcessOfTest& process) {
  const MultiWorkerMirroredStrategy strategy(cluster_of_test(process), {.micro_shards = 4 + process.rank});
});

/// One rank asks to stop, and all stop after the same step.
const ProcessJob stopping_job("asked to end", [](const ProcessOfTest& process) {
  const MultiWorkerMirroredStrategy strategy(cluster_of_test(process));
  Sequential model{Dense(1)};
  SGD optimizer;
  const auto dataset = data::from_tensor_slices(ones({40, 2}), ones({40, 1})).batch(4);
  int steps = 0;
  const Callback callback{.on_step_end = [&](StepLog log) {
    ++steps;
    if (process.rank == 1 && steps == 13) log.stop = true;
  }};
  fit(model, optimizer, MeanSquaredError(), dataset,
      {.epochs = 5, .callbacks = {callback}, .strategy = strategy, .verbose = false});
  check(steps == 13 && optimizer.iterations() == 13, text("ended after step ", steps));
});

/// Rank 1 begins where the others have not been.
const ProcessJob ahead_job("ahead of the others", [](const ProcessOfTest& process) {
  const MultiWorkerMirroredStrategy strategy(cluster_of_test(process));
  Sequential model{Dense(1)};
  SGD optimizer;
  const auto dataset = data::from_tensor_slices(ones({4, 2}), ones({4, 1})).batch(4);
  fit(model, optimizer, MeanSquaredError(), dataset,
      {.epochs = 5, .initial_epoch = process.rank, .strategy = strategy, .verbose = false});
});

class MultiWorker : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string problem = problem_of_ucx() + problem_of_grpc();
    if (!problem.empty()) GTEST_SKIP() << problem;
  }
  static std::vector<EndedProcess> run(const std::string& job, int ranks,
                                       const std::map<std::string, std::string>& variables = {}) {
    return run_as_processes(job, ranks, std::to_string(free_port()), variables, 60s);
  }
};

TEST_F(MultiWorker, HasTheBitsOfOneProcess) {
  for (const int ranks : numbers_of_ranks({1, 2, 3}, {1, 2, 3, 4, 8})) expect_all_well(run("training", ranks));
}

TEST_F(MultiWorker, HasTheBitsOfOneProcessByTcp) {
  for (const int ranks : numbers_of_ranks({2}, {1, 2, 3, 4, 8}))
    expect_all_well(run("training", ranks, {{"UCX_TLS", "tcp,self"}}));
}

TEST(RanksOfOneProcess, HaveTheBitsOfOneRank) {
  const std::string alone = trained_alone();
  for (const int ranks : numbers_of_ranks({2, 3}, {1, 2, 3, 4, 8}))
    expect_all_well(run_on_ranks({.ranks = ranks, .micro_shards = 8}, [&](const Strategy& strategy, int rank) {
      EXPECT_TRUE(trained(strategy) == alone) << "rank " << rank << " of " << ranks;
    }));
}

TEST_F(MultiWorker, NamesARankThatWasKilled) {
  const auto ended = run("killed in training", 3);
  EXPECT_TRUE(ended[1].was_killed);
  for (const std::size_t rank : {0u, 2u}) {
    EXPECT_FALSE(ended[rank].was_killed || ended[rank].was_late);
    expect_says(ended[rank].problem, "rank 1");
  }
}

TEST_F(MultiWorker, NamesARankThatWasStopped) {
  const auto ended = run("stopped in training", 2);
  EXPECT_FALSE(ended[0].was_killed || ended[0].was_late);
  expect_says(ended[0].problem, "rank 1");
}

TEST_F(MultiWorker, SaysWhyARankFailed) {
  const auto ended = run("failing in training", 2);
  EXPECT_LT(ended[0].seconds, 20);  // it is told, and does not wait for the deadline
  expect_says(ended[1].problem, "the disk is full");
  expect_says(ended[0].problem, "rank 1");
}

TEST_F(MultiWorker, StopsWhereOneRankAsksFor) { expect_all_well(run("asked to end", 3)); }

TEST_F(MultiWorker, RefusesWhatDiffers) {
  for (const EndedProcess& each : run("ahead of the others", 2))
    expect_says(each.problem, "fit: initial_epoch is 0 on rank 0");

  for (const char* job : {"different models", "different batches"})
    for (const EndedProcess& each : run(job, 2)) {
      EXPECT_FALSE(each.was_killed || each.was_late) << job;
      expect_says(each.problem, "rank 1");
    }
  for (const EndedProcess& each : run("different shards", 2)) expect_says(each.problem, "micro_shards 5");
}

}  // namespace
}  // namespace gradus::strategy_processes_test
