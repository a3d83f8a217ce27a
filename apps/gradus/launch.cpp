/// One loop waits for everything: output and reports of ranks, ranks that end or are stopped, signals, and a standard
/// output that accepts more.
#include "apps/gradus/launch.h"
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include "apps/gradus/commands.h"
#include "apps/gradus/config.h"
#include "apps/gradus/output.h"
#include "apps/gradus/queued_output.h"
#include "apps/gradus/rank_environment.h"
#include "apps/gradus/rank_fates.h"
#include "apps/gradus/rank_process.h"
#include "apps/gradus/report_socket.h"
#include "apps/gradus/restart_pause.h"
#include "apps/gradus/stopped_ranks.h"

namespace gradus::command {
namespace {

using Clock = std::chrono::steady_clock;

/// How long ranks that are asked to end have, before they are killed.
constexpr std::chrono::seconds patience{5};
/// How often the launcher looks for stopped ranks and for the cause of a failure.
constexpr std::chrono::milliseconds time_of_a_look{400};
/// How long the output of ranks that were killed has, once the launcher was asked to end.
constexpr std::chrono::milliseconds patience_with_readers{100};

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
      if (rank.lives) ::waitpid(rank.process, nullptr, 0);  // no deadline: it was killed
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
      const auto pause = pause_.after(Clock::now() - started_);
      say(text(count_ < arguments_.ranks ? std::to_string(count_)
               : count_ == 1             ? "the"
                                         : "all",
               count_ == 1 ? " rank is" : " ranks are", " started again",
               pause >= std::chrono::seconds(1) ? text(" in ", pause.count() / 1000, " s") : "", ", ", restarts + 1,
               " of ", arguments_.restarts));
      for (deadline_ = Clock::now() + pause; deadline_ && asked_ == 0;) wait();
      if (asked_ != 0) return 128 + asked_;
    }
  }

 private:
  void start(std::int64_t restarts) {
    ranks_.clear();
    is_ending_ = false;
    deadline_.reset();
    started_ = Clock::now();
    reports_.forget();  // words that ended ranks sent last
    moments_ = 0;
    first_end_.reset();
    first_failure_.reset();
    meeting_ = new_meeting(count_, arguments_.port, static_cast<int>(arguments_.servers));
    meeting_.restart = restarts;
    meeting_.launcher = reports_.name();
    times_ = times_of_ranks(meeting_);
    fates_.assign(static_cast<std::size_t>(meeting_.processes()), {});
    stopped_ = StoppedRanks();
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
    std::vector<pollfd> awaited{
        {signals_, POLLIN, 0}, {output_.descriptor(), POLLOUT, 0}, {reports_.descriptor(), POLLIN, 0}};
    std::vector<RankStream*> streams;
    if (!output_.is_full()) {
      for (RankProcess& rank : ranks_)
        for (RankStream& stream : rank.streams)
          if (stream.is_open()) streams.push_back(&stream), awaited.push_back({stream.from(), POLLIN, 0});
    }
    if (::poll(awaited.data(), awaited.size(), milliseconds_left()) > 0) {
      for (std::size_t i = 0; i < streams.size(); ++i)
        if (awaited[i + 3].revents != 0) pass_on(*streams[i], 1);
      if (awaited[1].revents != 0) write_some();
      if (awaited[2].revents != 0) take_reports();
      if (awaited[0].revents != 0) take_signals();
    }
    if (!is_ending_ && living_ > 0 && Clock::now() >= next_look_) look();
    if (deadline_ && Clock::now() >= *deadline_) on_deadline();
  }

  int milliseconds_left() const {
    std::chrono::milliseconds left = is_ending_ || living_ == 0 ? std::chrono::hours(1) : time_of_a_look;
    if (deadline_) left = std::min(left, std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now()));
    return static_cast<int>(std::max<std::int64_t>(0, left.count()));
  }

  void look() {
    next_look_ = Clock::now() + time_of_a_look;
    watch_stopped();
    say_who_is_awaited();
    judge();
  }

  RankFate& fate(int process) { return fates_[static_cast<std::size_t>(process)]; }

  void take_reports() {
    for (const RankReport& each : reports_.read()) {
      const bool is_of_job = each.ranks == meeting_.ranks;  // not of a smaller group with other numbers
      if (!is_of_job || each.process < 0 || each.process >= meeting_.processes()) continue;
      RankFate& known = fate(each.process);
      known.state = each.state;
      known.why = each.why;
      known.said = ++moments_;
    }
  }

  /// A rank that is stopped while the others go on, or have ended, holds the job for ever.
  void watch_stopped() {
    for (const RankProcess& rank : ranks_) fate(rank.rank).is_stopped = rank.lives && is_stopped(rank.process);
    for (const int process : stopped_.overdue(fates_, times_.timeout)) {
      say(text(meeting_.name_of(process), " has been stopped for ", seconds_of(times_.timeout),
               " s (by SIGSTOP or the like), which is Cluster::timeout: it is ended"));
      ranks_[static_cast<std::size_t>(process)].send(SIGKILL);
    }
  }

  /// Once a heartbeat after the first end, then twice as rarely each time.
  void say_who_is_awaited() {
    if (!first_end_ || Clock::now() < next_word_) return;
    const auto passed = Clock::now() - *first_end_;
    say(text("waits for ", living(fates_, name_of_), ", ", seconds_of(passed), " s after the first end"));
    next_word_ = *first_end_ + 2 * std::max<Clock::duration>(passed, times_.heartbeat);
  }

  /// Ends all ranks once one was the cause of a failure, and says which.
  void judge() {
    if (is_ending_) return;
    const auto since = first_failure_ ? Clock::now() - *first_failure_ : Clock::duration::zero();
    auto words = cause(fates_, std::chrono::duration_cast<std::chrono::milliseconds>(since), name_of_);
    if (!words && !first_failure_ && arguments_.servers == 0) words = vain_meeting(fates_, meeting_.ranks, name_of_);
    if (!words) return;
    say(*words);
    end_all(SIGTERM);
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
      // If several have ended by now, this one was the first.
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
    take_reports();  // the reports that it sent before its end
    const bool is_well = ended.si_code == CLD_EXITED && ended.si_status == 0;
    if (!is_well || is_ending_) rank.send(SIGKILL);  // its own children end with it
    ::waitpid(rank.process, nullptr, 0);             // no deadline: it has ended
    rank.lives = false;
    --living_;
    pass_on_last_words(rank);
    note_end(rank.rank, ended);
    judge();
    if (living_ > 0) return;
    close_streams();
    if (!is_ending_) say_if_strangers();
  }

  /// Reports ranks that do not know of each other: each does all of the work.
  void say_if_strangers() {
    if (count_ > 1 && reports_.is_of_strangers())
      say(text("none of the ", count_,
               " ranks has asked which rank it is, so each has trained all by itself; to train ",
               "together, give Cluster::from_environment() to a MultiWorkerMirroredStrategy"));
  }

  void note_end(int process, const siginfo_t& ended) {
    RankFate& known = fate(process);
    known.lives = known.is_stopped = false;
    (ended.si_code == CLD_EXITED ? known.status : known.signal) = ended.si_status;
    known.ended = ++moments_;
    known.is_replaced = !is_ending_ && others_do_its_steps(process, known);
    if (known.is_replaced) say(text(meeting_.name_of(process), ' ', how_it_ended(known), "; others do its steps"));
    const auto now = Clock::now();
    if (!first_end_) next_word_ = now + times_.heartbeat;
    first_end_ = first_end_.value_or(now);
    if (known.has_failed()) first_failure_ = first_failure_.value_or(now);
  }

  /// A worker of parameter servers may be killed. A worker that fails by itself has told the others, or never joined.
  bool others_do_its_steps(int process, const RankFate& known) const {
    return arguments_.servers > 0 && process > 0 && process < meeting_.ranks && known.signal != 0;
  }

  /// Its last output lies in its pipes; other holders of these may write on.
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
    if (living_ == 0) output_.drop();  // it has no reader
    else deadline_ = Clock::now() + patience_with_readers;
  }

  static double seconds_of(Clock::duration time) {
    return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count() / 100) / 10;
  }

  const LaunchArguments& arguments_;
  int count_;  // of ranks that are started
  const LauncherSettings settings_;
  int signals_ = -1;
  QueuedOutput output_;
  MeetingOfRanks meeting_;
  const NameOfProcess name_of_ = [this](int process) { return meeting_.name_of(process); };
  std::vector<RankProcess> ranks_;  // parameter servers behind them
  ReportSocket reports_;
  std::vector<RankFate> fates_;  // by process: ranks, then parameter servers
  StoppedRanks stopped_;
  TimesOfRanks times_;
  int moments_ = 0;  // number of events noticed so far
  std::optional<Clock::time_point> first_end_, first_failure_;
  Clock::time_point next_word_, next_look_;
  int living_ = 0;
  bool is_ending_ = false;  // all of them: one has failed, a signal has come, or their output has no reader
  std::optional<Clock::time_point> deadline_;
  Clock::time_point started_;
  RestartPause pause_;
  int asked_ = 0;  // by which signal
};

