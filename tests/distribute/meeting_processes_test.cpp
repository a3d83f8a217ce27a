/// Meetings of processes by gRPC: the token, certificates, and what becomes of the others when a rank is killed or
/// stopped. Skipped where gRPC is not there.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <condition_variable>
#include "gradus/distribute/meeting.h"
#include "tests/distribute/processes_as_ranks.h"
#include "tests/errors.h"

namespace gradus {
namespace {

using namespace std::chrono_literals;

/// The cluster of a process, whose option is the port.
Cluster cluster_of_process(const ProcessOfTest& process) {
  Cluster cluster;
  cluster.size = process.ranks;
  cluster.rank = process.rank;
  cluster.meeting_point = "127.0.0.1:" + process.option;
  cluster.timeout = 15s;
  cluster.heartbeat = 5s;
  cluster.credentials.token = "secret";
  return cluster;
}

/// Waits for the meeting to tell of a failure, at most 12 s.
std::string heard(Meeting& meeting) {
  std::mutex mutex;
  std::condition_variable changed;
  std::string why;
  meeting.on_failure([&](const std::string& told) {
    const std::lock_guard lock(mutex);
    why = told;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait_for(lock, 12s, [&] { return !why.empty(); });
  return why;
}

const ProcessJob meets("meets", [](const ProcessOfTest& process) {
  Meeting meeting(cluster_of_process(process), {"print", "1.0"});
  const auto all = meeting.share("address", std::string(3000, static_cast<char>('a' + process.rank)));
  check(static_cast<int>(all.size()) == process.ranks, "another number of values");
  for (int rank = 0; rank < process.ranks; ++rank)
    check(all[static_cast<std::size_t>(rank)] == std::string(3000, static_cast<char>('a' + rank)), "another value");
  meeting.leave();
});

const ProcessJob differs("differs", [](const ProcessOfTest& process) {
  Meeting(cluster_of_process(process), {process.rank == 1 ? "another model" : "print", "1.0"});
});

const ProcessJob stranger("stranger", [](const ProcessOfTest& process) {
  Cluster cluster = cluster_of_process(process);
  cluster.timeout = 1500ms;
  cluster.heartbeat = 400ms;
  if (process.rank == 1) cluster.credentials.token = "guess";
  Meeting(cluster, {"print", "1.0"});
});

const ProcessJob ends("ends", [](const ProcessOfTest& process) {
  Meeting meeting(cluster_of_process(process), {"print", "1.0"});
  meeting.share("all here", "");
  const int victim = process.ranks - 1;
  if (process.rank == victim) {
    std::this_thread::sleep_for(500ms);  // by then its question is held, whose end tells of its own
    raise(SIGKILL);
  }
  throw Unavailable(heard(meeting));
});

const ProcessJob desk_ends("desk ends", [](const ProcessOfTest& process) {
  Meeting meeting(cluster_of_process(process), {"print", "1.0"});
  meeting.share("all here", "");
  if (process.rank == 0) raise(SIGKILL);
  throw Unavailable(heard(meeting));
});

/// Rank 0 is killed when rank 1 knows of a commit: rank 2 hears of it from rank 1, which waits for that.
const ProcessJob witness("witness", [](const ProcessOfTest& process) {
  Meeting meeting(cluster_of_process(process), {"print", "1.0"});
  if (process.rank == 1) check(meeting.note(7), "the commit comes too late");
  meeting.share("noted", "");
  if (process.rank == 0) {
    std::this_thread::sleep_for(300ms);  // by then all have its answer
    raise(SIGKILL);
  }
  const std::string why = heard(meeting);
  if (process.rank == 2) std::this_thread::sleep_for(1s);
  const auto last = meeting.fail(why);
  check(last == 7u, text("the last commit is ", last.value_or(0)));
  if (process.rank == 1) check(!meeting.note(8), "a commit after the end");
});

/// Rank 0 ends in order, and with it the desk, before rank 1 leaves or fails: nobody is lost.
void end_late(const ProcessOfTest& process, bool in_order) {
  Meeting meeting(cluster_of_process(process), {"print", "1.0"});
  meeting.share("all here", "");
  if (process.rank == 1) std::this_thread::sleep_for(1500ms);
  if (process.rank != 1 || in_order) meeting.leave();
}
const ProcessJob leaves_late("leaves late", [](const ProcessOfTest& process) { end_late(process, true); });
const ProcessJob fails_late("fails late", [](const ProcessOfTest& process) { end_late(process, false); });

void stop_one(const ProcessOfTest& process, int victim) {
  Cluster cluster = cluster_of_process(process);
  cluster.heartbeat = 300ms;
  Meeting meeting(cluster, {"print", "1.0"});
  meeting.set_doing("all_reduce 3 of step 12");
  meeting.share("all here", "");
  std::this_thread::sleep_for(400ms);
  if (process.rank == victim) raise(SIGSTOP);
  throw Unavailable(heard(meeting));
}
const ProcessJob stops("stops", [](const ProcessOfTest& process) { stop_one(process, 2); });
const ProcessJob desk_stops("desk stops", [](const ProcessOfTest& process) { stop_one(process, 0); });

const ProcessJob by_certificates("by certificates", [](const ProcessOfTest& process) {
  Cluster cluster = cluster_of_process(process);
  const std::string folder = GRADUS_TEST_CERTIFICATES;
  cluster.credentials = {"secret", folder + "/certificate.pem", folder + "/key.pem", folder + "/authority.pem"};
  Meeting(cluster, {"print", "1.0"}).leave();
});

/// Rank 0 has good certificates; `of_rank_1` are those of the other one.
void meet_with(const ProcessOfTest& process, const Credentials& of_rank_1) {
  Cluster cluster = cluster_of_process(process);
  cluster.timeout = 1500ms;
  cluster.heartbeat = 400ms;
  const std::string folder = GRADUS_TEST_CERTIFICATES;
  cluster.credentials = {"secret", folder + "/certificate.pem", folder + "/key.pem", folder + "/authority.pem"};
  if (process.rank == 1) cluster.credentials = of_rank_1;
  Meeting(cluster, {"print", "1.0"}).leave();
}
const ProcessJob by_strange("by strange certificates", [](const ProcessOfTest& process) {
  const std::string folder = GRADUS_TEST_CERTIFICATES;
  meet_with(process,
            {"secret", folder + "/strange_certificate.pem", folder + "/strange_key.pem", folder + "/authority.pem"});
});
const ProcessJob of_strange("of a strange authority", [](const ProcessOfTest& process) {
  const std::string folder = GRADUS_TEST_CERTIFICATES;
  meet_with(process, {"secret", folder + "/certificate.pem", folder + "/key.pem", folder + "/strange_certificate.pem"});
});
const ProcessJob without("without certificates",
                         [](const ProcessOfTest& process) { meet_with(process, {.token = "secret"}); });

class MeetingByGrpc : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string problem = problem_of_grpc();
    if (!problem.empty()) GTEST_SKIP() << problem;
  }
  static std::vector<EndedProcess> run(const std::string& job, int ranks) {
    return run_as_processes(job, ranks, std::to_string(free_port()));
  }
};

TEST_F(MeetingByGrpc, AllComeAndShare) {
  for (const int ranks : {1, 2, 4}) expect_all_well(run("meets", ranks));
}

TEST_F(MeetingByGrpc, AnotherFingerprintEndsForAllAtOnce) {
  const auto ended = run("differs", 3);
  for (const EndedProcess& each : ended) {
    expect_says(each.problem,
                "the fingerprint of program, model and strategy is another model there and print at rank 0");
    EXPECT_FALSE(each.was_late);
    EXPECT_LT(each.seconds, 10);
  }
}

TEST_F(MeetingByGrpc, AStrangerIsTurnedAway) {
  const auto ended = run("stranger", 2);
  expect_says(ended[1].problem, "turns this process away");
  expect_says(ended[1].problem, "GRADUS_TOKEN");
  expect_says(ended[0].problem, "missing after 1.5 s: rank 1");
  expect_says(ended[0].output, "gradus: the meeting has turned ipv4:127.0.0.1:");
  expect_says(ended[0].output, " away: it has another token, or none\n");
}

TEST_F(MeetingByGrpc, AKilledRankIsToldToAllAtOnce) {
  const auto ended = run("ends", 3);
  EXPECT_TRUE(ended[2].was_killed);
  for (const std::size_t rank : {0u, 1u}) {
    expect_says(ended[rank].problem, "rank 2 (");
    expect_says(ended[rank].problem, "is gone: its connection has ended");
    EXPECT_LT(ended[rank].seconds, ended[2].seconds + 4);
  }
}

TEST_F(MeetingByGrpc, TheEndOfRank0IsNoticed) {
  const auto ended = run("desk ends", 3);
  EXPECT_TRUE(ended[0].was_killed);
  for (const std::size_t rank : {1u, 2u}) {
    expect_says(ended[rank].problem, "rank 0 (");
    EXPECT_LT(ended[rank].seconds, ended[0].seconds + 4);
  }
}

TEST_F(MeetingByGrpc, Rank1KnowsTheLastCommitOfARank0ThatWasKilled) {
  const auto ended = run("witness", 3);
  EXPECT_TRUE(ended[0].was_killed);
  for (const std::size_t rank : {1u, 2u}) {
    EXPECT_EQ(ended[rank].problem, "");
    EXPECT_FALSE(ended[rank].was_late);
  }
}

TEST_F(MeetingByGrpc, WhoEndsAfterRank0WaitsForNobody) {
  for (const char* job : {"leaves late", "fails late"}) {
    const auto ended = run(job, 3);
    expect_all_well(ended);
    EXPECT_LT(ended[1].seconds, 4) << job;  // a heartbeat is 5 s
  }
}

TEST_F(MeetingByGrpc, AStoppedRankGivesNoSignOfLife) {
  const auto ended = run("stops", 3);
  for (const std::size_t rank : {0u, 1u}) {
    expect_says(ended[rank].problem, "rank 2 (");
    expect_says(ended[rank].problem, "has given no sign of life for 0.");
    expect_says(ended[rank].problem, "all_reduce 3 of step 12");
  }
}

TEST_F(MeetingByGrpc, AStoppedRank0GivesNoSignOfLife) {
  const auto ended = run("desk stops", 3);
  for (const std::size_t rank : {1u, 2u}) {
    expect_says(ended[rank].problem, "rank 0 (");
    expect_says(ended[rank].problem, "has given no sign of life for 0.6 s");
  }
}

TEST_F(MeetingByGrpc, Certificates) { expect_all_well(run("by certificates", 2)); }

TEST_F(MeetingByGrpc, WhoHasOtherCertificatesIsTurnedAwayAndBothSidesSaySo) {
  struct Row {
    const char *job, *says;
  };
  const Row rows[] = {
      {"by strange certificates", "the TLS handshake has failed: both sides need certificates of one authority"},
      {"by strange certificates", "this process has the certificate "},
      {"by strange certificates", "/strange_key.pem"},
      {"of a strange authority", "certificate verify failed"},
      {"of a strange authority", "/strange_certificate.pem"},
      {"without certificates", "it asks for certificates: set GRADUS_CERTIFICATE"},
  };
  for (const char* job : {"by strange certificates", "of a strange authority", "without certificates"}) {
    const auto ended = run(job, 2);
    expect_says(ended[0].problem, "missing after 1.5 s: rank 1");
    for (const Row& row : rows) {
      if (std::string_view(row.job) != job) continue;
      expect_says(ended[1].problem, row.says);
      expect_says(ended[1].output, row.says);  // while it waits
    }
    const std::string line = "gradus: somebody was turned away at 127.0.0.1:";
    const auto at = ended[0].output.find(line);
    EXPECT_NE(at, std::string::npos) << job << ended[0].output;
    EXPECT_EQ(at, ended[0].output.rfind(line)) << job << ended[0].output;
  }
}

TEST_F(MeetingByGrpc, WhoIsNotThereIsNamedWithTheReason) {
  Cluster cluster;
  cluster.size = 2;
  cluster.rank = 1;
  cluster.meeting_point = "127.0.0.1:" + std::to_string(free_port());
  cluster.timeout = 600ms;
  cluster.heartbeat = 200ms;
  expect_says(error_of<Unavailable>([&] { Meeting(cluster, {"print", "1.0"}); }), "Connection refused");
}

/// All interfaces are those of IPv6, too.
TEST_F(MeetingByGrpc, AMeetingBeyondThisMachineIsReachedByIPv6) {
  if (interface_of("::1").empty()) GTEST_SKIP() << "this machine has no IPv6";
  MeetingDesk desk({});
  for (const char* host : {"2001:db8::1", "node1"}) {
    const Address where{host, free_port()};
    const auto server = grpc_server(where, {}, {}, desk);
    for (const char* own : {"127.0.0.1", "::1"})
      EXPECT_TRUE(grpc_client({own, where.port}, {})->ask("{}", in(10s), true).has_value()) << host << ' ' << own;
  }
}

TEST_F(MeetingByGrpc, AnAddressThatIsTakenIsAnError) {
  const Address where{"127.0.0.1", free_port()};
  MeetingDesk desk({});
  const auto first = grpc_server(where, {}, {}, desk);
  expect_says(error_of<Unavailable>([&] { grpc_server(where, {}, {}, desk); }),
              "rank 0 cannot hold the meeting at 127");
  expect_says(error_of<InvalidArgument>([&] { grpc_server(where, "nothing0", {}, desk); }), "`interface` is nothing0");
}

}  // namespace
}  // namespace gradus
