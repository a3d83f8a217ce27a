/// LauncherReports: a rank reports its state among the others to the launcher that started it on this machine
/// (base/launcher_note.h), so that the launcher can tell the rank that was the cause from those that only followed.
#pragma once
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include "gradus/distribute/cluster.h"

namespace gradus {

/// The state of a rank. A failure is its own, or follows from that of others.
enum class RankState { unknown, joins, together, left, failed, followed };

struct RankReport {
  int process = 0;  // ranks, then parameter servers
  int ranks = 0;    // of its group
  RankState state = RankState::unknown;
  std::string why = {};  // the reason of a failure

  std::string to_string() const;
  /// The report in `written`; empty if it is none.
  static std::optional<RankReport> parse(std::string_view written);
  static constexpr std::size_t most_bytes = 8192;
};

class LauncherReports {
 public:
  /// Ranks that are threads of one process send nothing.
  explicit LauncherReports(const Cluster& cluster);
  /// Sends a report. After a failure only the state of a new group is sent. From any thread.
  void say(RankState state, std::string_view why = {}) noexcept;

 private:
  const bool is_of_process_;
  std::mutex mutex_;
  RankReport report_;
};

}  // namespace gradus
