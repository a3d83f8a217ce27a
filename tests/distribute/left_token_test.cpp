/// The token that a server of this machine leaves for its user: its readers, the files that are accepted as a token,
/// and the limits of other users without it. Tests with another user run only as root.
#include "gradus/distribute/messages/left_token.h"
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fstream>
#include <sstream>
#include "gradus/base/input_file.h"
#include "gradus/distribute/membership/meeting.h"
#include "gradus/distribute/messages/component.h"
#include "gradus/distribute/messages/grpc_component.h"
#include "gradus/gradus.h"
#include "tests/distribute/processes_as_ranks.h"
#include "tests/errors.h"

namespace gradus::left_token_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// The file of a port in a folder of tokens; empty if there is none.
fs::path file_of(int port) {
  for (const fs::path& folder : token_folders()) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored))
      if (entry.path().filename().string().starts_with(text("meeting-", port, '-'))) return entry.path();
  }
  return {};
}

Address here(int port) { return {"127.0.0.1", port}; }

TEST(LeftTokens, AreFilesOfThisUserAloneAndGoInTheEnd) {
  const Address where = here(free_port());
  {
    const mode_t before = umask(0);
    const LeftToken left(where, "0123456789abcdef");
    umask(before);
    const fs::path file = file_of(where.port);
    ASSERT_FALSE(file.empty());
    struct stat status{};
    ASSERT_EQ(lstat(file.c_str(), &status), 0);
    EXPECT_TRUE(S_ISREG(status.st_mode));
    EXPECT_EQ(status.st_mode & 07777, 0600u);
    EXPECT_EQ(status.st_uid, geteuid());
    ASSERT_EQ(lstat(file.parent_path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    EXPECT_EQ(read_text_file(file), "0123456789abcdef\n");
    EXPECT_EQ(find_token(where).token, "0123456789abcdef");
  }
  EXPECT_TRUE(file_of(where.port).empty());
  EXPECT_EQ(find_token(where).token, "");
}

TEST(LeftTokens, AreDrawnOnceAPortAndProcess) {
  EXPECT_EQ(new_token().size(), 32u);
  EXPECT_NE(new_token(), new_token());
  EXPECT_EQ(token_of_process(70001), token_of_process(70001)) << "a group that forms again";
  EXPECT_NE(token_of_process(70001), token_of_process(70002));
  EXPECT_NE(token_of_process(0), token_of_process(0));
}

TEST(LeftTokens, AreNeededAtTheLoopbackAlone) {
  EXPECT_TRUE(needs_left_token(here(1), {}));
  EXPECT_TRUE(needs_left_token({"localhost", 1}, {}));
  EXPECT_FALSE(needs_left_token({"node1", 1}, {}));
  EXPECT_FALSE(needs_left_token(here(1), {.token = "secret"}));
  EXPECT_FALSE(needs_left_token(here(1), {.certificate = "a", .key = "b", .authority = "c"}));
}

/// The file of another process's token, of which this process knows nothing else.
class FileOfAnother {
 public:
  explicit FileOfAnother(int port) {
    const LeftToken left(here(port), "token");  // makes the folder, and shows the file's name
    file_ = file_of(port);
  }
  ~FileOfAnother() { remove(file_.c_str()); }
  const fs::path& path() const { return file_; }
  void write(const std::string& content, mode_t mode) const {
    remove(file_.c_str());
    std::ofstream(file_) << content;
    EXPECT_EQ(chmod(file_.c_str(), mode), 0);
  }
  /// The result of `find_token` while a process holds the lock, as a living server does.
  FoundToken found_while_locked(int port) const {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      const int opened = open(file_.c_str(), O_RDWR | O_NOFOLLOW);
      struct flock lock{};
      lock.l_type = F_WRLCK;
      const char is_locked = fcntl(opened, F_SETLK, &lock) == 0;
      (void)!::write(ready[1], &is_locked, 1);
      pause();
      _exit(0);
    }
    char is_locked = 0;
    EXPECT_EQ(::read(ready[0], &is_locked, 1), 1);
    const FoundToken found = find_token(here(port));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(ready[0]);
    close(ready[1]);
    return found;
  }

 private:
  fs::path file_;
};

TEST(LeftTokens, AreTakenFromAServerThatLivesAlone) {
  const int port = free_port();
  const FileOfAnother file(port);
  file.write("of a living one\n", 0600);
  EXPECT_EQ(find_token(here(port)).token, "") << "whoever has left it is gone";
  file.write("secret\n", 0600);
  EXPECT_EQ(file.found_while_locked(port).token, "secret");
  EXPECT_EQ(find_token(here(port)).token, "");
  {
    const LeftToken left(here(port), "new");  // replaces it
    EXPECT_EQ(read_text_file(file.path()), "new\n");
  }
  EXPECT_FALSE(fs::exists(file.path()));
}

TEST(LeftTokens, AreNotTakenWhereAnotherUserMayHaveWrittenOrRead) {
  const int port = free_port();
  const FileOfAnother file(port);
  for (const mode_t mode : {0644u, 0660u, 0606u, 0640u}) {
    file.write("secret\n", mode);
    const FoundToken found = file.found_while_locked(port);
    EXPECT_EQ(found.token, "");
    expect_says(found.problem, file.path().string() + " is open to other users (mode ");
  }
  for (const char* content : {"", "\n", "no end", "two words\n", "\x01\n"}) {
    file.write(content, 0600);
    const FoundToken found = file.found_while_locked(port);
    EXPECT_EQ(found.token, "") << content;
    expect_says(found.problem, "holds no token");
  }
  remove(file.path().c_str());
  const fs::path target = file.path().string() + ".target";
  std::ofstream(target) << "secret\n";
  fs::create_symlink(target, file.path());
  EXPECT_EQ(find_token(here(port)).token, "");
  expect_says(find_token(here(port)).problem, file.path().string());
  fs::remove(target);
  remove(file.path().c_str());
  if (geteuid() != 0) return;
  file.write("secret\n", 0600);
  ASSERT_EQ(chown(file.path().c_str(), 65534, 65534), 0);
  EXPECT_EQ(find_token(here(port)).token, "");
  expect_says(find_token(here(port)).problem, "belongs to user 65534, not to user 0");
}

TEST(LeftTokens, AreNotLeftInFoldersOfOthers) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root can pose as several users";
  const int port = free_port();
  const pid_t child = fork();
  if (child == 0) {
    // The folder exists already and belongs to another user.
    const fs::path taken = "/tmp/gradus-54321";
    mkdir(taken.c_str(), 0700);
    if (setuid(54321) != 0) _exit(1);
    const LeftToken left(here(port), "token");
    _exit(file_of(port).string().starts_with("/dev/shm/gradus-54321/") ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  fs::remove_all("/tmp/gradus-54321");
  fs::remove_all("/dev/shm/gradus-54321");
}

// ---------------------------------------------------------------- ranks

/// A cluster as torchrun's variables and mpirun describe it: at the loopback, without a token.
Cluster cluster_without_token(const ProcessOfTest& process, int ranks) {
  Cluster cluster;
  cluster.size = ranks;
  cluster.rank = process.rank;
  cluster.meeting_point = "127.0.0.1:" + process.option;
  cluster.timeout = 15s;
  return cluster;
}

const ProcessJob meet_without_token("meet without a token", [](const ProcessOfTest& process) {
  Meeting meeting(cluster_without_token(process, process.ranks), {"print", "1.0"});
  meeting.share("all here", "");
  meeting.leave();
});

/// Two workers and a parameter server, whose port the test has chosen like that of the meeting.
const ProcessJob serve_without_token("serve without a token", [](const ProcessOfTest& process) {
  const std::size_t comma = process.option.find(',');
  const bool is_server = process.rank == 2;
  const Cluster cluster{.parameter_servers = {"127.0.0.1:" + process.option.substr(comma + 1)},
                        .rank = is_server ? 0 : process.rank,
                        .timeout = 15s,
                        .task = is_server ? TaskType::parameter_server : TaskType::worker,
                        .size = 2,
                        .meeting_point = "localhost:" + process.option.substr(0, comma)};
  const ParameterServerStrategy strategy(cluster, {.max_staleness = 1});
  Variable steps(zeros({}, i64), "steps");
  const auto step = function([&](Tensor x) {
    steps.assign_add(ones({}, i64));
    return Loss::mean(x);
  });
  for (int i = 0; i < 6; ++i) strategy.schedule(step, full({2}, i));
  check(strategy.join().item() == 2.5, "another loss");
  check(steps.value().item() == 6, "another number of steps");
});

class RanksWithoutToken : public RanksByGrpc {};

TEST_F(RanksWithoutToken, MeetByWhatRank0Leaves) {
  for (const int ranks : {2, 4}) {
    const auto ended = run("meet without a token", ranks);
    expect_all_well(ended);
    for (const EndedProcess& each : ended) EXPECT_EQ(each.output.find("turned"), std::string::npos) << each.output;
  }
}

TEST_F(RanksWithoutToken, FindTheTokensOfParameterServers) {
  const std::string ports = text(free_port(), ',', free_port());
  const auto ended = run_as_processes("serve without a token", 3, ports);
  expect_all_well(ended);
  for (const EndedProcess& each : ended) EXPECT_EQ(each.output.find("turned"), std::string::npos) << each.output;
}

/// The answer to a question without the token.
GrpcResult result_of_stranger(int port, const std::string& question) {
  const GrpcTable& grpc = table_of<GrpcTable>({"gradus_grpc", "gradus_grpc", "a test", "", ""});
  const std::string where = here(port).to_string();
  const GrpcClientSettings settings{where.c_str(), {}, 1000};
  void* const client = grpc.connect(&settings);
  std::array<char, 512> why{};
  const GrpcResult result = grpc.ask(
      client, question.data(), question.size(), 5000, 1, nullptr, [](void*, const char*, std::size_t) {}, why.data(),
      why.size());
  grpc.disconnect(client);
  return result;
}

/// The third process belongs to another user. It joins with another version, poses as rank 1, and sends empty
/// questions.
const ProcessJob visited("visited", [](const ProcessOfTest& process) {
  const int port = std::stoi(process.option);
  if (process.rank < 2) {
    if (process.rank == 0) fs::permissions(process.folder, fs::perms::all);
    Meeting meeting(cluster_without_token(process, 2), {"print", "1.0"});
    meeting.share("all here", "");
    if (process.rank == 0) process.publish("all here", "");
    process.fetch("visited");
    meeting.check();
    meeting.share("all here still", "");
    meeting.leave();
    return;
  }
  result_of_stranger(free_port(), "");  // loads libraries that the other user may not find
  process.fetch("all here");
  check(setuid(65534) == 0, "this process is no other user");
  check(find_token(here(port)).token.empty(), "another user has the token");
  std::vector<GrpcResult> results;
  for (int i = 0; i < 50; ++i)
    for (const char* question :
         {"", "x", R"({"kind": "join", "rank": 1, "incarnation": "zz", "version": "x", "protocol": 1})",
          R"({"kind": "fail", "rank": 1, "incarnation": "zz", "why": "x"})"})
      results.push_back(result_of_stranger(port, question));
  for (const GrpcResult each : results) check(each == GrpcResult::refused, "a stranger was answered");
  process.publish("visited", "");
});

TEST_F(RanksWithoutToken, AreNotReachedByAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root can pose as another user";
  const auto ended = run("visited", 3);
  expect_all_well(ended);
  const std::string& said = ended[0].output;
  std::size_t lines = 0;
  for (std::size_t at = said.find("turned"); at != std::string::npos; at = said.find("turned", at + 1)) ++lines;
  EXPECT_GE(lines, 4u) << said;
  EXPECT_LE(lines, 12u) << "of 200 questions";
  expect_says(said, "; it was asked so 128 times");
}

/// The two ranks have no common folder, or no common user.
TEST_F(RanksWithoutToken, SayHowToDoWithoutTheFile) {
  const Address where = here(free_port());
  MeetingDesk desk({});
  const auto server = grpc_server(where, {}, {.token = "secret"}, desk);
  const auto client = grpc_client(where, {});
  EXPECT_FALSE(client->ask("{}", in(50ms), true).has_value());
  expect_says(client->problem(), "a process listens there, but this user has no token of it in /run/user/");
  expect_says(client->problem(), "need GRADUS_TOKEN, one secret on all of them");
  expect_says(error_of<Unavailable>([&] { client->ask("{}", in(50ms), false); }), "GRADUS_TOKEN");
}

TEST_F(RanksWithoutToken, GoToTheNextServerAtThePort) {
  const Address where = here(free_port());
  const auto client = grpc_client(where, {});
  // The first question may still meet the end of the server before, as those of a rank do, which asks again.
  const auto answers = [&] {
    for (const auto until = in(10s);;) try {
        return client->ask("{}", until, true).has_value();
      } catch (const Unavailable&) {
        if (std::chrono::steady_clock::now() >= until) throw;
        std::this_thread::sleep_for(10ms);
      }
  };
  for (int server = 0; server < 3; ++server) {
    MeetingDesk desk({});
    const auto serving = grpc_server(where, {}, {}, desk);
    EXPECT_TRUE(answers()) << server;
  }
  expect_says(error_of<Unavailable>([&] { client->ask("{}", in(10s), false); }), "does not answer");
}

/// Acts like a parameter server that was killed and started again: another process, with another token.
TEST_F(RanksWithoutToken, GoToTheNextProcessAtThePort) {
  const Address where = here(free_port());
  std::string said;
  const auto client = client_with_left_token(where, "a server", [&](const std::string& token) {
    said += token + " ";
    return grpc_client(where, {.token = token});
  });
  for (const char* token : {"first", "second"}) {
    if (!said.empty())
      expect_says(error_of<Unavailable>([&] { client->ask("{}", in(10s), false); }), "does not answer");
    MeetingDesk desk({});
    const auto serving = grpc_server(where, {}, {.token = token}, desk);
    const LeftToken left(where, token);
    testing::internal::CaptureStderr();
    EXPECT_TRUE(client->ask("{}", in(10s), true).has_value()) << token;
    EXPECT_TRUE(client->ask("{}", in(10s), false).has_value()) << token;
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "nobody was turned away";
  }
  EXPECT_EQ(said, "first second ");
}

TEST(RefusedQuestions, AreToldOftenEnoughToKnowHowManyThereAre) {
  RefusedQuestions refused;
  std::vector<std::string> lines;
  constexpr int questions = 100'000;
  for (int i = 0; i < questions; ++i)
    if (std::string line = refused.line("the meeting", "ipv4:127.0.0.1:4711"); !line.empty()) lines.push_back(line);
  EXPECT_EQ(lines.size(), 4u + 14u);  // 1, 2, 3, 4, 8, ..., 65536
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(lines[i], "gradus: the meeting has turned ipv4:127.0.0.1:4711 away: it has another token, or none\n");
  EXPECT_EQ(lines.back(),
            "gradus: the meeting has turned ipv4:127.0.0.1:4711 away: it has another token, or none; it was asked so "
            "65536 times\n");
  EXPECT_NE(refused.line("rank 1", "x"), "") << "each server counts by itself";
}

TEST(Meetings, HaveNoPlaceForParameterServersAndEvaluators) {
  Cluster cluster{.parameter_servers = {"127.0.0.1:2"},
                  .task = TaskType::parameter_server,
                  .size = 1,
                  .meeting_point = "127.0.0.1:1",
                  .source = "GRADUS_CLUSTER"};
  const auto made = [&] { MultiWorkerMirroredStrategy strategy(cluster); };
  expect_error<InvalidArgument>(made, {"GRADUS_CLUSTER says that this process is a parameter server",
                                       "gradus launch without --servers", "ParameterServerStrategy"});
  cluster.task = TaskType::evaluator;
  expect_error<InvalidArgument>(made, {"is an evaluator", "evaluate without the strategy"});
}

}  // namespace
}  // namespace gradus::left_token_test
