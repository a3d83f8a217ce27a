/// `gradus launch`: what ranks find, what becomes of their output, and how all of them end.
#include <signal.h>
#include <unistd.h>
#include <csignal>
#include <set>
#include "gradus/base/cores.h"
#include "gradus/distribute/cluster.h"
#include "tests/apps/launch_process.h"
#include "tests/errors.h"

namespace gradus::command::launch_test {
namespace {

using namespace std::chrono_literals;

class Launch : public LaunchTest {
 protected:
  /// What `env` of each rank says.
  std::vector<std::map<std::string, std::string>> environments(int ranks,
                                                               const std::vector<std::string>& options = {}) {
    EXPECT_EQ(run_ranks(ranks, "env", options), ok) << errors_;
    std::vector<std::map<std::string, std::string>> out(static_cast<std::size_t>(ranks));
    for (const std::string& line : lines_of(output_)) {
      const std::size_t end = line.find("] "), equal = line.find('=');
      if (line[0] != '[' || equal == std::string::npos) continue;
      const auto rank = static_cast<std::size_t>(std::stoi(line.substr(1)));
      const std::string name = line.substr(end + 2, equal - end - 2);
      EXPECT_FALSE(out.at(rank).contains(name)) << line;
      out.at(rank)[name] = line.substr(equal + 1);
    }
    return out;
  }
  static Cluster cluster_in(const std::map<std::string, std::string>& environment) {
    return cluster_of([&](std::string_view name) {
      const auto found = environment.find(std::string(name));
      return found != environment.end() ? found->second : "";
    });
  }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  }
};

TEST_F(Launch, TellsEachRankWhoItIs) {
  const VariablesOfTest variables{{"RANK", "7"},
                                  {"WORLD_SIZE", "9"},
                                  {"MASTER_ADDR", "elsewhere"},
                                  {"MASTER_PORT", "1"},
                                  {"TORCHELASTIC_RUN_ID", "x"},
                                  {"TF_CONFIG", "{\"cluster\": {\"worker\": [\"a:1\"]}}"},
                                  {"OMPI_COMM_WORLD_RANK", "5"},
                                  {"OMPI_COMM_WORLD_SIZE", "6"},
                                  {"PMIX_NAMESPACE", "x"},
                                  {"PMI_RANK", "5"},
                                  {"PMI_SIZE", "6"},
                                  {"SLURM_PROCID", "5"},
                                  {"SLURM_STEP_NUM_TASKS", "6"},
                                  {"SLURM_JOB_ID", "77"},
                                  {"GRADUS_TOKEN", "of before"},
                                  {"GRADUS_CLUSTER", "{\"workers\": [\"a:1\"], \"rank\": 0, \"timeout\": 77}"},
                                  {"GRADUS_NUM_THREADS", std::nullopt}};
  const auto found = environments(3);
  std::set<std::string> tokens, meetings;
  for (int rank = 0; rank < 3; ++rank) {
    const auto& environment = found[static_cast<std::size_t>(rank)];
    const Cluster cluster = cluster_in(environment);
    EXPECT_EQ(cluster.rank, rank);
    EXPECT_EQ(cluster.ranks(), 3);
    EXPECT_EQ(cluster.source, "GRADUS_CLUSTER");
    EXPECT_EQ(cluster.timeout, 77s);
    EXPECT_TRUE(cluster.meeting().is_loopback());
    EXPECT_EQ(cluster.credentials.token.size(), 32u);
    EXPECT_EQ(cluster.credentials.token.find_first_not_of("0123456789abcdef"), std::string::npos);
    tokens.insert(cluster.credentials.token);
    meetings.insert(cluster.meeting_point);
    EXPECT_EQ(environment.at("GRADUS_NUM_THREADS"), std::to_string(std::max(1, available_cores() / 3)));
    EXPECT_EQ(environment.at("SLURM_JOB_ID"), "77");
    EXPECT_FALSE(environment.contains("RANK") || environment.contains("TF_CONFIG"));
  }
  EXPECT_EQ(tokens.size(), 1u);
  EXPECT_EQ(meetings.size(), 1u);
  EXPECT_NE(cluster_in(environments(2)[0]).credentials.token, *tokens.begin());
}

TEST_F(Launch, KeepsWhatTheUserSays) {
  const VariablesOfTest variables{{"GRADUS_NUM_THREADS", "5"}, {"GRADUS_CLUSTER", std::nullopt}};
  const auto found = environments(2, {"--port", "23456"});
  EXPECT_EQ(found[1].at("GRADUS_NUM_THREADS"), "5");
  EXPECT_EQ(cluster_in(found[1]).meeting_point, "127.0.0.1:23456");
}

TEST_F(Launch, PassesOnWholeLines) {
  // All of it goes to one file.
  const SetUpFiles together = [](auto& files) { posix_spawn_file_actions_adddup2(&files, 2, 1); };
  constexpr int ranks = 4, lines = 1500;
  const std::string script =
      "i=0; tail=; while [ $i -lt 1500 ]; do printf \"out $i \"; printf \"begin $i \" >&2; tail=x$tail;"
      "[ ${#tail} -lt 300 ] || tail=; printf '%s end\\n' $tail; printf 'end\\n' >&2; i=$((i + 1)); done";
  ASSERT_EQ(run_ranks(ranks, script, {}, together), ok) << errors_;
  std::map<std::string, int> next;
  for (const std::string& line : lines_of(errors_)) {
    const std::size_t bracket = line.find("] "), space = line.find(' ', bracket + 2);
    ASSERT_TRUE(line[0] == '[' && bracket != std::string::npos && space != std::string::npos) << line;
    const std::string stream = line.substr(0, space);  // "[2] out"
    ASSERT_EQ(line.find('[', 1), std::string::npos) << line;
    ASSERT_TRUE(line.ends_with("end")) << line;
    ASSERT_EQ(line.substr(space + 1, line.find(' ', space + 1) - space - 1), std::to_string(next[stream]++)) << line;
  }
  EXPECT_EQ(next.size(), 2u * ranks);
  for (const auto& [stream, count] : next) EXPECT_EQ(count, lines) << stream;
}

TEST_F(Launch, PassesOnToWhereItCameFrom) {
  ASSERT_EQ(run_ranks(2, "[ $rank = 0 ] && printf 'a\\nlast' || echo b >&2"), ok);
  EXPECT_EQ(output_, "[0] a\n[0] last\n");
  EXPECT_EQ(errors_, "[1] b\n");
  ASSERT_EQ(run_ranks(1, "printf '10%%\\r20%%\\r\\nlast'"), ok);
  EXPECT_EQ(output_, "10%\r20%\r\nlast\n");
  ASSERT_EQ(run_ranks(2, "cat; echo none left"), ok);  // of an input
  EXPECT_EQ(lines_of(output_).size(), 2u);
}

TEST_F(Launch, ARankThatFailsEndsTheOthers) {
  const std::string script =
      "if [ $rank = 1 ]; then until [ -e ready ]; do sleep 0.01; done; echo last words; exit 3; fi\n"
      "exec 2> /dev/null; trap 'echo asked; exit 0' TERM; [ $rank = 0 ] && touch ready; while :; do sleep 0.01; done";
  EXPECT_EQ(run_ranks(2, script), failed);
  EXPECT_EQ(errors_, "gradus launch: rank 1 ended with exit code 3\n");
  EXPECT_EQ(output_, "[1] last words\n[0] asked\n");
}

TEST_F(Launch, ARankThatIsKilledEndsTheOthers) {
  EXPECT_EQ(run_ranks(3, "[ $rank = 2 ] && kill -9 $$; sleep 1000"), failed);
  EXPECT_EQ(errors_, "gradus launch: rank 2 was killed by signal 9 (Killed)\n");
}

TEST_F(Launch, KillsWhoDoesNotEnd) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string script =
      "if [ $rank = 1 ]; then until [ -e ready ]; do sleep 0.01; done; exit 1; fi\n"
      "trap '' TERM; echo $$ > process; touch ready; while :; do sleep 0.1; done";
  EXPECT_EQ(run_ranks(2, script), failed);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_TRUE(has_ended("process"));
}

