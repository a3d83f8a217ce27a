/// One rank of `gradus launch`: a process whose output comes through pipes, and which ends with the launcher.
#pragma once
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "apps/gradus/rank_lines.h"

namespace gradus::command {

/// Settings that a process hands on to programs that it starts: the launcher's own, and those before. One at a time.
class LauncherSettings {
 public:
  /// Signals that ask for the end, and those of ended children, wait to be read from a descriptor; a reader that has
  /// gone is an error of writing; as many files as `ranks` need may be open.
  explicit LauncherSettings(int ranks);
  ~LauncherSettings() { restore(); }
  LauncherSettings(const LauncherSettings&) = delete;
  /// Calls only functions that are allowed after fork.
  void restore() const;
  const sigset_t& awaited() const { return awaited_; }

 private:
  sigset_t awaited_, mask_;
  struct sigaction broken_pipe_, child_;
  rlimit files_;
};

/// A pipe's end, nonblocking.
class RankStream {
 public:
  /// `to`: the descriptor of the launcher that its lines go to.
  RankStream(int from, int to, std::string prefix) : from_(from), to_(to), lines_(std::move(prefix)) {}
  RankStream(RankStream&& other) noexcept;
  ~RankStream();

  bool is_open() const { return from_ >= 0; }
  int from() const { return from_; }
  int to() const { return to_; }
  /// One read; gives whole lines, at the end also the rest. True if there may be more now.
  bool read(std::string& lines);
  /// Nothing more is read.
  void close(std::string& lines);

 private:
  int from_, to_;
  RankLines lines_;
};

struct RankProcess {
  int rank = 0;
  pid_t process = 0;  // also the number of its group, which its own children are in
  bool lives = true;
  std::array<RankStream, 2> streams;  // its output and its errors

  /// To its group, as long as it has not been waited for.
  void send(int signal) const;
};

/// Starts it. Unavailable says why it cannot be.
RankProcess start_rank(int rank, const std::vector<std::string>& program, const std::vector<std::string>& environment,
                       const std::string& prefix, const LauncherSettings& settings);

}  // namespace gradus::command
