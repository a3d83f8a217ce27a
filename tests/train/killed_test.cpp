/// A process that saves checkpoints is killed at random moments: what it said was saved is there, whole.
#include <gtest/gtest.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <random>
#include "tests/train/checkpoint_samples.h"

namespace gradus::killed_test {
namespace {

constexpr int report_to = 9;  // the descriptor to which the child says what is saved
constexpr const char* child_variable = "GRADUS_CHECKPOINT_CHILD";

/// Only within the process that the test below starts.
TEST(KilledChild, SavesUntilItDies) {
  const char* directory = std::getenv(child_variable);
  if (!directory) GTEST_SKIP() << "runs in a process of its own";
  Numbered numbered;
  Checkpoints checkpoints(in_shards(directory), numbered.model, numbered.optimizer);
  const auto restored = checkpoints.restore();
  for (std::int64_t step = restored ? restored->step + 1 : 1;; ++step) {
    numbered.set(static_cast<double>(step));
    if (step % 2) {
      checkpoints.save_in_background(step);
      checkpoints.wait();
    } else {
      checkpoints.save(step);
    }
    if (write(report_to, &step, sizeof step) != sizeof step) break;
  }
}

/// A process that runs the test above.
class Child {
 public:
  explicit Child(const std::filesystem::path& directory) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], report_to);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (ends[0] != report_to) posix_spawn_file_actions_addclose(&actions, ends[0]);
    std::string program = "/proc/self/exe", filter = "--gtest_filter=KilledChild.*";
    char* arguments[] = {program.data(), filter.data(), nullptr};
    setenv(child_variable, directory.c_str(), 1);
    const int problem = posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, arguments, environ);
    unsetenv(child_variable);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    reports_ = ends[0];
    if (problem != 0) throw std::runtime_error("the child does not start");
  }
  ~Child() {
    kill_it();
    close(reports_);
  }
  Child(const Child&) = delete;

  /// The next step that it has saved; nothing once it is dead.
  std::optional<std::int64_t> next_report() const {
    std::int64_t step = 0;
    if (read(reports_, &step, sizeof step) != sizeof step) return {};
    return step;
  }
  void kill_it() {
    if (process_ == 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  pid_t process_ = 0;
  int reports_ = -1;
};

TEST(Killed, TheNewestWholeOneIsThere) {
  const char* wanted = std::getenv("GRADUS_KILLS");
  const int kills = wanted ? std::atoi(wanted) : 20;
  const TestDirectory directory("checkpoints_killed");
  Numbered numbered;
  std::mt19937 random(1);
  std::int64_t last = 0;
  for (int i = 0; i < kills; ++i) {
    Child child(directory);
    const auto first = child.next_report();
    ASSERT_TRUE(first.has_value()) << "the child failed before it saved anything";
    EXPECT_GT(*first, last);
    last = *first;
    usleep(std::uniform_int_distribution<useconds_t>(0, 30'000)(random));
    child.kill_it();
    while (const auto report = child.next_report()) last = *report;
    const auto restored = Checkpoints(in_shards(directory), numbered.model, numbered.optimizer).restore();
    ASSERT_TRUE(restored.has_value());
    EXPECT_TRUE(restored->step == last || restored->step == last + 1) << restored->step << " after " << last;
    EXPECT_EQ(numbered.value(), static_cast<double>(restored->step));
    last = restored->step;
  }
  Checkpoints(in_shards(directory), numbered.model, numbered.optimizer).save(last + 1);
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    EXPECT_NE(entry.path().extension(), ".part") << "what was not finished is removed";
}

}  // namespace
}  // namespace gradus::killed_test
