/// ProfileTimeline: all that a profile has written down, for the reports, traces and pictures that are made of it.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>
#include "gradus/base/activity_log.h"

namespace gradus {

/// Measured sums of a thunk of a program.
struct KernelSum {
  std::int64_t calls = 0, own_ns = 0, waiting_ns = 0;
};

namespace detail::inline rooms {

class ProfileTimeline {
 public:
  /// The owner of a track.
  enum class TrackKind { pool, data, device };
  struct Track {
    TrackKind kind = TrackKind::pool;
    std::string name;
    ActivityLog::Kept kept;
  };
  struct Program {
    ProfiledProgram described;
    std::map<std::uint64_t, std::vector<KernelSum>> sums;  // by the stage for which it ran (0: none), then by thunk
    KernelSum& sum(std::uint64_t stage, std::int32_t thunk) {
      std::vector<KernelSum>& all = sums[stage];
      all.resize(described.kernels.size());
      return all[static_cast<std::size_t>(thunk)];
    }
  };
  struct VariableMemory {
    std::int64_t time = 0;  // when it was first seen
    std::int64_t bytes = 0;
    bool of_optimizer = false;
  };

  const std::string& name(std::uint64_t number) const { return names[number]; }
  /// The description of a kernel's event.
  const ProfiledKernel& kernel(const ActivityEvent& event) const {
    return programs.at(event.name).described.kernels[static_cast<std::size_t>(event.part)];
  }
  /// The name of an entry in a trace.
  std::string label(const ActivityEvent& event) const;

  std::int64_t begin = 0, end = 0;  // nanoseconds of the steady clock
  std::int64_t wall_begin = 0;      // `begin` in nanoseconds since 1970
  std::vector<Track> tracks;        // the first is the profiled thread's
  std::vector<std::string> names;
  std::unordered_map<std::uint64_t, Program> programs;
  std::map<std::uint64_t, VariableMemory> variables;
  std::size_t left_out = 0;  // events that were not kept
};

}  // namespace detail::inline rooms

}  // namespace gradus
