/// Messages by UCX between processes of this machine: the same bits by shared memory and by TCP, and what becomes of
/// the others when a rank is killed, stopped, or sends what nobody expects. Skipped where UCX is not there.
#include "gradus/distribute/messages/ucx.h"
#include <gtest/gtest.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <charconv>
#include <cstring>
#include <sstream>
#include <thread>
#include "gradus/base/input_file.h"
#include "gradus/distribute/messages/component.h"
#include "tests/distribute/processes_as_ranks.h"
#include "tests/distribute/summands.h"
#include "tests/environment_variables.h"
#include "tests/errors.h"

namespace gradus::ucx_test {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<Transport> joined(const ProcessOfTest& process, bool notices = false) {
  auto transport = ucx_transport({process.option, "lo", notices, 15s});
  const std::string address = transport->open();
  transport->join(process.meet(address, process.rank, process.ranks));
  return transport;
}

const ProcessJob sums("sums", [](const ProcessOfTest& process) {
  const auto transport = joined(process);
  Collectives collectives(*transport, 8, 15s, 64 << 10);
  for (std::uint64_t step = 0; step < 3; ++step) {
    collectives.begin_step(step);
    for (const DType type : {f32, f64, bf16, f16, i64})
      for (const std::int64_t count : {1, 1000, 30'001})
        check(all_reduced(collectives, type, count) == plain_sums(type, 8, count), text("other sums of ", type));
    Bytes bytes = summands(u8, process.rank, 5000);
    collectives.broadcast(process.ranks - 1, bytes);
    check(bytes == summands(u8, process.ranks - 1, 5000), "another broadcast");
    collectives.barrier();
  }
});

const ProcessJob large("large", [](const ProcessOfTest& process) {
  const auto transport = joined(process);
  Collectives collectives(*transport, 2, 15s);
  const std::int64_t count = 3'000'000;
  check(all_reduced(collectives, f32, count) == plain_sums(f32, 2, count), "other sums");
});

const ProcessJob killed("killed", [](const ProcessOfTest& process) {
  const auto transport = joined(process, true);
  Collectives collectives(*transport, 3, 15s);
  for (int step = 0;; ++step) {
    if (step == 5 && process.rank == 2) raise(SIGKILL);
    collectives.begin_step(static_cast<std::uint64_t>(step));
    all_reduced(collectives, f32, 20'000);
  }
});

const ProcessJob stopped("stopped", [](const ProcessOfTest& process) {
  const auto transport = joined(process);
  Collectives collectives(*transport, 2, 400ms);
  for (int step = 0;; ++step) {
    if (step == 5 && process.rank == 1) raise(SIGSTOP);
    collectives.begin_step(static_cast<std::uint64_t>(step));
    all_reduced(collectives, f32, 20'000);
  }
});

const ProcessJob lengths("lengths", [](const ProcessOfTest& process) {
  const auto transport = joined(process);
  Collectives collectives(*transport, 2, 2s);
  all_reduced(collectives, f32, process.rank == 0 ? 100 : 101);
});

/// Rank 2 dies; the others form a group of two on the same transport, with new addresses.
const ProcessJob forming("forming", [](const ProcessOfTest& process) {
  const auto transport = joined(process, true);
  {
    Collectives collectives(*transport, 3, 15s);
    all_reduced(collectives, f32, 20'000);
    if (process.rank == 2) {
      for (const char* done : {"done.0", "done.1"}) process.fetch(done);
      raise(SIGKILL);
    }
    process.publish(text("done.", process.rank), "");
    error_of<Unavailable>([&] { all_reduced(collectives, f32, 20'000); });
  }
  const std::string address = transport->open();
  transport->join(process.meet(address, process.rank, 2, 2));
  Collectives collectives(*transport, 3, 15s);
  check(all_reduced(collectives, f32, 20'000) == plain_sums(f32, 3, 20'000), "other sums after forming again");
});

/// Rank 0 is done and goes, while rank 2 still waits for rank 1.
const ProcessJob leaving("leaving", [](const ProcessOfTest& process) {
  const auto transport = joined(process, process.rank % 2 == 0);
  Exchange exchange(*transport, "the last exchange");
  std::byte word{5};
  if (process.rank == 1) {
    process.fetch("left");
    std::this_thread::sleep_for(300ms);  // until rank 2 has seen it
    exchange.send(2, {}, {&word, 1});
  } else if (process.rank == 2) {
    exchange.receive(1, {}, {&word, 1});
  }
  exchange.finish(15s);
  if (process.rank == 0) {
    transport->close("");
    process.publish("left", "");
  }
});

const ProcessJob sealed("sealed", [](const ProcessOfTest& process) {
  const auto transport = joined(process);
  Collectives collectives(*transport, 2, 15s);
  for (int round = 0; round < 20; ++round) {  // each sleeps in turn while the other one waits
    if (round % 2 == process.rank) std::this_thread::sleep_for(3ms);
    collectives.barrier();
  }
  DIR* const folder = opendir("/proc/self/fd");
  while (const dirent* const entry = readdir(folder)) {
    int descriptor = -1;
    std::from_chars(entry->d_name, entry->d_name + std::strlen(entry->d_name), descriptor);
    struct stat status{};
    if (descriptor < 3 || fstat(descriptor, &status) != 0 || !S_ISSOCK(status.st_mode)) continue;
    check((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0, text("descriptor ", descriptor, " outlives exec"));
  }
  closedir(folder);
  collectives.barrier();
});

class Ucx : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    static const std::string problem = problem_of_ucx();
    if (!problem.empty()) GTEST_SKIP() << problem;
  }
};

TEST_P(Ucx, SumsHaveTheSameBits) {
  for (const int ranks : {1, 2, 3, 4, 8}) expect_all_well(run_as_processes("sums", ranks, GetParam()));
}

TEST_P(Ucx, LargeSums) { expect_all_well(run_as_processes("large", 2, GetParam())); }

TEST_P(Ucx, AKilledRankIsNoticed) {
  const auto ended = run_as_processes("killed", 3, GetParam());
  EXPECT_TRUE(ended[2].was_killed);
  for (const std::size_t rank : {0u, 1u}) {
    EXPECT_FALSE(ended[rank].was_late || ended[rank].was_killed);
    EXPECT_NE(ended[rank].problem, "");
    EXPECT_LT(ended[rank].seconds, 12);
  }
  expect_says(ended[0].problem + ended[1].problem, "rank 2 (here)");
}

TEST_P(Ucx, AStoppedRankIsAnErrorAtTheDeadline) {
  const auto ended = run_as_processes("stopped", 2, GetParam());
  EXPECT_FALSE(ended[0].was_late || ended[0].was_killed);
  expect_says(ended[0].problem, "rank 1 (here)");
  expect_says(ended[0].problem, " for 0.4 s");
}

TEST_P(Ucx, OtherLengthsAreAnError) {
  const auto ended = run_as_processes("lengths", 2, GetParam());
  for (const EndedProcess& each : ended) EXPECT_FALSE(each.was_late || each.was_killed);
  expect_says(ended[0].problem + ended[1].problem, "bytes where ");
}

TEST_P(Ucx, RanksFormAgain) {
  const auto ended = run_as_processes("forming", 3, GetParam());
  EXPECT_TRUE(ended[2].was_killed);
  for (const std::size_t rank : {0u, 1u}) {
    EXPECT_EQ(ended[rank].problem, "");
    EXPECT_FALSE(ended[rank].was_late || ended[rank].was_killed);
  }
}

TEST_P(Ucx, WhoIsDoneMayGo) { expect_all_well(run_as_processes("leaving", 3, GetParam())); }

TEST_P(Ucx, SocketsAreClosedOnExec) { expect_all_well(run_as_processes("sealed", 2, GetParam())); }

/// The error of a group of two in which the other rank gives this address.
std::string problem_of_address(const std::string& address) {
  const auto transport = ucx_transport({"tcp,self", "lo", false, 200ms});
  const std::string own = transport->open();
  try {
    transport->join({0, 1, {{"rank 0 (here)", own}, {"rank 1 (there)", address}}});
  } catch (const Unavailable& error) { return error.what(); }
  return "none";
}

/// UCX itself reads an address without checking its length.
TEST_P(Ucx, AddressesThatAreNoneDoNotReachUcx) {
  const std::string good = ucx_transport({GetParam(), "lo", false, 200ms})->open();
  std::vector<std::string> wrong{"",        "x", std::string(15, 'a'), std::string(16, 'a'), std::string(500, '\xff'),
                                 good + "x"};
  for (std::size_t length = 0; length < good.size(); length += 1 + good.size() / 16)
    wrong.push_back(good.substr(0, length));
  for (std::size_t at = 0; at < good.size(); at += 1 + good.size() / 32) {
    wrong.push_back(good);
    wrong.back()[at] = static_cast<char>(wrong.back()[at] ^ 4);
  }
  for (const std::string& each : wrong)
    expect_says(problem_of_address(each), text("rank 1 (there) gives ", each.size(), " bytes that are no address"));
}

/// Another user of the same group could write into the segments of others.
const ProcessJob memory("memory", [](const ProcessOfTest& process) {
  const auto transport = joined(process);
  Collectives collectives(*transport, 2, 15s);
  all_reduced(collectives, f32, 300'000);
  std::istringstream segments(read_text_file("/proc/sysvipc/shm"));
  std::string line;
  for (std::getline(segments, line); std::getline(segments, line);) {
    std::istringstream fields(line);
    long key = 0, id = 0, mode = 0, size = 0, creator = 0;
    fields >> key >> id >> mode >> size >> creator;
    check(creator != getpid(), "a segment of System V: " + line);
  }
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    struct stat status{};
    if (gone || !target.starts_with("/dev/shm/") || stat(entry.path().c_str(), &status) != 0) continue;
    check((status.st_mode & 077) == 0, target + " is open to others");
  }
  collectives.barrier();
});

TEST(UcxMemory, IsThisUsersAlone) {
  if (const std::string problem = problem_of_ucx(); !problem.empty()) GTEST_SKIP() << problem;
  const std::string transports = shared_memory_transports();
  EXPECT_TRUE(transports == "posix,cma,self" || transports == "posix,self") << transports;
  expect_all_well(run_as_processes("memory", 2, transports));
}

using Dispositions = std::vector<void (*)(int)>;

Dispositions dispositions() {
  Dispositions all;
  for (int signal = 1; signal < 65; ++signal) {
    struct sigaction found{};
    sigaction(signal, nullptr, &found);
    all.push_back(found.sa_handler);
  }
  return all;
}

const ProcessJob hung_up("hung up", [](const ProcessOfTest& process) {
  signal(SIGHUP, SIG_DFL);  // a terminal may have left it ignored
  const Dispositions before = dispositions();
  const auto transport = joined(process);
  const Dispositions after = dispositions();
  for (std::size_t i = 0; i < before.size(); ++i) check(before[i] == after[i], text("signal ", i + 1, " is handled"));
  Collectives collectives(*transport, 2, 15s);
  collectives.barrier();
  raise(SIGHUP);
});

TEST(UcxSignals, AreTheProgramsUnlessTheUserSaysOtherwise) {
  if (const std::string problem = problem_of_ucx(); !problem.empty()) GTEST_SKIP() << problem;
  const VariablesOfTest unset({{"UCX_DEBUG_SIGNO", std::nullopt}, {"UCX_HANDLE_ERRORS", std::nullopt}});
  for (const EndedProcess& each : run_as_processes("hung up", 2))
    EXPECT_TRUE(each.was_killed && !each.was_late) << each.problem;
}

const ProcessJob debugged("debugged", [](const ProcessOfTest&) {
  ucx_transport({"self", "lo", false, 1s})->open();
  struct sigaction found{};
  sigaction(SIGUSR1, nullptr, &found);
  check(found.sa_handler != SIG_DFL, "UCX_DEBUG_SIGNO has no effect");
  sigaction(SIGHUP, nullptr, &found);
  check(found.sa_handler == SIG_DFL, "SIGHUP is taken");
});

TEST(UcxSignals, ThatTheUserNamesStay) {
  if (const std::string problem = problem_of_ucx(); !problem.empty()) GTEST_SKIP() << problem;
  expect_all_well(run_as_processes("debugged", 1, {}, {{"UCX_DEBUG_SIGNO", "SIGUSR1"}}));
}

INSTANTIATE_TEST_SUITE_P(Ways, Ucx, testing::Values("posix,cma,self", "tcp,self"),
                         [](const auto& way) { return way.index == 0 ? "SharedMemory" : "Tcp"; });

TEST(Components, WhatIsMissingIsNamed) {
  const std::string message = error_of<Unavailable>(
      [] { load({"gradus_nothing", "entry", "doing nothing", "libnothing-dev", "libnothing0"}); });
  expect_says(message, "doing nothing is not in this build of Gradus: libgradus_nothing.so is not in ");
  expect_says(message, "install the package libnothing-dev and build Gradus again");
  expect_says(message, "install gradus-ranks");
}

}  // namespace
}  // namespace gradus::ucx_test
