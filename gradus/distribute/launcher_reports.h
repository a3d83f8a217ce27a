/// LauncherReports: a rank tells the launcher that has started it on this machine where it stands with the others, so
/// that the launcher can say which rank was the cause, and which ones only followed. One datagram a report to a socket
/// of the abstract namespace; nobody waits for it, and where it does not arrive nothing else changes.
#pragma once
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include "gradus/distribute/cluster.h"

namespace gradus {

/// Where a rank stands. A failure is its own, or follows from that of others.
enum class RankState { unknown, joins, together, left, failed, followed };

struct RankReport {
  int process = 0;  // ranks, then parameter servers
  int ranks = 0;    // of the group
  RankState state = RankState::unknown;
  std::string why = {};  // of failures

  std::string to_string() const;
  /// Nothing where it is none.
  static std::optional<RankReport> parse(std::string_view written);
  static constexpr std::size_t most_bytes = 8192;
};

class LauncherReports {
 public:
  /// Says nothing where Cluster::launcher is empty.
  explicit LauncherReports(const Cluster& cluster);
  ~LauncherReports();
  LauncherReports(const LauncherReports&) = delete;
  /// After a failure only the state of a new group counts. From any thread.
  void say(RankState state, std::string_view why = {}) noexcept;

 private:
  const std::string launcher_;
  std::mutex mutex_;
  RankReport report_;
  int socket_ = -1;
};

}  // namespace gradus
