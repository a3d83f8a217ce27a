/// The inner loop of everything: each line here is paid for every thunk.
#include "gradus/backend/cpu/run/executor.h"
#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include "gradus/backend/cpu/run/profiled_run.h"
#include "gradus/base/divide.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/base/of_thread.h"
#include "gradus/base/share.h"
#include "gradus/base/spin.h"
#include "gradus/base/thread_pool.h"

namespace gradus {
namespace {

bool failed(const ErrorWord& error) { return error.thunk.load(std::memory_order_relaxed) != -1; }

/// True if a thunk failed before this section, so that every worker decides alike: another one may be further.
bool failed_before(const Binding& binding, const Section& section, const ErrorWord& error) {
  const std::int64_t thunk = error.thunk.load(std::memory_order_relaxed);
  return thunk != -1 && binding.section_of[at(thunk)] < &section - binding.sections.data();
}

/// The arguments of this job for this worker.
void set_job(KernelArguments& arguments, std::byte* arena, const Job& job, int worker) {
  arguments.data = job.data;
  arguments.thunk = job.thunk;
  arguments.scratch = arena + job.scratch + worker * job.scratch_stride;
}

void run_whole(KernelArguments& arguments, std::byte* arena, const Job& job) {
  const ProfiledJob profiled(arguments.member->log, job, !job.controls || arguments.member->worker == 0);
  set_job(arguments, arena, job, arguments.member->worker);
  job.run(&arguments, 0, job.extent);
}

/// The grains of a job that this worker begins with.
Units share_of(const TeamMember& member, const Job& job) {
  const std::int64_t grains = divide_up(job.extent, job.grain);
  return {grains * member.worker / member.team, grains * (member.worker + 1) / member.team};
}

void run_grains(KernelArguments& arguments, const Job& job, const Units& grains) {
  job.run(&arguments, grains.begin * job.grain, std::min(job.extent, grains.end * job.grain));
}

/// Runs the units of a share, while others may take over some of them.
void run_from(Share& share, KernelArguments& arguments, std::byte* arena, const Job& job, bool is_own) {
  const ProfiledJob profiled(arguments.member->log, job, is_own && arguments.member->worker == 0);
  set_job(arguments, arena, job, arguments.member->worker);
  if (job.cut == Cut::by_kernel) {
    const Units later = share.later(), units = later.count() > 0 ? later : share.now();
    if (units.count() <= 0) return;  // others were faster
    arguments.share = &share;
    run_grains(arguments, job, units);
    arguments.share = nullptr;
    return;
  }
  constexpr std::int64_t pieces = 8;
  for (;;) {
    const Units next = share.next(std::max(job.piece, share.later().count() / pieces));
    if (next.count() <= 0) return;
    run_grains(arguments, job, next);
  }
}

/// Jobs between two barriers, up to `divided` divided among the team, each of the others its owner's. Jobs that others
/// can take over in part come last.
class JobsTogether {
 public:
  static constexpr int most_shared = 8;

  JobsTogether(KernelArguments& arguments, std::byte* arena, const Job* first, const Job* divided, const Job* last)
      : arguments_(arguments),
        member_(*arguments.member),
        arena_(arena),
        first_(first),
        divided_(first, divided),
        owned_(divided, last) {}

  void run_own() {
    for (const Job& job : divided_)
      if (is_shared(job)) share(member_.worker, job).begin(share_of(member_, job));
    for (const Job& job : divided_)
      if (!is_shared(job)) run_part(job);
    for (const Job& job : owned_)
      if (job.owner % member_.team == member_.worker) run_whole(arguments_, arena_, job);
    for (const Job& job : divided_)
      if (is_shared(job)) run_from(share(member_.worker, job), arguments_, arena_, job, true);
  }

  /// Takes over units that others have not begun. Between their passes it waits a while without yielding its core, and
  /// not longer: a thread that many wait for at the barrier should sleep there.
  void take_over() {
    constexpr std::chrono::microseconds patience{300};
    for (bool taken = true; taken;) {
      taken = false;
      for (Spin spin(2 * patience); !taken && spin.waited() < patience; spin.pause()) {
        bool more_soon = false;
        for (const Job& job : divided_)
          if (is_shared(job))
            for (int i = 1; i < member_.team; ++i) {
              const Share::Found found = take_over_from((member_.worker + i) % member_.team, job);
              taken |= found == Share::Found::taken;
              more_soon |= found == Share::Found::more_soon;
            }
        if (!more_soon) break;
      }
    }
  }

 private:
  bool is_shared(const Job& job) const { return job.cut != Cut::nowhere && &job - first_ < most_shared; }
  Share& share(int worker, const Job& job) const { return member_.shares[worker * most_shared + (&job - first_)]; }
  Share::Found take_over_from(int worker, const Job& job) {
    constexpr std::int64_t least_of_kernels = 2;
    const std::int64_t least = job.cut == Cut::by_kernel ? least_of_kernels : job.piece;
    Share& mine = share(member_.worker, job);
    const Share::Found found = mine.take_over(share(worker, job), least);
    if (found == Share::Found::taken) run_from(mine, arguments_, arena_, job, false);
    return found;
  }
  void run_part(const Job& job) {
    const Units own = share_of(member_, job);
    if (own.count() <= 0 && !job.in_turns) return;
    const ProfiledJob profiled(member_.log, job, member_.worker == 0);
    set_job(arguments_, arena_, job, member_.worker);
    run_grains(arguments_, job, own);
  }

