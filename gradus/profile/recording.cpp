/// Taking entries, and finding out which thread waited for which.
#include "gradus/profile/recording.h"
#include <algorithm>
#include <span>
#include "gradus/base/error.h"

namespace gradus {
namespace {

using Kind = ActivityEvent::Kind;

/// Kernels of one worker in a run within which no other one ran, in their order.
void take_leaves(const std::vector<ActivityEvent>& kernels, std::vector<ProfileRecording::Leaf>& leaves) {
  leaves.clear();
  for (const ActivityEvent& event : kernels)
    if (event.own == event.end - event.begin) leaves.push_back({event.begin, event.end, event.name, event.part});
}

}  // namespace

std::string ProfileTimeline::label(const ActivityEvent& event) const {
  switch (event.kind) {
    case Kind::kernel: return kernel(event).name;
    case Kind::run: return "program";
    case Kind::fetch: return "next element";
    case Kind::making: return "make element";
    case Kind::room: return "waits for room";
    default: return name(event.name);
  }
}

ProfileRecording::ProfileRecording() : main_(*this) { timeline_.names.emplace_back(); }

void ProfileRecording::note_problem(std::string problem) {
  const std::lock_guard lock(guard_);
  if (problem_.empty()) problem_ = std::move(problem);
}
std::string ProfileRecording::problem() const {
  const std::lock_guard lock(guard_);
  return problem_;
}

ActivityLog& ProfileRecording::log_of_data_thread() {
  const std::lock_guard lock(guard_);
  const auto before =
      std::ranges::count(others_, ProfileTimeline::TrackKind::data, [](const Other& other) { return other.kind; });
  return *others_
              .emplace_back(Other{ProfileTimeline::TrackKind::data, text("data thread ", before + 1),
                                  std::make_unique<ActivityLog>(*this)})
              .log;
}

ActivityLog& ProfileRecording::log_of_device(std::string_view device) {
  const std::lock_guard lock(guard_);
  for (const Other& other : others_)
    if (other.kind == ProfileTimeline::TrackKind::device && other.name == device) return *other.log;
  return *others_
              .emplace_back(
                  Other{ProfileTimeline::TrackKind::device, std::string(device), std::make_unique<ActivityLog>(*this)})
              .log;
}

std::unique_ptr<ActivityLog> ProfileRecording::log_of_worker(const ActivityLog&, int) {
  return std::make_unique<ActivityLog>(*this);
}

std::uint64_t ProfileRecording::name(std::string_view text) {
  const std::lock_guard lock(guard_);
  if (const auto known = numbers_.find(text); known != numbers_.end()) return known->second;
  const std::uint64_t number = timeline_.names.size();
  timeline_.names.emplace_back(text);
  numbers_.emplace(text, number);
  return number;
}

void ProfileRecording::describe(std::uint64_t program, const std::function<ProfiledProgram()>& description) {
  {
    const std::lock_guard lock(guard_);
    if (timeline_.programs.contains(program)) return;
  }
  ProfileTimeline::Program made{description(), {}};
  const std::lock_guard lock(guard_);
  timeline_.programs.try_emplace(program, std::move(made));
}

void ProfileRecording::note_variable(std::uint64_t id, std::int64_t bytes, bool of_optimizer) {
  const std::lock_guard lock(guard_);
  timeline_.variables.try_emplace(id, ProfileTimeline::VariableMemory{ActivityLog::now(), bytes, of_optimizer});
}

/// While a worker has nothing to do it waits for the kernel that ends last before its next one begins. Workers that
/// have no part in a run are not asked. Nanoseconds in all.
std::int64_t ProfileRecording::add_waits(ActivityLog& leader, const ActivityEvent& run) {
  leaves_.resize(std::max(leaves_.size(), leader.workers()));
  std::size_t busy = 0;
  for (std::size_t w = 0; w < leader.workers(); ++w) {
    const auto& kernels = leader.worker(static_cast<int>(w)).kernels();
    if (!kernels.empty()) take_leaves(kernels, leaves_[busy++]);
  }
  if (busy < 2) return 0;
  const std::span<const std::vector<Leaf>> of_workers(leaves_.data(), busy);
  std::int64_t all = 0;
  const auto add = [&](std::size_t worker, std::int64_t begin, std::int64_t end) {
    if (end <= begin) return;
    all += end - begin;
    const Leaf* awaited = nullptr;
    for (std::size_t other = 0; other < of_workers.size(); ++other) {
      if (other == worker) continue;
      const auto& events = of_workers[other];
      const auto after = std::ranges::upper_bound(events, end, {}, &Leaf::end);
      if (after == events.begin()) continue;
      const Leaf& last = *std::prev(after);
      if (last.end > begin && (!awaited || last.end > awaited->end)) awaited = &last;
    }
    if (!awaited) return;
    program_of(awaited->program).sum(leader.stage(), awaited->part).waiting_ns += awaited->end - begin;
  };
  for (std::size_t w = 0; w < of_workers.size(); ++w) {
    std::int64_t free_since = run.begin;
    for (const Leaf& event : of_workers[w]) {
      add(w, free_since, event.begin);
      free_since = event.end;
    }
    add(w, free_since, run.end);
  }
  return all;
}

/// Kernels of one program follow each other.
ProfileTimeline::Program& ProfileRecording::program_of(std::uint64_t number) {
  if (number != last_number_) {
    last_program_ = &timeline_.programs.at(number);
    last_number_ = number;
  }
  return *last_program_;
}

void ProfileRecording::forget_kernels(ActivityLog& leader) {
  for (std::size_t w = 0; w < leader.workers(); ++w) leader.worker(static_cast<int>(w)).kernels().clear();
}

void ProfileRecording::finish_run(ActivityLog& leader, const ActivityEvent& run) {
  std::int64_t bytes = 0, waiting = 0;
  double flops = 0;
  ActivityEvent memory{.kind = Kind::memory, .begin = run.begin, .end = run.end, .count = 0, .bytes = run.bytes};
  {
    const std::lock_guard lock(guard_);
    if (is_finished_) return forget_kernels(leader);
    for (std::size_t w = 0; w < leader.workers(); ++w)
      for (const ActivityEvent& event : leader.worker(static_cast<int>(w)).kernels()) {
        ProfileTimeline::Program& program = program_of(event.name);
        KernelSum& sum = program.sum(leader.stage(), event.part);
        sum.own_ns += event.own;
        if (!event.is_first) continue;
        const ProfiledKernel& kernel = program.described.kernels[static_cast<std::size_t>(event.part)];
        ++sum.calls;
        bytes += kernel.bytes;
        flops += kernel.flops;
      }
    waiting = add_waits(leader, run);
    if (run.name == last_number_ || timeline_.programs.contains(run.name)) {
      memory.count = program_of(run.name).described.temporaries;
      memory.own = last_program_->described.activations;
    }
  }
  for (std::size_t w = 0; w < leader.workers(); ++w) {
    ActivityLog& log = leader.worker(static_cast<int>(w));
    if (log.kernels().empty()) continue;
    log.keep_kernels(log.kernels());
    log.kernels().clear();
  }
  leader.add_work(bytes, flops, waiting);
  ActivityEvent kept = run;
  kept.bytes = bytes;
  kept.own = waiting;
  leader.keep(kept);
  leader.keep(memory);
}

ProfileTimeline ProfileRecording::finish() {
  using TrackKind = ProfileTimeline::TrackKind;
  const std::lock_guard lock(guard_);
  const auto take = [&](ActivityLog& log, TrackKind kind, const std::string& name) {
    timeline_.tracks.push_back({kind, name, log.close()});
    timeline_.left_out += timeline_.tracks.back().kept.left_out;
  };
  const auto take_team = [&](ActivityLog& leader, const std::string& team) {
    for (std::size_t w = 1; w < leader.workers(); ++w)
      take(leader.worker(static_cast<int>(w)), TrackKind::pool, text(team, "thread ", w));
  };
  take(main_, TrackKind::pool, "thread 0 (profiled)");
  take_team(main_, "");
  for (Other& other : others_) {
    take(*other.log, other.kind, other.name);
    if (other.kind == TrackKind::device) take_team(*other.log, other.name + " ");
  }
  timeline_.begin = timeline_.tracks.front().kept.begin;
  timeline_.end = timeline_.tracks.front().kept.end;
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  timeline_.wall_begin =
      std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count() - (ActivityLog::now() - timeline_.begin);
  is_finished_ = true;
  return std::exchange(timeline_, {});
}

}  // namespace gradus
