#include "tests/distribute/processes_as_ranks.h"
#include <gtest/gtest.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <charconv>
#include <fstream>
#include <thread>
#include "gradus/base/error.h"
#include "gradus/base/input_file.h"
#include "tests/test_directory.h"

extern char** environ;

namespace gradus {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::map<std::string, void (*)(const ProcessOfTest&)>& jobs() {
  static std::map<std::string, void (*)(const ProcessOfTest&)> all;
  return all;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

int number(const std::string& written) {
  int value = 0;
  std::from_chars(written.data(), written.data() + written.size(), value);
  return value;
}

/// What started processes are: this program with one test, the one below.
TEST(Processes, RunTheJobOfTheirRank) {
  if (variable("GRADUS_TEST_JOB").empty()) GTEST_SKIP() << "the body of started processes";
  const ProcessOfTest process{number(variable("GRADUS_TEST_RANK")), number(variable("GRADUS_TEST_RANKS")),
                              variable("GRADUS_TEST_FOLDER"), variable("GRADUS_TEST_OPTION")};
  try {
    jobs().at(variable("GRADUS_TEST_JOB"))(process);
  } catch (const std::exception& error) {
    process.publish(text("problem.", process.rank), error.what());
    _exit(1);
  }
  _exit(testing::Test::HasFailure() ? 1 : 0);
}

pid_t start(const std::string& job, int rank, int ranks, const std::string& folder, const std::string& option,
            const std::map<std::string, std::string>& variables) {
  std::map<std::string, std::string> all = variables;
  all["GRADUS_TEST_JOB"] = job;
  all["GRADUS_TEST_RANK"] = std::to_string(rank);
  all["GRADUS_TEST_RANKS"] = std::to_string(ranks);
  all["GRADUS_TEST_FOLDER"] = folder;
  all["GRADUS_TEST_OPTION"] = option;
  std::vector<std::string> lines;
  for (char** each = environ; *each != nullptr; ++each)
    if (!all.contains(std::string(*each).substr(0, std::string(*each).find('=')))) lines.push_back(*each);
  for (const auto& [name, value] : all) lines.push_back(name + "=" + value);
  std::vector<char*> environment;
  for (std::string& line : lines) environment.push_back(line.data());
  environment.push_back(nullptr);
  std::string program = "/proc/self/exe", filter = "--gtest_filter=Processes.RunTheJobOfTheirRank";
  char* const arguments[] = {program.data(), filter.data(), nullptr};
  const std::string output = folder + "/output." + std::to_string(rank);
  const pid_t child = fork();
  if (child != 0) return child;
  const int file = open(output.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  dup2(file, 1);
  dup2(file, 2);
  execve(program.c_str(), arguments, environment.data());
  _exit(127);
}

}  // namespace

ProcessJob::ProcessJob(const char* name, void (*body)(const ProcessOfTest&)) { jobs()[name] = body; }

void ProcessOfTest::publish(const std::string& name, const std::string& bytes) const {
  const auto whole = folder / name, part = folder / (name + ".part" + std::to_string(rank));
  {
    std::ofstream file(part, std::ios::binary);
    file << bytes;
  }
  std::filesystem::rename(part, whole);
}

std::string ProcessOfTest::fetch(const std::string& name, std::chrono::milliseconds patience) const {
  const auto deadline = Clock::now() + patience;
  while (!std::filesystem::exists(folder / name)) {
    if (Clock::now() > deadline) throw Unavailable(text("no file ", name));
    std::this_thread::sleep_for(1ms);
  }
  return read_text_file(folder / name);
}

Group ProcessOfTest::meet(const std::string& address, int own_rank, int all_ranks, int generation) const {
  publish(text("address.", generation, ".", own_rank), address);
  Group group{own_rank, generation};
  for (int other = 0; other < all_ranks; ++other)
    group.members.push_back({text("rank ", other, " (here)"), fetch(text("address.", generation, ".", other))});
  return group;
}

std::vector<EndedProcess> run_as_processes(const std::string& job, int ranks, const std::string& option,
                                           const std::map<std::string, std::string>& variables,
                                           std::chrono::milliseconds patience) {
  static std::atomic<int> runs = 0;
  const TestDirectory folder(text("processes_", runs++));
  std::filesystem::create_directories(folder);
  std::vector<pid_t> children;
  const auto begin = Clock::now();
  for (int rank = 0; rank < ranks; ++rank)
    children.push_back(start(job, rank, ranks, folder.path().string(), option, variables));
  std::vector<EndedProcess> out(static_cast<std::size_t>(ranks));
  std::vector<bool> ended(out.size());
  bool is_late = false;
  for (std::size_t left = out.size(); left > 0;) {
    for (std::size_t rank = 0; rank < out.size(); ++rank) {
      int status = 0;
      if (ended[rank] || waitpid(children[rank], &status, WNOHANG) != children[rank]) continue;
      ended[rank] = true;
      --left;
      out[rank].was_killed = WIFSIGNALED(status);
      if (out[rank].was_killed) out[rank].signal = WTERMSIG(status);
      out[rank].was_late = is_late;
      out[rank].seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      const std::string problem = text("problem.", rank), output = text("output.", rank);
      out[rank].output = read_text_file(folder.path() / output);
      if (std::filesystem::exists(folder.path() / problem)) out[rank].problem = read_text_file(folder.path() / problem);
      else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        out[rank].problem = text("status ", status, ": ", out[rank].output);
    }
    // A stopped rank stays until the others have ended.
    const bool all_others = left == 1 && (job.find("stop") != std::string::npos);
    if ((all_others || Clock::now() - begin > patience) && left > 0) {
      is_late = true;
      for (std::size_t rank = 0; rank < out.size(); ++rank)
        if (!ended[rank]) kill(children[rank], SIGKILL);
    }
    std::this_thread::sleep_for(2ms);
  }
  return out;
}

void expect_all_well(const std::vector<EndedProcess>& ended) {
  for (std::size_t rank = 0; rank < ended.size(); ++rank) {
    EXPECT_EQ(ended[rank].problem, "") << "rank " << rank;
    EXPECT_FALSE(ended[rank].was_killed || ended[rank].was_late) << "rank " << rank;
  }
}

int free_port() {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(descriptor, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(descriptor);
  return ntohs(address.sin_port);
}

Cluster cluster_of_process(const ProcessOfTest& process, std::chrono::milliseconds timeout) {
  Cluster cluster;
  cluster.size = process.ranks;
  cluster.rank = process.rank;
  cluster.meeting_point = "127.0.0.1:" + process.option;
  cluster.timeout = timeout;
  cluster.heartbeat = 5s;
  cluster.credentials.token = "secret";
  return cluster;
}

void RanksByGrpc::SetUp() {
  static const std::string problem = problem_of_grpc();
  if (!problem.empty()) GTEST_SKIP() << problem;
}

std::vector<EndedProcess> RanksByGrpc::run(const std::string& job, int ranks) {
  return run_as_processes(job, ranks, std::to_string(free_port()));
}

}  // namespace gradus
