/// One loop waits for all: what ranks write, ranks that end, signals, and a standard output that takes more.
#include "apps/gradus/launch.h"
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include "apps/gradus/commands.h"
#include "apps/gradus/config.h"
#include "apps/gradus/output.h"
#include "apps/gradus/queued_output.h"
#include "apps/gradus/rank_environment.h"
#include "apps/gradus/rank_notes.h"
#include "apps/gradus/rank_process.h"

namespace gradus::command {
namespace {

using Clock = std::chrono::steady_clock;

/// How long ranks that are asked to end have, before they are killed.
constexpr std::chrono::seconds patience{5};
/// How long the output of ranks that were killed has, once the launcher was asked to end.
constexpr std::chrono::milliseconds patience_with_readers{100};

std::string how_it_ended(const siginfo_t& ended) {
  if (ended.si_code == CLD_EXITED) return text("ended with exit code ", ended.si_status);
  return text("was killed by signal ", ended.si_status, " (", strsignal(ended.si_status), ')');
}

class Launcher {
 public:
  explicit Launcher(const LaunchArguments& arguments)
      : arguments_(arguments),
        count_(static_cast<int>(arguments.ranks)),
        settings_(static_cast<int>(arguments.ranks + arguments.servers)) {
    signals_ = signalfd(-1, &settings_.awaited(), SFD_CLOEXEC | SFD_NONBLOCK);
    require<Unavailable>(signals_ >= 0, "launch: signals cannot be awaited: ", std::generic_category().message(errno));
  }
  /// Nobody is left behind.
  ~Launcher() {
    for (const RankProcess& rank : ranks_) rank.send(SIGKILL);
    for (const RankProcess& rank : ranks_)
      if (rank.lives) ::waitpid(rank.process, nullptr, 0);
    if (signals_ >= 0) ::close(signals_);
  }
  Launcher(const Launcher&) = delete;

  int run() {
    for (std::int64_t restarts = 0;; ++restarts) {
      start(restarts);
      while (living_ > 0 || !output_.is_empty()) wait();
      if (asked_ != 0) return 128 + asked_;
      if (output_.error() != 0) return status_without_output(output_.error());
      if (!is_ending_) return ok;
      if (restarts == arguments_.restarts) return failed;
      if (arguments_.elastic > 0 && count_ > arguments_.elastic) --count_;
      say(text(count_ == arguments_.ranks ? "all" : std::to_string(count_), count_ == 1 ? " rank is" : " ranks are",
               " started again, ", restarts + 1, " of ", arguments_.restarts));
    }
  }

 private:
  void start(std::int64_t restarts) {
    ranks_.clear();
    is_ending_ = false;
    deadline_.reset();
    meeting_ = new_meeting(count_, arguments_.port, static_cast<int>(arguments_.servers));
    meeting_.restart = restarts;
    meeting_.notes = notes_.path();
    for (int process = 0; process < meeting_.processes(); ++process) {
      std::string prefix;
      if (process >= meeting_.ranks) prefix = text("[server ", process - meeting_.ranks, "] ");
      else if (arguments_.ranks + arguments_.servers > 1) prefix = text('[', process, "] ");
      ranks_.push_back(
          start_rank(process, arguments_.program, environment_of_rank(process, meeting_), prefix, settings_));
      ++living_;
    }
  }

  void say(std::string_view words) { output_.add(STDERR_FILENO, text("gradus launch: ", words, '\n')); }

  // ---------------------------------------------------------------- waiting

  void wait() {
    std::vector<pollfd> awaited{{signals_, POLLIN, 0}, {output_.descriptor(), POLLOUT, 0}};
    std::vector<RankStream*> streams;
    if (!output_.is_full()) {
      for (RankProcess& rank : ranks_)
        for (RankStream& stream : rank.streams)
          if (stream.is_open()) streams.push_back(&stream), awaited.push_back({stream.from(), POLLIN, 0});
    }
    if (::poll(awaited.data(), awaited.size(), milliseconds_left()) > 0) {
      for (std::size_t i = 0; i < streams.size(); ++i)
        if (awaited[i + 2].revents != 0) pass_on(*streams[i], 1);
      if (awaited[1].revents != 0) write_some();
      if (awaited[0].revents != 0) take_signals();
    }
    if (deadline_ && Clock::now() >= *deadline_) on_deadline();
  }

  int milliseconds_left() const {
    if (!deadline_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now()).count();
    return static_cast<int>(std::max<std::int64_t>(0, left));
  }

