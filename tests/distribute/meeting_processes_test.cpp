/// Meetings of processes by gRPC: the token, certificates, and what becomes of the others when a rank is killed or
/// stopped. Skipped where gRPC is not there.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <set>
#include <sstream>
#include <streambuf>
#include "gradus/distribute/membership/meeting.h"
#include "gradus/distribute/messages/component.h"
#include "gradus/distribute/messages/grpc_component.h"
#include "tests/distribute/processes_as_ranks.h"
#include "tests/errors.h"

namespace gradus::meeting_processes_test {
namespace {

using namespace std::chrono_literals;

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

class MeetingByGrpc : public RanksByGrpc {};

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
  expect_says(ended[0].problem, "missing after ");
  expect_says(ended[0].problem, " s: rank 1");
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
    expect_says(ended[rank].problem, "has given no sign of life for ");
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
      {"without certificates", "it may ask for certificates (set GRADUS_CERTIFICATE"},
      {"without certificates", "or no process listens on this port yet"},
  };
  for (const char* job : {"by strange certificates", "of a strange authority", "without certificates"}) {
    const auto ended = run(job, 2);
    expect_says(ended[0].problem, "missing after ");
    expect_says(ended[0].problem, " s: rank 1");
    expect_says(ended[1].problem, "it was not started, cannot reach the meeting, or is stopped");
    for (const Row& row : rows) {
      if (std::string_view(row.job) != job) continue;
      expect_says(ended[1].problem, row.says);
      expect_says(ended[1].output, row.says);  // while it waits
    }
    // Who does not take the certificate of rank 0 closes the connection without a word.
    const bool is_silent = std::string_view(job) == "of a strange authority";
    expect_says(ended[0].output,
                is_silent ? "gradus: a connection to 127.0.0.1:" : "gradus: a caller was turned away at 127.0.0.1:");
    std::multiset<std::string> lines;  // of handshakes, each of which is said once
    std::istringstream output(ended[0].output);
    for (std::string line; std::getline(output, line);)
      if (line.find("handshake") != std::string::npos) lines.insert(line);
    for (const std::string& line : lines) EXPECT_EQ(lines.count(line), 1u) << job << ": " << line;
    EXPECT_LE(lines.size(), FailedHandshakes::most_reasons) << job;
  }
}

TEST(FailedHandshakes, AreSaidOnceEachReasonAndBlameCertificatesOnlyWhereTheyAreNamed) {
  FailedHandshakes handshakes("node0:2222");
  const std::string ended = "gradus: a connection to node0:2222 has ended in the TLS handshake: ";
  const std::string turned_away = "gradus: a caller was turned away at node0:2222: the TLS handshake has failed: ";
  const std::string blame = ": it has no certificate of this `authority`, or does not take this one\n";
  EXPECT_EQ(handshakes.line("Socket closed"), ended + "Socket closed\n");
  EXPECT_EQ(handshakes.line("Socket closed"), "");
  EXPECT_EQ(handshakes.line("certificate verify failed"), turned_away + "certificate verify failed" + blame);
  EXPECT_EQ(handshakes.line("SSL_ERROR_SSL: wrong version\n"),
            turned_away + "SSL_ERROR_SSL: wrong version\\x0a" + blame);
  EXPECT_EQ(handshakes.line("certificate verify failed"), "");
  EXPECT_EQ(handshakes.line("Handshake timed out"), ended + "Handshake timed out\n");
  EXPECT_EQ(handshakes.line("a fifth reason"), "");
}

/// What is written to standard error, as it comes from other threads.
class HeardNotices : public std::streambuf {
 public:
  HeardNotices() : before_(std::cerr.rdbuf(this)) {}
  ~HeardNotices() override { std::cerr.rdbuf(before_); }
  std::string wait_for(const std::string& part) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 15s, [&] { return heard_.find(part) != std::string::npos; });
    return heard_;
  }

 private:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    const std::lock_guard lock(mutex_);
    heard_.append(text, static_cast<std::size_t>(size));
    changed_.notify_all();
    return size;
  }
  int overflow(int c) override {
    const char written = static_cast<char>(c);
    return xsputn(&written, 1) == 1 ? c : EOF;
  }
  std::streambuf* const before_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string heard_;
};

