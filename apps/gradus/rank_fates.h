/// What the launcher knows of the processes that it has started, and which of them was the cause where one fails: the
/// first that failed by itself, not the first that was done with following it.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include "gradus/distribute/launcher_reports.h"

namespace gradus::command {

struct RankFate {
  bool lives = true, is_stopped = false;
  bool is_replaced = false;    // a killed worker of parameter servers, whose steps others do
  int status = 0, signal = 0;  // of one that has ended: the exit code, or what killed it
  RankState state = RankState::unknown;
  int group = 0;         // how many ranks its group has
  std::string why = {};  // of its failure
  // When it ended, and when it said where it stands, counted over all processes.
  int ended = 0, said = 0;

  bool has_ended_well() const { return !lives && status == 0 && signal == 0; }
  bool has_failed() const { return !lives && !has_ended_well() && !is_replaced; }
};

using NameOfProcess = std::function<std::string(int process)>;

/// "ended with exit code 3", or by which signal.
std::string how_it_ended(const RankFate& fate);

/// Which process was the cause, as a sentence. Nothing while none has failed, or another one than those that have may
/// still be the cause; `since`: the first failure.
std::optional<std::string> cause(std::span<const RankFate> fates, std::chrono::milliseconds since,
                                 const NameOfProcess& name_of);
/// Of `ranks`, the first processes: a sentence if one waits at a meeting for one that has ended.
std::optional<std::string> vain_meeting(std::span<const RankFate> fates, int ranks, const NameOfProcess& name_of);
/// Those that still live, eight at most.
std::string living(std::span<const RankFate> fates, const NameOfProcess& name_of);

}  // namespace gradus::command
