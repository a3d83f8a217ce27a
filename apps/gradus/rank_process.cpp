#include "apps/gradus/rank_process.h"
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include "apps/gradus/launch_failure.h"
#include "gradus/base/error.h"

namespace gradus::command {
namespace {

/// Closes the ends that were not taken.
struct Pipe {
  int reading = -1, writing = -1;

  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail_launch("no pipe can be made");
    reading = ends[0], writing = ends[1];
  }
  Pipe(const Pipe&) = delete;
  ~Pipe() {
    for (const int end : {reading, writing})
      if (end >= 0) ::close(end);
  }
  void close_writing() { ::close(std::exchange(writing, -1)); }
  int take_reading() {
    fcntl(reading, F_SETFL, O_NONBLOCK);
    return std::exchange(reading, -1);
  }
};

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& each : texts) out.push_back(const_cast<char*>(each.c_str()));
  out.push_back(nullptr);
  return out;
}

/// The child between fork and the program: nothing here allocates or locks. Gives the reason if it did not become the
/// program.
struct Child {
  pid_t launcher;
  int input, output, errors;
  char *const *program, *const *environment;

  int become_program(const LauncherSettings& settings) const {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != launcher) ::_exit(1);  // which ended before this one could ask to be told
    if (::dup2(input, STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 || ::dup2(errors, STDERR_FILENO) < 0)
      return errno;
    settings.restore();
    ::execvpe(program[0], program, environment);
    return errno;
  }
};

/// The child's message through its pipe: nothing, if it has become the program.
std::optional<int> problem_of(Pipe& report) {
  report.close_writing();
  int problem = 0;
  ssize_t count = 0;
  do count = ::read(report.reading, &problem, sizeof problem);
  while (count < 0 && errno == EINTR);
  if (count == 0) return {};
  return count == static_cast<ssize_t>(sizeof problem) ? problem : EIO;
}

}  // namespace

LauncherSettings::LauncherSettings(int ranks) {
  struct sigaction taken{};
  taken.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &taken, &broken_pipe_);
  taken.sa_handler = SIG_DFL;
  taken.sa_flags = SA_NOCLDSTOP;
  ::sigaction(SIGCHLD, &taken, &child_);
  sigemptyset(&awaited_);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&awaited_, signal);
  struct sigaction hang_up;
  ::sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&awaited_, SIGHUP);  // which nohup ignores
  ::sigprocmask(SIG_BLOCK, &awaited_, &mask_);

  constexpr rlim_t files_of_rank = 2, others = 64;
  ::getrlimit(RLIMIT_NOFILE, &files_);
  rlimit enough = files_;
  enough.rlim_cur = std::clamp(files_of_rank * static_cast<rlim_t>(ranks) + others, files_.rlim_cur, files_.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &enough);
}

void LauncherSettings::restore() const {
  ::setrlimit(RLIMIT_NOFILE, &files_);
  ::sigaction(SIGPIPE, &broken_pipe_, nullptr);
  ::sigaction(SIGCHLD, &child_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

RankStream::RankStream(RankStream&& other) noexcept
    : from_(std::exchange(other.from_, -1)), to_(other.to_), lines_(std::move(other.lines_)) {}
RankStream::~RankStream() {
  if (is_open()) ::close(from_);
}

bool RankStream::read(std::string& lines) {
  if (!is_open()) return false;
  std::array<char, 1 << 16> bytes;
  const ssize_t count = ::read(from_, bytes.data(), bytes.size());
  if (count > 0) lines += lines_.take({bytes.data(), static_cast<std::size_t>(count)}, RankLines::Clock::now());
  else if (count == 0 || (errno != EAGAIN && errno != EINTR)) close(lines);
  return count > 0;
}

void RankStream::close(std::string& lines) {
  if (!is_open()) return;
  ::close(std::exchange(from_, -1));
  lines += lines_.finish();
}

void RankProcess::send(int signal) const {
  if (lives) ::kill(-process, signal);
}

RankProcess start_rank(int rank, const std::vector<std::string>& program, const std::vector<std::string>& environment,
                       const std::string& prefix, const LauncherSettings& settings) {
  Pipe input, output, errors, report;
  input.close_writing();  // a rank reads nothing: there is one input, and several ranks
  const std::vector<char*> arguments = pointers_to(program), variables = pointers_to(environment);
  const Child child{::getpid(), input.reading, output.writing, errors.writing, arguments.data(), variables.data()};
  const pid_t process = ::fork();
  if (process < 0) fail_launch("no process can be made");
  if (process == 0) {
    const int problem = child.become_program(settings);
    (void)!::write(report.writing, &problem, sizeof problem);
    ::_exit(1);
  }
  if (const std::optional<int> problem = problem_of(report)) {
    ::waitpid(process, nullptr, 0);  // no deadline: the process ends if it cannot become the program
    fail_launch(text(program[0], " cannot be started"), *problem);
  }
  return {rank,
          process,
          true,
          {RankStream(output.take_reading(), STDOUT_FILENO, prefix),
           RankStream(errors.take_reading(), STDERR_FILENO, prefix)}};
}

}  // namespace gradus::command
