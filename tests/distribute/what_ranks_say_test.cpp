/// What a strategy of several ranks says once on standard error: who it is, where ranks meet, by what tensors travel,
/// and which rows it has; and the choice of the interface.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include "gradus/distribute/mirrored/worker_group.h"
#include "gradus/gradus.h"
#include "tests/distribute/processes_as_ranks.h"
#include "tests/environment_variables.h"
#include "tests/errors.h"

namespace gradus::what_ranks_say_test {
namespace {

using namespace std::chrono_literals;

void expect_says_once(const std::string& all, const std::string& part) {
  EXPECT_NE(all.find(part), std::string::npos) << part << '\n' << all;
  EXPECT_EQ(all.find(part), all.rfind(part)) << part << '\n' << all;
}

const ProcessJob tells("tells", [](const ProcessOfTest& process) {
  const Cluster cluster{.rank = process.rank,
                        .timeout = 15s,
                        .size = process.ranks,
                        .meeting_point = "127.0.0.1:" + process.option,
                        .credentials = {.token = "secret"},
                        .source = "a test"};
  const MultiWorkerMirroredStrategy strategy(cluster, {.micro_shards = 4});
  set_seed(1);
  Sequential model{Dense(1)};
  SGD optimizer;
  const auto batches = data::from_tensor_slices(ones({9, 2}), ones({9, 1})).batch(4);
  fit(model, optimizer, MeanSquaredError(), batches,
      {.epochs = 2, .validation = batches, .strategy = strategy, .verbose = false});
});

TEST(WhatRanksSay, IsWhatWasReadAndWhatTheyHave) {
  if (const std::string problem = problem_of_ucx() + problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
  const std::string port = std::to_string(free_port());
  struct Row {
    const char *variable, *value, *way;
  };
  const Row rows[] = {{"UCX_NET_DEVICES", "lo", "shared memory"},
                      {"UCX_TLS", "tcp,self", "lo, UCX_TLS=tcp,self"},
                      {"UCX_TLS", "sm,self", "lo, UCX_TLS=sm,self"}};  // a user's own setting stays
  for (const Row& row : rows) {
    const auto ended = run_as_processes("tells", 2, port, {{row.variable, row.value}});
    expect_all_well(ended);
    const std::string end =
        " of 2 ranks, meeting at 127.0.0.1:" + port + " (a test); tensors travel by " + row.way + "\n";
    expect_says_once(ended[0].output, "gradus: cluster: chief 0" + end);
    expect_says_once(ended[1].output, "gradus: cluster: worker 1" + end);
    // Batches have 4, 4 and 1 rows, the last one that of the first shard.
    expect_says_once(ended[0].output, " has 5 of 9 rows of an epoch, shards 0 .. 1 of 4 of each batch\n");
    expect_says_once(ended[1].output, " has 4 of 9 rows of an epoch, shards 2 .. 3 of 4 of each batch\n");
  }
}

TEST(WhatRanksSay, IsNothingInOneProcess) {
  testing::internal::CaptureStderr();
  const MultiWorkerMirroredStrategy alone(Cluster{.size = 1}), simulated(Cluster::simulated(2));
  for (const Strategy& strategy : std::vector<Strategy>{alone, simulated})
    for (const Tensor x : strategy.distribute(data::from_tensor_slices(ones({4, 2})).batch(2)))
      EXPECT_EQ(x.shape()[0], 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(WhatRanksSay, NamesAParameterServerThatDoesNotComeWithItsAddress) {
  if (const std::string problem = problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
  const std::string rank = "127.0.0.1:" + std::to_string(free_port());
  const std::string server = "127.0.0.1:" + std::to_string(free_port());
  testing::internal::CaptureStderr();
  const std::string problem = error_of<Unavailable>([&] {
    const ParameterServerStrategy strategy(
        {.workers = {rank}, .parameter_servers = {server}, .timeout = 400ms, .heartbeat = 100ms, .source = "a test"});
  });
  expect_says(problem, "waits for parameter server 0 at " + server);
  expect_says_once(testing::internal::GetCapturedStderr(),
                   "gradus: cluster: chief 0 of 1 rank and 1 parameter server, meeting at " + rank +
                       " (a test); values travel by gRPC\n");
}

Cluster meeting_at(const std::string& host, std::string interface = {}) {
  return {.size = 2, .meeting_point = host + ":2222", .interface = std::move(interface)};
}

TEST(InterfaceOfUcx, IsNoneOnOneHost) {
  if (std::getenv("UCX_TLS") != nullptr) GTEST_SKIP() << "UCX_TLS says it";
  const UcxChoice choice = detail::ucx_choice(meeting_at("10.0.0.1", "eth7"), true);
  EXPECT_EQ(choice.transports, shared_memory_transports());
  EXPECT_EQ(choice.devices, "");
}

/// A label of more than 63 characters, which nobody asks the network for.
const std::string unknown_host(64, 'x');

TEST(InterfaceOfUcx, IsLeftToTheUserWhoNamesDevices) {
  const VariablesOfTest set({{"UCX_NET_DEVICES", "mlx5_0:1"}});
  for (const std::string& host : {std::string("127.0.0.1"), unknown_host}) {
    const UcxChoice choice = detail::ucx_choice(meeting_at(host), false);
    EXPECT_EQ(choice.devices, "") << host;
    EXPECT_EQ(choice.problem, "") << host;
    EXPECT_TRUE(detail::way_of(choice).starts_with("mlx5_0:1")) << detail::way_of(choice);
  }
}

TEST(InterfaceOfUcx, IsLeftToUcxWhereNoneIsKnown) {
  const VariablesOfTest unset({{"UCX_NET_DEVICES", std::nullopt}});
  const UcxChoice choice = detail::ucx_choice(meeting_at(unknown_host), false);
  EXPECT_EQ(choice.devices, "");
  EXPECT_EQ(choice.transports, "");
  expect_says(detail::way_of(choice), "all interfaces (the one that leads to the meeting is not known: the host of " +
                                          unknown_host + ":2222 is not known: ");
  EXPECT_EQ(detail::ucx_choice(meeting_at(unknown_host, "eth7"), false).problem, "");
}

TEST(InterfaceOfUcx, IsThatWhichReachesTheMeetingUnlessNamed) {
  const VariablesOfTest unset({{"UCX_NET_DEVICES", std::nullopt}});
  const std::string loopback = interface_of("127.0.0.1");
  EXPECT_NE(loopback, "");
  EXPECT_EQ(interface_of("198.51.100.1"), "");
  struct Row {
    const char *host, *interface;
    std::string devices;
  };
  const Row rows[] = {
      {"127.0.0.1", "", loopback},  // hosts that share a network, as containers do
      {"localhost", "", loopback},
      {"127.0.0.1", "eth7", "eth7"},
      {"0x7f000001", "", ""},  // a name that means this host's loopback, to this host alone
  };
  for (const Row& row : rows) {
    const UcxChoice choice = detail::ucx_choice(meeting_at(row.host, row.interface), false);
    EXPECT_EQ(choice.devices, row.devices) << row.host;
    EXPECT_EQ(choice.transports, "") << row.host;
  }
}

TEST(InterfaceOfUcx, IsTheFirstThatIsUpAndHasTheAddress) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, "10.0.0.1", &address.sin_addr);
  char names[][8] = {"down0", "bare0", "up0:1", "up1"};
  const unsigned flags[] = {0, IFF_UP, IFF_UP, IFF_UP};
  ifaddrs list[4] = {};
  for (int i = 0; i < 4; ++i) {
    list[i].ifa_next = i < 3 ? &list[i + 1] : nullptr;
    list[i].ifa_name = names[i];
    list[i].ifa_flags = flags[i];
    list[i].ifa_addr = i == 1 ? nullptr : reinterpret_cast<sockaddr*>(&address);
  }
  EXPECT_EQ(interface_of("10.0.0.1", list), "up0");
  EXPECT_EQ(interface_of("10.0.0.2", list), "");
  list[0].ifa_next = nullptr;
  EXPECT_EQ(interface_of("10.0.0.1", list), "");
}

TEST(InterfaceOfUcx, IsTheOneThatHasTheAddress) {
  const VariablesOfTest unset({{"UCX_NET_DEVICES", std::nullopt}});
  ifaddrs* all = nullptr;
  ASSERT_EQ(getifaddrs(&all), 0);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(all, &freeifaddrs);
  std::map<std::string, std::string> names;  // by address, of the first that is up
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET || (each->ifa_flags & IFF_UP) == 0) continue;
    char written[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr, written, sizeof written);
    names.emplace(written, std::string(each->ifa_name).substr(0, std::string(each->ifa_name).find(':')));
  }
  for (const auto& [address, name] : names) {
    EXPECT_EQ(interface_of(address), name);
    const bool is_own = !Address{address, 1}.is_loopback();
    EXPECT_EQ(is_own ? detail::ucx_choice(meeting_at(address), false).devices : name, name) << address;
  }
  EXPECT_FALSE(names.empty());
}

}  // namespace
}  // namespace gradus::what_ranks_say_test
