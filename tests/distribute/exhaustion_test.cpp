/// Threads, descriptors and memory that run out on one rank, one at a time, in each phase of its work: every rank ends
/// by itself, shortly after Cluster::timeout at the latest. Skipped without UCX or gRPC.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include <fstream>
#include <sstream>
#include "gradus/distribute/membership/meeting.h"
#include "gradus/distribute/messages/ucx.h"
#include "gradus/gradus.h"
#include "tests/distribute/processes_as_ranks.h"
#include "tests/distribute/refused_threads.h"

namespace gradus::exhaustion_test {
namespace {

using namespace std::chrono_literals;

/// Leaves no free descriptor, or no more than a page or two of addresses.
void exhaust(const std::string& resource) {
  if (resource.starts_with("threads")) {
    allow_threads(resource == "threads" ? 0 : std::stoi(resource.substr(7)));
  } else if (resource == "descriptors") {
    const int next = dup(0);
    close(next);
    const rlimit none{static_cast<rlim_t>(next), static_cast<rlim_t>(next)};
    check(setrlimit(RLIMIT_NOFILE, &none) == 0, "no limit of descriptors");
  } else {
    std::ifstream sizes("/proc/self/statm");
    rlim_t pages = 0;
    sizes >> pages;
    const rlim_t bytes = (pages + 2) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
    const rlimit none{bytes, bytes};
    check(setrlimit(RLIMIT_AS, &none) == 0, "no limit of memory");
  }
}

/// The resource, the phase from which on it is exhausted, the rank that lacks it, and the port.
struct Row {
  std::string resource, phase;
  int rank = 0;
  std::string port = {};

  std::string written() const { return resource + ' ' + phase + ' ' + std::to_string(rank) + ' ' + port; }
  static Row read(const std::string& option) {
    Row row;
    std::istringstream(option) >> row.resource >> row.phase >> row.rank >> row.port;
    return row;
  }
};

void step(const Strategy& strategy) {
  const auto sums = strategy.run([](Tensor x) { return all_reduce_sum(reduce_sum(x)); }, ones({12}));
  check(sums[0].item() == 12, "another sum");
}

const ProcessJob runs_out("runs out", [](const ProcessOfTest& process) {
  const Row row = Row::read(process.option);
  Cluster cluster;
  cluster.size = process.ranks;
  cluster.rank = process.rank;
  cluster.meeting_point = "127.0.0.1:" + row.port;
  cluster.timeout = 3s;
  cluster.heartbeat = 500ms;
  cluster.credentials.token = "secret";
  const auto at = [&](std::string_view phase) {
    if (row.phase == phase && row.rank == process.rank) exhaust(row.resource);
  };
  at("begin");
  if (row.phase == "meeting" || row.phase == "connect") {
    Meeting meeting(cluster, {"print", "1.0"});
    at("meeting");
    meeting.share("all here", "");
    at("connect");
    const auto transport = ucx_transport({.transports = "sm,self", .timeout = cluster.timeout});
    Group group{.rank = cluster.rank};
    for (const std::string& address : meeting.share("addresses", transport->open()))
      group.members.push_back({meeting.names()[group.members.size()], address});
    transport->join(std::move(group));
    meeting.share("joined", "");
    meeting.leave();
    return;
  }
  const MultiWorkerMirroredStrategy strategy(cluster, {.micro_shards = 4});
  step(strategy);
  at("step");
  for (int i = 0; i < 3; ++i) step(strategy);
  strategy.run([](Tensor x) { return all_reduce_sum(reduce_sum(x * x)); }, ones({12}));  // one more program
  at("end");
});

class Exhaustion : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string problem = problem_of_ucx() + problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
    if (!can_refuse_threads()) GTEST_SKIP() << "a sanitizer has its own threads and addresses";
  }
};

void expect_to_have_ended(const EndedProcess& one, int rank, const Row& row) {
  const std::string which = text(row.written(), ": rank ", rank, ": ");
  EXPECT_FALSE(one.was_late) << which << "it hangs: " << one.output;
  // gRPC aborts its process without memory, and so does the C++ runtime; neither reads or writes out of bounds.
  const bool may_abort = row.resource == "memory" && row.rank == rank;
  EXPECT_TRUE(one.signal == 0 || one.was_late || (one.signal == SIGABRT && may_abort))
      << which << "it ends by signal " << one.signal << ": " << one.output;
  if (row.rank != rank || row.resource != "threads" || one.problem.empty()) return;
  EXPECT_NE(one.problem.find("thread"), std::string::npos) << which << one.problem;
}

TEST_P(Exhaustion, EndsEveryRank) {
  for (const char* phase : {"begin", "meeting", "connect", "step", "end"})
    for (const int sick : {0, 1}) {
      const Row row{GetParam(), phase, sick, std::to_string(free_port())};
      const auto ended = run_as_processes("runs out", 2, row.written(), {}, 30s);
      for (const int rank : {0, 1}) expect_to_have_ended(ended[static_cast<std::size_t>(rank)], rank, row);
    }
}

INSTANTIATE_TEST_SUITE_P(Of, Exhaustion, testing::Values("threads", "threads2", "threads6", "descriptors", "memory"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace gradus::exhaustion_test
