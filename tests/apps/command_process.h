/// The command as a process of its own: what it leaves on standard output and error, and how it ends.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <functional>
#include <string>
#include <vector>
#include "tests/apps/command_fixture.h"

extern char** environ;

namespace gradus::command {

/// How descriptors of the process are set up beyond those of this one.
using SetUpFiles = std::function<void(posix_spawn_file_actions_t&)>;

inline pid_t start_process(std::vector<std::string> arguments, const SetUpFiles& set_up) {
  arguments.insert(arguments.begin(), GRADUS_COMMAND);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  set_up(files);
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, GRADUS_COMMAND, &files, nullptr, pointers.data(), environ), 0);
  posix_spawn_file_actions_destroy(&files);
  return child;
}

/// As a shell says it: the exit status, or 128 and the signal.
inline int exit_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

class CommandProcessTest : public CommandTest {
 protected:
  /// Runs with standard output as `set_up` has it; errors_ and output_ (of the usual one) say what came.
  int run(const std::vector<std::string>& arguments, const SetUpFiles& set_up = {}) {
    const std::filesystem::path said = root_ / "stdout.txt", complained = root_ / "stderr.txt";
    const auto files = [&](posix_spawn_file_actions_t& actions) {
      posix_spawn_file_actions_addopen(&actions, 2, complained.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      if (set_up) set_up(actions);
      else posix_spawn_file_actions_addopen(&actions, 1, said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    };
    const int status = exit_of(start_process(arguments, files));
    errors_ = contents(complained);
    output_ = set_up ? std::string() : contents(said);
    return status;
  }
};

}  // namespace gradus::command