TEST_F(Launch, WhatAFailedRankHasStartedEndsWithIt) {
  EXPECT_EQ(run_ranks(2, "[ $rank = 1 ] || exec sleep 1000; sleep 1000 & echo $! > process; exit 1"), failed);
  EXPECT_TRUE(has_ended("process"));
}

TEST_F(Launch, WhatARankHasStartedMayHoldItsOutput) {
  EXPECT_EQ(run_ranks(2, "echo $rank; [ $rank = 1 ] || { sleep 1000 & echo $! > process; }"), ok);
  const pid_t left = static_cast<pid_t>(std::stoi(contents(root_ / "process")));
  EXPECT_EQ(kill(left, SIGKILL), 0);
}

TEST_F(Launch, StartsAgain) {
  const std::string script = "[ $rank = 0 ] || exec sleep 1000; echo \"$GRADUS_CLUSTER\" >> tries; ";
  EXPECT_EQ(run_ranks(2, script + "exit 4", {"--restarts", "2"}), failed);
  const std::string ended = "gradus launch: rank 0 ended with exit code 4\n";
  EXPECT_EQ(errors_, ended + "gradus launch: all ranks are started again, 1 of 2\n" + ended +
                         "gradus launch: all ranks are started again, 2 of 2\n" + ended);
  const std::vector<std::string> tries = lines_of(contents(root_ / "tries"));
  ASSERT_EQ(tries.size(), 3u);
  std::set<std::string> tokens;
  for (const std::string& each : tries) tokens.insert(cluster_of_json(each).credentials.token);
  EXPECT_EQ(tokens.size(), 3u);

  EXPECT_EQ(
      run_ranks(2, "[ -e once ] && exit 0; [ $rank = 1 ] || exec sleep 1000; touch once; exit 1", {"--restarts", "5"}),
      ok);
  EXPECT_EQ(lines_of(errors_).size(), 2u) << errors_;
}