  void pass_on(RankStream& stream, int reads) {
    std::string lines;
    while (reads-- > 0 && stream.read(lines)) {}
    output_.add(stream.to(), lines);
  }

  void write_some() {
    output_.write_some();
    if (output_.error() != 0 && !is_ending_) end_all(SIGTERM);
  }

  void take_signals() {
    signalfd_siginfo each;
    while (::read(signals_, &each, sizeof each) == static_cast<ssize_t>(sizeof each)) {
      const int signal = static_cast<int>(each.ssi_signo);
      if (signal != SIGCHLD) {
        on_asked(signal);
        continue;
      }
      // Of several that have ended by now this one was the first.
      for (RankProcess& rank : ranks_)
        if (rank.process == static_cast<pid_t>(each.ssi_pid)) take_if_ended(rank);
      for (RankProcess& rank : ranks_) take_if_ended(rank);
    }
  }

  // ---------------------------------------------------------------- ends

  void take_if_ended(RankProcess& rank) {
    siginfo_t ended{};
    if (!rank.lives || ::waitid(P_PID, static_cast<id_t>(rank.process), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        ended.si_pid == 0)
      return;
    const bool is_well = ended.si_code == CLD_EXITED && ended.si_status == 0;
    if (!is_well || is_ending_) rank.send(SIGKILL);  // what it has started ends with it
    ::waitpid(rank.process, nullptr, 0);
    rank.lives = false;
    --living_;
    pass_on_last_words(rank);
    if (!is_well && !is_ending_) {
      say(text(meeting_.name_of(rank.rank), ' ', how_it_ended(ended)));
      end_all(SIGTERM);
    }
    if (living_ > 0) return;
    close_streams();
    if (!is_ending_) say_if_strangers();
  }

  /// Each rank that does not know of the others does the work of all.
  void say_if_strangers() {
    if (count_ > 1 && notes_.is_of_strangers())
      say(text("none of the ", count_,
               " ranks has asked which rank it is, so each has trained all by itself; to train ",
               "together, give Cluster::from_environment() to a MultiWorkerMirroredStrategy"));
  }

  /// What it has written lies in its pipes; who still holds them may write on.
  void pass_on_last_words(RankProcess& rank) {
    constexpr int reads_of_a_full_pipe = 17;  // of 64 KiB; a pipe holds 1 MiB at most
    for (RankStream& stream : rank.streams) pass_on(stream, reads_of_a_full_pipe);
  }

  void close_streams() {
    for (RankProcess& rank : ranks_) {
      pass_on_last_words(rank);
      for (RankStream& stream : rank.streams) {
        std::string lines;
        stream.close(lines);
        output_.add(stream.to(), lines);
      }
    }
  }

  void end_all(int signal) {
    is_ending_ = true;
    deadline_ = Clock::now() + patience;
    for (const RankProcess& rank : ranks_) rank.send(signal);
  }

  void on_asked(int signal) {
    if (asked_ == 0) {
      asked_ = signal;
      end_all(signal);
    } else {
      deadline_ = Clock::now();
    }
  }

  void on_deadline() {
    deadline_.reset();
    for (const RankProcess& rank : ranks_) rank.send(SIGKILL);
    if (asked_ == 0) return;
    if (living_ == 0) output_.drop();  // nobody reads it
    else deadline_ = Clock::now() + patience_with_readers;
  }

  const LaunchArguments& arguments_;
  int count_;  // of ranks that are started
  const LauncherSettings settings_;
  int signals_ = -1;
  QueuedOutput output_;
  MeetingOfRanks meeting_;
  const RankNotes notes_;
  std::vector<RankProcess> ranks_;  // parameter servers behind them
  int living_ = 0;
  bool is_ending_ = false;  // all of them: one has failed, a signal has come, or nobody reads what they write
  std::optional<Clock::time_point> deadline_;
  int asked_ = 0;  // by which signal
};

}  // namespace

int launch(const LaunchArguments& arguments) {
  require<ConfigError>(!arguments.program.empty() && !arguments.program[0].empty(),
                       "launch: there is no program: it stands after --, as in gradus launch -n 2 -- ./trainer");
  require<ConfigError>(arguments.elastic <= arguments.ranks, "launch: --elastic ", arguments.elastic, " of ",
                       arguments.ranks, " ranks");
  require<ConfigError>(arguments.elastic == 0 || arguments.restarts > 0,
                       "launch: --elastic says with how few ranks a restart may go on: it needs --restarts");
  return Launcher(arguments).run();
}

}  // namespace gradus::command
