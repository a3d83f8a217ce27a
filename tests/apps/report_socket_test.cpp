/// The launcher's socket: notes and reports of processes arrive, and nothing that a sender attaches stays open.
#include "apps/gradus/report_socket.h"
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include "gradus/base/error.h"
#include "gradus/base/launcher_note.h"
#include "tests/environment_variables.h"

namespace gradus::command::report_socket_test {
namespace {

TEST(ReportSocket, ReadsNotesAndReports) {
  ReportSocket reports;
  const VariablesOfTest variables{{"GRADUS_LAUNCHER", reports.name()}};
  Cluster cluster{.rank = 1, .size = 3};
  LauncherReports rank(cluster);
  EXPECT_TRUE(reports.read().empty());
  rank.say(RankState::together);
  rank.say(RankState::failed, "no\tfile\x1b[2J");
  rank.say(RankState::left);  // after a failure only a new group is reported
  const std::vector<RankReport> read = reports.read();
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].state, RankState::together);
  EXPECT_EQ(read[1].state, RankState::failed);
  EXPECT_EQ(read[1].process, 1);
  EXPECT_EQ(read[1].ranks, 3);
  EXPECT_EQ(read[1].why.find('\x1b'), std::string::npos) << "a terminal would obey it";

  cluster.in_process = true;
  LauncherReports(cluster).say(RankState::failed, "a thread of a simulated cluster");
  EXPECT_TRUE(reports.read().empty());

  EXPECT_FALSE(reports.is_of_strangers());
  const auto note = [](LauncherNote each) { send_to_launcher(std::string(1, static_cast<char>(each))); };
  note(LauncherNote::trains);
  EXPECT_TRUE(reports.read().empty());
  EXPECT_TRUE(reports.is_of_strangers());
  note(LauncherNote::asks_rank);
  reports.read();
  EXPECT_FALSE(reports.is_of_strangers());
  rank.say(RankState::joins);
  note(LauncherNote::trains);
  reports.forget();
  EXPECT_TRUE(reports.read().empty());
  EXPECT_FALSE(reports.is_of_strangers());
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(ReportSocket, KeepsNoDescriptorsOfOthers) {
  ReportSocket reports;
  const int sending = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, reports.name().data(), reports.name().size());
  std::array<char, 2> bytes{'{', '}'};
  iovec from{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + reports.name().size());
  message.msg_iov = &from;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &sending, sizeof sending);
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(sendmsg(sending, &message, 0), 2);
    EXPECT_TRUE(reports.read().empty());
  }
  EXPECT_EQ(open_descriptors(), before);
  close(sending);
}

}  // namespace
}  // namespace gradus::command::report_socket_test