/// A signal ends the pause before the next start.
TEST_F(Launch, StartsThatEndAtOncePause) {
  const auto files = [&](posix_spawn_file_actions_t& actions) {
    posix_spawn_file_actions_addopen(&actions, 2, (root_ / "said.txt").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  };
  const pid_t launcher =
      start_process(arguments_for(1, "echo start >> starts; exit 1", {"--restarts", "1000000"}), files);
  EXPECT_TRUE(comes_true([&] { return said().find("started again in ") != std::string::npos; }));
  kill(launcher, SIGTERM);
  EXPECT_EQ(exit_of(launcher), 128 + SIGTERM);
  EXPECT_LE(lines_of(contents(root_ / "starts")).size(), 6u);
  expect_says(said(), "gradus launch: the rank is started again, 3 of 1000000\n");
  expect_says(said(), "gradus launch: the rank is started again in 1 s, 4 of 1000000\n");
}

TEST_F(Launch, RestartsWithFewerRanksDownToWhatIsSaid) {
  EXPECT_EQ(run_ranks(4, "[ $rank = 0 ] || exec sleep 1000; echo \"$GRADUS_CLUSTER\" >> starts; exit 4",
                      {"--restarts", "3", "--elastic", "2"}),
            failed);
  std::vector<int> ranks;
  for (const std::string& line : lines_of(contents(root_ / "starts")))
    ranks.push_back(cluster_of([&](std::string_view name) { return name == "GRADUS_CLUSTER" ? line : ""; }).ranks());
  EXPECT_EQ(ranks, (std::vector{4, 3, 2, 2}));
  expect_error("gradus launch: 3 ranks are started again, 1 of 3\n");
  EXPECT_EQ(run_ranks(2, "true", {"--elastic", "1"}), usage);
  expect_error("it needs --restarts");
  EXPECT_EQ(run_ranks(2, "true", {"--restarts", "1", "--elastic", "3"}), usage);
  expect_error("--elastic 3 of 2 ranks");
}

TEST_F(Launch, PassesOnSignals) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const auto before = std::signal(signal, SIG_DFL);  // a shell cannot trap what is ignored from the start
    const pid_t launcher = start_ranks(
        2,
        "exec 2> /dev/null; trap 'echo asked; exit 0' TERM INT HUP; echo > ready$rank; while :; do sleep 0.01; done");
    std::signal(signal, before);
    wait_for_lines({"ready0", "ready1"});
    kill(launcher, signal);
    EXPECT_EQ(exit_of(launcher), 128 + signal);
    std::vector<std::string> lines = lines_of(said());
    std::ranges::sort(lines);
    EXPECT_EQ(lines, (std::vector<std::string>{"[0] asked", "[1] asked"}));
    for (const char* file : {"ready0", "ready1"}) std::filesystem::remove(root_ / file);
  }
}

TEST_F(Launch, TheSecondSignalEndsAllAtOnce) {
  int ends[2];  // whose output nobody reads
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const std::string script = "trap '' TERM; echo $$ > process$rank; while :; do echo 0123456789; done";
  const pid_t launcher = start_process(arguments_for(2, script), [&](posix_spawn_file_actions_t& files) {
    posix_spawn_file_actions_adddup2(&files, ends[1], 1);
  });
  wait_for_lines({"process0", "process1"});
  kill(launcher, SIGTERM);
  std::this_thread::sleep_for(50ms);  // two signals at once are one
  kill(launcher, SIGTERM);
  EXPECT_EQ(exit_of(launcher), 128 + SIGTERM);
  EXPECT_TRUE(has_ended("process0") && has_ended("process1"));
  close(ends[0]);
  close(ends[1]);
}

