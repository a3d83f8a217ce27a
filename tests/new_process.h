/// Tests that need a process of their own.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <string>

namespace gradus {

/// True if this program can start itself anew, as death tests in the style "threadsafe" do: a program of another
/// processor cannot, where an emulator runs it that the system does not know.
inline bool can_start_itself() {
  static const bool can = [] {
    char program[] = "/proc/self/exe", list[] = "--gtest_list_tests", none[] = "--gtest_filter=";
    char* const words[] = {program, list, none, nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    pid_t process = 0;
    int status = 1;
    if (posix_spawn(&process, program, &actions, nullptr, words, environ) == 0) waitpid(process, &status, 0);
    posix_spawn_file_actions_destroy(&actions);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }();
  return can;
}

/// The command that runs `program`, which was compiled for the processor of this one.
inline std::string command_to_run(const std::string& program) {
  return can_start_itself() ? program : "qemu-aarch64 " + program;
}

/// Has EXPECT_EXIT start the test anew in a process of its own; skips it where that is not possible.
#define GRADUS_IN_NEW_PROCESS()                                                                       \
  if (!can_start_itself()) GTEST_SKIP() << "the system cannot start this program, which is emulated"; \
  GTEST_FLAG_SET(death_test_style, "threadsafe")

}  // namespace gradus