/// A TCP socket at a port of the loopback.
class Socket {
 public:
  ~Socket() { close(opened_); }
  bool connects(int port) {
    const sockaddr_in where = at(port);
    return connect(opened_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
  }
  bool listens(int port) {  // and never answers
    const int yes = 1;
    setsockopt(opened_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const sockaddr_in where = at(port);
    return bind(opened_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0 && listen(opened_, 8) == 0;
  }

 private:
  static sockaddr_in at(int port) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(static_cast<std::uint16_t>(port));
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return where;
  }
  const int opened_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

/// As probes of a port do.
TEST_F(MeetingByGrpc, WhoOnlyConnectsIsNotBlamedForItsCertificate) {
  if (std::getenv("GRPC_VERBOSITY") != nullptr) GTEST_SKIP() << "gRPC writes its own log";
  const std::string folder = GRADUS_TEST_CERTIFICATES;
  const Address where{"127.0.0.1", free_port()};
  MeetingDesk desk({});
  HeardNotices notices;
  const auto server = grpc_server(
      where, {}, {"secret", folder + "/certificate.pem", folder + "/key.pem", folder + "/authority.pem"}, desk);
  EXPECT_TRUE(Socket().connects(where.port));
  const std::string said =
      notices.wait_for("gradus: a connection to " + where.to_string() + " has ended in the TLS handshake: ");
  expect_says(said, "has ended in the TLS handshake: ");
  EXPECT_EQ(said.find("certificate"), std::string::npos) << said;
}

class NeverAnswers : public RpcHandler {
  void ask(std::uint64_t, std::string_view, Answer) override {}
  void left(std::uint64_t) override {}
  void refused(std::string_view) override {}
};

TEST_F(MeetingByGrpc, WhatIsLateTellsWhetherThereIsAConnection) {
  const GrpcTable& grpc = table_of<GrpcTable>({"gradus_grpc", "gradus_grpc", "a test", "", ""});
  const auto result_at = [&](int port, int milliseconds) {
    const std::string where = Address{"127.0.0.1", port}.to_string();
    const GrpcClientSettings settings{where.c_str(), {.token = "secret"}, 1000};
    void* const client = grpc.connect(&settings);
    std::array<char, 512> why{};
    const GrpcResult result = grpc.ask(
        client, "", 0, milliseconds, 1, nullptr, [](void*, const char*, std::size_t) {}, why.data(), why.size());
    grpc.disconnect(client);
    return result;
  };
  const int port = free_port();
  Socket silent;
  ASSERT_TRUE(silent.listens(port));
  EXPECT_EQ(result_at(port, 100), GrpcResult::unconnected);
  NeverAnswers handler;
  const Address where{"127.0.0.1", free_port()};
  const auto server = grpc_server(where, {}, {.token = "secret"}, handler);
  EXPECT_EQ(result_at(where.port, 3000), GrpcResult::late);
}

TEST_F(MeetingByGrpc, WhyThereIsNoConnectionIsKnownUntilThereIsOne) {
  const Address where{"127.0.0.1", free_port()};
  const auto client = grpc_client(where, {});
  const auto ask_until = [&](bool is_known) {
    for (const Deadline end = in(15s); client->problem().empty() == is_known && std::chrono::steady_clock::now() < end;)
      EXPECT_EQ(client->ask("", in(100ms), true), std::nullopt);
  };
  ask_until(true);
  expect_says(client->problem(), "Connection refused");
  {
    Socket silent;
    ASSERT_TRUE(silent.listens(where.port));
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(client->ask("", in(50ms), true), std::nullopt);
      EXPECT_NE(client->problem(), "");
    }
  }
  NeverAnswers handler;
  const auto server = grpc_server(where, {}, {}, handler);
  ask_until(false);
  EXPECT_EQ(client->problem(), "");
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
    const auto server = grpc_server(where, {}, {.token = "secret"}, desk);
    for (const char* own : {"127.0.0.1", "::1"})
      EXPECT_TRUE(grpc_client({own, where.port}, {.token = "secret"})->ask("{}", in(10s), true).has_value())
          << host << ' ' << own;
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
}  // namespace gradus::meeting_processes_test