/// Refuses words before -- that are no options.
void check_extras(const LaunchArguments& arguments) {
  if (arguments.extras.empty()) return;
  const std::string& first = arguments.extras.front();
  require<ConfigError>(!first.starts_with('-'), "launch: there is no option ", first,
                       "; what the program gets stands after it, and both after --");
  std::string line;
  for (const std::string& each : arguments.extras) line += " " + each;
  throw ConfigError(text("launch: the program stands after --, with its arguments: gradus launch -n ",
                         std::max<std::int64_t>(1, arguments.ranks), " --", line));
}

}  // namespace

int launch(const LaunchArguments& arguments) {
  check_extras(arguments);
  require<ConfigError>(arguments.ranks > 0,
                       "launch: -n (--ranks) is required: how many processes, as in gradus launch -n 2 -- ./trainer");
  require<ConfigError>(!arguments.program.empty() && !arguments.program[0].empty(),
                       "launch: there is no program: it stands after --, as in gradus launch -n 2 -- ./trainer");
  require<ConfigError>(arguments.elastic <= arguments.ranks, "launch: --elastic ", arguments.elastic, " of ",
                       arguments.ranks, " ranks");
  require<ConfigError>(arguments.elastic == 0 || arguments.restarts > 0,
                       "launch: --elastic says with how few ranks a restart may go on: it needs --restarts");
  return Launcher(arguments).run();
}

}  // namespace gradus::command