  KernelArguments& arguments_;
  const TeamMember& member_;
  std::byte* const arena_;
  const Job* const first_;
  const std::span<const Job> divided_, owned_;
};

/// Reports the work done before a section to the listener, if any.
void tell(JobListener* listener, const Section& section) {
  if (listener && section.first > 0) listener->done_before(section.first);
}

void run_in_order(KernelArguments& arguments, std::byte* arena, const Job* first, const Job* last,
                  JobListener* listener = nullptr) {
  for (const Job* job = first; job != last; ++job) {
    run_whole(arguments, arena, *job);
    if (job->may_fail && failed(*arguments.error)) return;
    if (listener) listener->done_before(static_cast<int>(job + 1 - first));
  }
}

/// The member that runs serial sections of a team.
TeamMember alone_as(const TeamMember& member) { return {.log = member.log}; }

/// A member's work of a section. After it the member may take over some of the others' work.
void run_own(const Binding& binding, const Section& section, KernelArguments& arguments, std::byte* arena) {
  const Job* jobs = binding.jobs.data();
  const TeamMember& member = *arguments.member;
  if (section.controls) {
    run_whole(arguments, arena, jobs[section.first]);
  } else if (section.alone) {
    if (member.worker != 0) return;
    const TeamMember alone = alone_as(member);
    arguments.member = &alone;
    run_in_order(arguments, arena, jobs + section.first, jobs + section.last);
    arguments.member = &member;
  } else {
    JobsTogether(arguments, arena, jobs + section.first, jobs + section.divided, jobs + section.last).run_own();
  }
}
void take_over(const Binding& binding, const Section& section, KernelArguments& arguments, std::byte* arena) {
  const Job* jobs = binding.jobs.data();
  if (section.controls || section.alone) return;
  JobsTogether(arguments, arena, jobs + section.first, jobs + section.divided, jobs + section.last).take_over();
}

/// One worker's work of these sections, `meets`: before the first one, too. After a failure it does nothing more, but
/// meets the others at every barrier.
void work(const Binding& binding, std::span<const Section> sections, bool meets, KernelArguments& arguments,
          std::byte* arena, JobListener* listener = nullptr) {
  for (const Section& section : sections) {
    if (std::exchange(meets, true)) arguments.member->meet();
    if (failed_before(binding, section, *arguments.error)) continue;
    tell(listener, section);
    run_own(binding, section, arguments, arena);
    take_over(binding, section, arguments, arena);
  }
}

/// Worker 0 continues after the first section, whose part it has done, for itself and for absent members.
void stand_in(const Binding& binding, std::span<const int> absent, KernelArguments& arguments, std::byte* arena,
              JobListener* listener) {
  const TeamMember& self = *arguments.member;
  std::vector<int> workers{self.worker};
  workers.insert(workers.end(), absent.begin(), absent.end());
  const auto run_as = [&](int worker, const Section& section) {
    const TeamMember member{worker, self.team, self.barrier, self.shares, self.log};
    arguments.member = &member;
    run_own(binding, section, arguments, arena);
    arguments.member = &self;
  };
  const std::span<const Section> sections = binding.sections;
  for (const int worker : absent) run_as(worker, sections.front());
  for (const Section& section : sections.subspan(1)) {
    self.barrier->wait(workers);
    if (failed_before(binding, section, *arguments.error)) continue;
    tell(listener, section);
    for (const int worker : workers) run_as(worker, section);
    take_over(binding, section, arguments, arena);
  }
}

/// The time that a caller waits for others to begin: half of their gain, unless that is much.
std::optional<std::chrono::nanoseconds> patience_for(const Binding& binding) {
  constexpr double much_ns = 1e6, longest_ns = 1e5;
  if (binding.meets_within || binding.gain_ns > much_ns) return std::nullopt;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(binding.gain_ns / 2, longest_ns)));
}

/// Worker 0's part. No other waits for it before the second section, so it begins at once and sees then which members
/// have come. True if all have.
bool lead(const Binding& binding, KernelArguments& arguments, std::byte* arena, JobListener* listener) {
  const std::span<const Section> sections = binding.sections;
  const auto patience = patience_for(binding);
  work(binding, patience ? sections.first(1) : sections, false, arguments, arena, listener);
  if (!patience) return true;
  ThreadPool& pool = ThreadPool::global();
  const bool are_here = sections.size() == 1 ? pool.others_leave_shortly() : arguments.member->barrier->wait_shortly(0);
  const std::span<const int> absent = are_here ? std::span<const int>() : pool.call_off_absent(*patience);
  if (absent.empty()) work(binding, sections.subspan(1), !are_here, arguments, arena, listener);
  else stand_in(binding, absent, arguments, arena, listener);
  return absent.empty();
}

