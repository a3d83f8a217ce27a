/// `gradus launch` as a process: scripts of a shell as ranks.
#pragma once
#include <chrono>
#include <thread>
#include "tests/apps/command_process.h"
#include "tests/environment_variables.h"

namespace gradus::command {

class LaunchTest : public CommandProcessTest {
 protected:
  /// In a script, `$rank` is the rank and `here` the directory of the test.
  std::vector<std::string> arguments_for(int ranks, const std::string& script,
                                         const std::vector<std::string>& options = {}) const {
    std::vector<std::string> out{"launch", "-n", std::to_string(ranks)};
    out.insert(out.end(), options.begin(), options.end());
    const std::string beginning =
        "rank=${GRADUS_CLUSTER#*rank\\\":}; rank=${rank%%,*}; cd '" + root_.string() + "' || exit 99\n";
    out.insert(out.end(), {"--", "/bin/sh", "-c", beginning + script});
    return out;
  }
  int run_ranks(int ranks, const std::string& script, const std::vector<std::string>& options = {},
                const SetUpFiles& set_up = {}) {
    return run(arguments_for(ranks, script, options), set_up);
  }
  /// Goes on by itself; what it says goes to said.txt.
  pid_t start_ranks(int ranks, const std::string& script) const {
    const auto files = [&](posix_spawn_file_actions_t& actions) {
      posix_spawn_file_actions_addopen(&actions, 1, (root_ / "said.txt").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      posix_spawn_file_actions_adddup2(&actions, 1, 2);
    };
    return start_process(arguments_for(ranks, script), files);
  }
  std::string said() const { return contents(root_ / "said.txt"); }

  static bool comes_true(const auto& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }
  /// Until each has a whole line: a shell makes a file before it writes into it.
  void wait_for_lines(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      EXPECT_TRUE(comes_true([&] { return contents(root_ / name).ends_with('\n'); })) << name;
  }
  /// Whether the process whose number the file holds has ended, though nobody may have waited for it.
  bool has_ended(const char* file) const {
    return comes_true([&] {
      std::string number = contents(root_ / file);
      if (number.empty() || number.back() != '\n') return false;
      number.pop_back();
      const std::string state = contents("/proc/" + number + "/stat");
      return state.empty() || state[state.rfind(')') + 2] == 'Z';
    });
  }
};

}  // namespace gradus::command
