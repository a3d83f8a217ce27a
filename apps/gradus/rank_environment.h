/// The environment of a started rank.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gradus::command {

/// Where the ranks of one start meet on this machine, and the secret that they share.
struct MeetingOfRanks {
  int ranks = 1;
  std::int64_t port = 0;
  std::string token = {};
  std::int64_t restart = 0;                     // how often ranks have been started before
  std::vector<std::int64_t> server_ports = {};  // one a parameter server
  std::string launcher = {};                    // the socket to which ranks report; empty: none

  int processes() const { return ranks + static_cast<int>(server_ports.size()); }
  /// "rank 2"; of processes after the ranks "parameter server 0".
  std::string name_of(int process) const;
};
/// With a fresh token; without a port with one that is free now, as those of servers are. Unavailable if there is none.
MeetingOfRanks new_meeting(int ranks, std::optional<std::int64_t> port, int servers = 0);

/// How long ranks wait for each other, according to the user's GRADUS_CLUSTER.
struct TimesOfRanks {
  std::chrono::milliseconds timeout{}, heartbeat{};
};
/// The defaults of Cluster if GRADUS_CLUSTER has no valid times; the ranks then report the error.
TimesOfRanks times_of_ranks(const MeetingOfRanks& meeting);

/// The variables of this process, "NAME=value", without other launchers' variables of ranks, and with GRADUS_CLUSTER,
/// which keeps the user's timeouts and certificates, GRADUS_RESTART and GRADUS_LAUNCHER. GRADUS_NUM_THREADS becomes the
/// rank's share of the cores, unless it is set. Processes after the ranks are parameter servers. DataError if the
/// user's GRADUS_CLUSTER is no JSON object.
std::vector<std::string> environment_of_rank(int process, const MeetingOfRanks& meeting);

}  // namespace gradus::command
