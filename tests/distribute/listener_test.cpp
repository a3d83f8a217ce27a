/// Connections that wait and do not prove that they belong here do not keep ranks out.
#include "gradus/distribute/messages/listener.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <set>
#include "gradus/distribute/membership/meeting.h"
#include "tests/distribute/processes_as_ranks.h"
#include "tests/errors.h"

namespace gradus::listener_test {
namespace {

using namespace std::chrono_literals;

/// A client's end of a connection.
class Caller {
 public:
  explicit Caller(int port) : Caller() { EXPECT_TRUE(connects(port)); }
  Caller() : opened_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  Caller(Caller&& other) noexcept : opened_(std::exchange(other.opened_, -1)) {}
  ~Caller() {
    if (opened_ >= 0) close(opened_);
  }
  bool connects(int port) const {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(static_cast<std::uint16_t>(port));
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connect(opened_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
  }
  /// The client's address as gRPC writes it on the server's side.
  std::string peer() const {
    sockaddr_in own{};
    socklen_t size = sizeof own;
    getsockname(opened_, reinterpret_cast<sockaddr*>(&own), &size);
    return text("ipv4:127.0.0.1:", ntohs(own.sin_port));
  }
  /// True if the other side has ended the connection.
  bool has_ended() const {
    char byte = 0;
    return recv(opened_, &byte, 1, MSG_DONTWAIT) == 0;
  }

 private:
  int opened_;
};

/// Takes connections like gRPC, except that ended ones stay open until the test's end.
class Taken {
 public:
  ~Taken() {
    for (const int each : all_) close(each);
  }
  Listener::Uses uses() {
    return {[this](int descriptor) {
              const std::lock_guard lock(mutex_);
              all_.insert(descriptor);
            },
            [this](const std::string& problem) {
              const std::lock_guard lock(mutex_);
              told_ += problem;
            }};
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return all_.size();
  }
  std::string told() {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  std::mutex mutex_;
  std::set<int> all_;
  std::string told_;
};

bool comes_true(const auto& condition, std::chrono::milliseconds patience = 20s) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(1ms);
  return condition();
}

TEST(Listeners, KeepFewConnectionsThatHaveNotShownWhoTheyAre) {
  Taken taken;
  Listener listener({"127.0.0.1", 0});
  listener.start(taken.uses());
  const std::size_t most = Listener::most_unproven(raise_descriptor_limit());
  const Caller friendly(listener.port());
  ASSERT_TRUE(comes_true([&] { return listener.unproven() == 1; }));
  listener.prove(friendly.peer());
  EXPECT_EQ(listener.unproven(), 0u);
  listener.prove("ipv4:127.0.0.1:1");
  listener.prove("nonsense");
  std::vector<Caller> idle;
  while (idle.size() < 2 * most) idle.emplace_back(listener.port());
  const Caller late(listener.port());
  ASSERT_TRUE(comes_true([&] { return taken.count() == 2 * most + 2; })) << taken.count();
  EXPECT_LE(listener.unproven(), most);
  listener.prove(late.peer());
  EXPECT_TRUE(comes_true([&] { return idle.front().has_ended(); })) << "the oldest goes first";
  EXPECT_FALSE(idle.back().has_ended());
  EXPECT_FALSE(friendly.has_ended() || late.has_ended());
  EXPECT_EQ(taken.told(), "");
}

/// gRPC's texts of peers: IPv6, and IPv4 at a socket of IPv6.
TEST(Listeners, KnowPeersByTheirTexts) {
  Taken taken;
  Listener everywhere({"0.0.0.0", 0});
  everywhere.start(taken.uses());
  const Caller by_v4(everywhere.port());
  ASSERT_TRUE(comes_true([&] { return everywhere.unproven() == 1; }));
  everywhere.prove(by_v4.peer());
  EXPECT_EQ(everywhere.unproven(), 0u);
  if (interface_of("::1").empty()) GTEST_SKIP() << "NOT TESTED further: this machine has no IPv6";
  for (const char* before : {"ipv6:%5B::1%5D:", "ipv6:[::1]:", "ipv6:%5B::1%25lo%5D:"}) {
    const int opened = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 where{};
    where.sin6_family = AF_INET6;
    where.sin6_port = htons(static_cast<std::uint16_t>(everywhere.port()));
    where.sin6_addr = in6addr_loopback;
    ASSERT_EQ(connect(opened, reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
    socklen_t size = sizeof where;
    getsockname(opened, reinterpret_cast<sockaddr*>(&where), &size);
    EXPECT_TRUE(comes_true([&] { return everywhere.unproven() == 1; }));
    everywhere.prove(text(before, ntohs(where.sin6_port)));
    EXPECT_EQ(everywhere.unproven(), 0u) << before;
    close(opened);
  }
}

TEST(Listeners, ForgetConnectionsThatHaveEnded) {
  Taken taken;
  Listener listener({"127.0.0.1", 0});
  listener.start(taken.uses());
  for (int i = 0; i < 10; ++i) Caller ended(listener.port());
  EXPECT_TRUE(comes_true([&] { return taken.count() == 10 && listener.unproven() == 0; }));
  const Caller stays(listener.port());
  EXPECT_TRUE(comes_true([&] { return listener.unproven() == 1; }));
  listener.stop();
  EXPECT_FALSE(stays.has_ended()) << "whoever has taken it ends it";
}

TEST(Listeners, SayWhyNobodyCanListen) {
  const Listener first({"127.0.0.1", 0});
  expect_says(error_of<Unavailable>([&] { Listener({"127.0.0.1", first.port()}); }), "another process listens there");
  expect_says(error_of<Unavailable>([&] { Listener({"0.0.0.0", first.port()}); }), "another process listens there");
  expect_says(error_of<Unavailable>([&] { Listener({"192.0.2.1", 0}); }), "Cannot assign requested address");
  expect_says(error_of<Unavailable>([&] { Listener({std::string(64, 'x'), 0}); }), "its host is not known");
}

const ProcessJob exhausted("exhausted", [](const ProcessOfTest&) {
  const rlimit few{64, 64};
  check(setrlimit(RLIMIT_NOFILE, &few) == 0, "no limit can be set");
  check(raise_descriptor_limit() == 64, "the hard limit was raised");
  Taken taken;
  Listener listener({"127.0.0.1", 0});
  listener.start(taken.uses());
  const Caller caller;
  std::vector<int> all;
  for (int copy = dup(0); copy >= 0; copy = dup(0)) all.push_back(copy);
  check(caller.connects(listener.port()), "no connection");
  check(comes_true([&] { return !taken.told().empty(); }), "nothing was told");
  expect_says(taken.told(), "a connection cannot be taken: this process has no descriptors left, of 64");
  check(taken.count() == 0, "it was taken");
  for (const int each : all) close(each);
  check(comes_true([&] { return taken.count() == 1; }), "it was not taken later");
});

TEST(Listeners, SayThatDescriptorsHaveRunOutAndGoOnLater) { expect_all_well(run_as_processes("exhausted", 1)); }

/// The third process connects as often as it can before rank 1 starts, and keeps its connections.
const ProcessJob besieged("besieged", [](const ProcessOfTest& process) {
  const int port = std::stoi(process.option);
  if (process.rank == 2) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
    setrlimit(RLIMIT_NOFILE, &limit);
    std::vector<Caller> idle;
    const auto comes = [&] {
      if (Caller first; first.connects(port)) idle.push_back(std::move(first));
      return !idle.empty();
    };
    check(comes_true(comes), "rank 0 does not come");
    for (const auto end = in(5s); idle.size() < 600 && std::chrono::steady_clock::now() < end;)
      if (Caller next; next.connects(port)) idle.push_back(std::move(next));
    process.publish("besieged", "");
    process.fetch("met");
    return;
  }
  if (process.rank == 0) {
    const rlimit few{200, 200};
    check(setrlimit(RLIMIT_NOFILE, &few) == 0, "no limit can be set");
  } else {
    process.fetch("besieged");
  }
  Cluster cluster{.rank = process.rank,
                  .timeout = 15s,
                  .size = 2,
                  .meeting_point = "127.0.0.1:" + process.option,
                  .credentials = {.token = "secret"}};
  Meeting meeting(cluster, {"print", "1.0"});
  meeting.share("all here", "");
  if (process.rank == 0) process.publish("met", "");
  meeting.leave();
});

TEST(Listeners, LetRanksInPastStrangersWhoOnlyConnect) {
  if (const std::string problem = problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
  expect_all_well(run_as_processes("besieged", 3, std::to_string(free_port())));
}

}  // namespace
}  // namespace gradus::listener_test