TEST_F(Launch, LeavesNobodyBehindWhereItIsKilled) {
  const pid_t launcher = start_ranks(2, "trap '' TERM HUP; echo $$ > process$rank; exec sleep 1000");
  wait_for_lines({"process0", "process1"});
  kill(launcher, SIGKILL);
  EXPECT_EQ(exit_of(launcher), 128 + SIGKILL);
  EXPECT_TRUE(has_ended("process0") && has_ended("process1"));
}

TEST_F(Launch, ThatDoesNotArriveIsAFailure) {
  const std::string script = "echo $$ > process$rank; echo a line; exec sleep 1000";
  const SetUpFiles full = [](auto& files) { posix_spawn_file_actions_addopen(&files, 1, "/dev/full", O_WRONLY, 0); };
  EXPECT_EQ(run_ranks(2, script, {"--restarts", "3"}, full), failed);
  EXPECT_EQ(errors_, "gradus: the result cannot be written to standard output: No space left on device\n");
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  close(ends[0]);
  EXPECT_EQ(run_ranks(2, script, {}, [&](auto& files) { posix_spawn_file_actions_adddup2(&files, ends[1], 1); }),
            reader_gone);
  close(ends[1]);
  EXPECT_EQ(errors_, "");
}

TEST_F(Launch, AProgramThatCannotBeStarted) {
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& [program, reason] : {std::pair{"gradus-no-such-program", "No such file or directory"},
                                        std::pair{"/", "Permission denied"}, std::pair{"", "there is no program"}}) {
    EXPECT_EQ(run({"launch", "-n", "3", "--restarts", "2", "--", program}), *program != 0 ? failed : usage);
    expect_error(program);
    expect_error(reason);
    EXPECT_EQ(lines_of(errors_).size(), 1u) << errors_;
    EXPECT_EQ(output_, "");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

TEST_F(Launch, MistakesOfUse) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"-n", "0", "--", "true"}, "--ranks: Value 0"},
      {{"-n", "1025", "--", "true"}, "1 to 1024"},
      {{"-n", "-1", "--", "true"}, "--ranks"},
      {{"-n", "two", "--", "true"}, "--ranks"},
      {{"--", "true"}, "-n (--ranks) is required"},
      {{"-n", "2", "--port", "0", "--", "true"}, "--port: Value 0"},
      {{"-n", "2", "--port", "65536", "--", "true"}, "1 to 65535"},
      {{"-n", "2", "--restarts", "-1", "--", "true"}, "--restarts: Value -1"},
      {{"-n", "2"}, "stands after --"},
      {{"-n", "2", "--"}, "stands after --"},
      {{"-n", "2", "./trainer", "--epochs", "3"},
       "the program stands after --, with its arguments: gradus launch -n 2 -- ./trainer --epochs 3"},
      {{"./trainer"}, "the program stands after --, with its arguments: gradus launch -n 1 -- ./trainer"},
      {{"-n", "2", "./trainer", "--", "-v"}, "gradus launch -n 2 -- ./trainer"},
      {{"-n", "2", "--nonsense", "--", "true"}, "there is no option --nonsense"}};
  for (auto [arguments, says] : mistakes) {
    arguments.insert(arguments.begin(), "launch");
    EXPECT_EQ(run(arguments), usage) << says;
    expect_error(says);
  }
  const VariablesOfTest variables{{"GRADUS_CLUSTER", "[1]"}};
  EXPECT_EQ(run({"launch", "-n", "2", "--", "true"}), bad_data);
  expect_error("GRADUS_CLUSTER: the value is a list");
}

TEST_F(Launch, TheArgumentsAreTheProgramsAlone) {
  ASSERT_EQ(run({"launch", "-n", "1", "--", "printf", "<%s>", "--", "-n", "[a,b]", "", "--help", "{x}"}), ok);
  EXPECT_EQ(output_, "<--><-n><[a,b]><><--help><{x}>\n");
}

TEST_F(Launch, ManyRanks) {
  ASSERT_EQ(run_ranks(200, "echo $rank"), ok) << errors_;
  EXPECT_EQ(lines_of(output_).size(), 200u);
}

}  // namespace
}  // namespace gradus::command::launch_test