KernelArguments arguments_of(const TeamMember& member, const Binding& binding, void* const* slots, ErrorWord& error) {
  return {slots, binding.dimensions.data(), nullptr, nullptr, &error, 0, &member};
}

void run_alone(const Binding& binding, void* const* slots, std::byte* arena, ErrorWord& error, ActivityLog* log,
               JobListener* listener = nullptr) {
  const ProfiledPart profiled(log, binding);
  const TeamMember alone{.log = log};
  KernelArguments arguments = arguments_of(alone, binding, slots, error);
  run_in_order(arguments, arena, binding.jobs.data(), binding.jobs.data() + binding.jobs.size(), listener);
}

/// The meeting of a team's members, and the rest of each one's work.
struct Meeting {
  TeamBarrier barrier;
  std::vector<Share> shares;
  explicit Meeting(int team) : barrier(team), shares(static_cast<std::size_t>(team * JobsTogether::most_shared)) {}
};
/// The last meeting of a team that this thread leads.
struct LastMeeting {
  std::optional<Meeting> meeting;
  int seats = 0;
};
Meeting& meeting_of(int team) {
  auto& [meeting, seats] = OfThread<LastMeeting>::get();
  if (seats != team) meeting.emplace(team);
  seats = team;
  return *meeting;
}

}  // namespace

void TeamMember::meet() const {
  if (team > 1) barrier->wait(worker);
}

void TeamMember::await_turn() const {
  if (team > 1) barrier->await_turn(worker);
}

void TeamMember::end_turn() const {
  if (team > 1) barrier->end_turn(worker);
}

bool execute(const Binding& binding, void* const* slots, std::byte* arena, ErrorWord& error, JobListener* listener) {
  ActivityLog* const log = CallContext::here().log;
  if (binding.team == 1) {
    const KernelFloats flush;
    run_alone(binding, slots, arena, error, log, listener);
    return true;
  }
  bool by_team = false;
  const auto part = [&, meeting = &meeting_of(binding.team)](int worker, int team) {
    if (team != binding.team) {  // the pool is busy, or was made smaller just now
      if (worker == 0) run_alone(binding, slots, arena, error, log, listener);
      return;
    }
    const TeamMember member{worker, team, &meeting->barrier, meeting->shares.data(),
                            log ? &log->worker(worker) : nullptr};
    const ProfiledPart profiled(member.log, binding);
    KernelArguments arguments = arguments_of(member, binding, slots, error);
    try {
      if (worker == 0) by_team = lead(binding, arguments, arena, listener);
      else work(binding, binding.sections, false, arguments, arena);
    } catch (...) {
      for (Share& share : meeting->shares) share.clear();
      throw;
    }
  };
  ThreadPool::Absence absence;
  if (binding.is_short) absence.gain = binding.gain_ns;
  ThreadPool::global().run(binding.team, part, absence);
  return by_team;
}

void execute_within(const TeamMember& member, const Binding& binding, void* const* slots, std::byte* arena,
                    ErrorWord& error) {
  if (binding.team == member.team && member.team > 1) {
    const ProfiledPart profiled(member.log, binding);
    KernelArguments arguments = arguments_of(member, binding, slots, error);
    return work(binding, binding.sections, true, arguments, arena);
  }
  member.meet();
  if (member.worker == 0) run_alone(binding, slots, arena, error, member.log);
}

void execute_rows(const TeamMember& member, const Binding& binding, void* const* slots, std::byte* scratch,
                  ErrorWord& error) {
  const RowJobs& all = binding.by_rows;
  const auto worker = static_cast<std::size_t>(member.worker);
  const std::int64_t begin = all.first[worker], end = all.first[worker + 1];
  const ProfiledPart profiled(member.log, binding);
  const TeamMember alone = alone_as(member);
  KernelArguments arguments{slots, binding.dimensions.data(), scratch, nullptr, &error, 0, &alone};
  for (const Job& job : all.jobs) {
    const ProfiledJob profiled_job(member.log, job, member.worker == 0);
    arguments.data = job.data;
    arguments.thunk = job.thunk;
    job.run(&arguments, begin * job.extent, end * job.extent);
  }
}

void report_failure(const KernelArguments* arguments, std::int64_t index, std::int64_t value) {
  static std::atomic<bool> writing = false;  // rare: one lock for all
  for (Spin spin; writing.exchange(true, std::memory_order_acquire);) spin.pause();
  ErrorWord& error = *arguments->error;
  const std::int64_t known = error.thunk.load(std::memory_order_relaxed);
  if (known == -1 || arguments->thunk < known || (arguments->thunk == known && index < error.index)) {
    error.index = index;
    error.value = value;
    error.thunk.store(arguments->thunk, std::memory_order_relaxed);
  }
  writing.store(false, std::memory_order_release);
}

}  // namespace gradus
