/// The launcher's knowledge of its processes, and the cause of a failure: the first process that failed by itself, not
/// the first that ended because of it.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include "gradus/distribute/cluster/launcher_reports.h"

namespace gradus::command {

struct RankFate {
  bool lives = true, is_stopped = false;
  bool is_replaced = false;    // a killed worker of parameter servers, whose steps others do
  int status = 0, signal = 0;  // after its end: the exit code, and the signal that killed it
  RankState state = RankState::unknown;
  std::string why = {};  // the reason of its failure
  // Moments of its end and of its last report, counted over all processes.
  int ended = 0, said = 0;

  bool has_ended_well() const { return !lives && status == 0 && signal == 0; }
  bool has_failed() const { return !lives && !has_ended_well() && !is_replaced; }
};

using NameOfProcess = std::function<std::string(int process)>;

/// "ended with exit code 3", or by which signal.
std::string how_it_ended(const RankFate& fate);

/// The process that was the cause, as a sentence. Empty while none has failed, or while the cause may be a process that
/// still runs; `since`: the time since the first failure.
std::optional<std::string> cause(std::span<const RankFate> fates, std::chrono::milliseconds since,
                                 const NameOfProcess& name_of);
/// A sentence if one of the first `ranks` processes waits at a meeting for a rank that has ended.
std::optional<std::string> vain_meeting(std::span<const RankFate> fates, int ranks, const NameOfProcess& name_of);
/// The names of processes that still live, eight at most.
std::string living(std::span<const RankFate> fates, const NameOfProcess& name_of);

}  // namespace gradus::command
