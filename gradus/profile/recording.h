/// ProfileRecording: takes a profile.
#pragma once
#include <deque>
#include <map>
#include <mutex>
#include "gradus/base/rooms.h"
#include "gradus/profile/timeline.h"

namespace gradus {

class ProfileRecording final : public ProfileListener {
 public:
  /// A part of a kernel.
  struct Leaf {
    std::int64_t begin, end;
    std::uint64_t program;
    std::int32_t part;
  };
  ProfileRecording();
  /// The log of the thread that is profiled.
  ActivityLog& main() { return main_; }
  /// The recorded timeline. From now on nothing is recorded.
  ProfileTimeline finish();
  /// A mistake in the use of scopes, which the end of the profile tells.
  void note_problem(std::string problem);
  std::string problem() const;

  ActivityLog& log_of_data_thread() override;
  ActivityLog& log_of_device(std::string_view device) override;
  std::unique_ptr<ActivityLog> log_of_worker(const ActivityLog& leader, int worker) override;
  std::uint64_t name(std::string_view text) override;
  void describe(std::uint64_t program, const std::function<ProfiledProgram()>& description) override;
  void finish_run(ActivityLog& leader, const ActivityEvent& run) override;
  void note_variable(std::uint64_t id, std::int64_t bytes, bool of_optimizer) override;
  std::uint64_t next_flow() override { return flows_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  struct Other {
    ProfileTimeline::TrackKind kind;
    std::string name;
    std::unique_ptr<ActivityLog> log;
  };
  ProfileTimeline::Program& program_of(std::uint64_t number);
  static void forget_kernels(ActivityLog& leader);
  std::int64_t add_waits(ActivityLog& leader, const ActivityEvent& run);

  ActivityLog main_;
  std::atomic<std::uint64_t> flows_{0};
  mutable std::mutex guard_;  // guards the members below
  std::deque<Other> others_;
  std::map<std::string, std::uint64_t, std::less<>> numbers_;
  ProfileTimeline timeline_;
  std::string problem_;
  bool is_finished_ = false;
  std::uint64_t last_number_ = 0;
  ProfileTimeline::Program* last_program_ = nullptr;  // of that number; programs stay where they are
  std::vector<std::vector<Leaf>> leaves_;             // of each worker, in the run that is looked at
};

}  // namespace gradus
