/// The inner loop of everything: what stands here is paid for every thunk.
#include "gradus/backend/executor.h"
#include <algorithm>
#include <optional>
#include "gradus/base/flush_denormals.h"
#include "gradus/base/spin.h"
#include "gradus/base/thread_pool.h"

namespace gradus {
namespace {

bool failed(const ErrorWord& error) { return error.thunk.load(std::memory_order_relaxed) != -1; }

/// Whether something failed before this section, so that every worker decides alike: another one may be further.
bool failed_before(const Binding& binding, const Section& section, const ErrorWord& error) {
  const std::int64_t thunk = error.thunk.load(std::memory_order_relaxed);
  return thunk != -1 && binding.section_of[static_cast<std::size_t>(thunk)] < &section - binding.sections.data();
}

/// The arguments of this job for this worker.
void set_job(KernelArguments& arguments, std::byte* arena, const Job& job, int worker) {
  arguments.data = job.data;
  arguments.thunk = job.thunk;
  arguments.scratch = arena + job.scratch + worker * job.scratch_stride;
}

void run_whole(KernelArguments& arguments, std::byte* arena, const Job& job) {
  set_job(arguments, arena, job, arguments.member->worker);
  job.run(&arguments, 0, job.extent);
}

void run_share(KernelArguments& arguments, std::byte* arena, const Job& job) {
  const auto [worker, team] = std::pair(arguments.member->worker, arguments.member->team);
  const std::int64_t units = (job.extent + job.grain - 1) / job.grain;
  const std::int64_t begin = units * worker / team * job.grain;
  const std::int64_t end = std::min(job.extent, units * (worker + 1) / team * job.grain);
  if (begin >= end && !job.in_turns) return;
  set_job(arguments, arena, job, worker);
  job.run(&arguments, begin, end);
}

void run_in_order(KernelArguments& arguments, std::byte* arena, const Job* first, const Job* last) {
  for (const Job* job = first; job != last; ++job) {
    run_whole(arguments, arena, *job);
    if (job->may_fail && failed(*arguments.error)) return;
  }
}

constexpr TeamMember alone;

/// What one worker of a team does. After a failure it does nothing more, but meets the others at every barrier.
void work(const Binding& binding, KernelArguments& arguments, std::byte* arena, bool forked) {
  const TeamMember& member = *arguments.member;
  const Job* jobs = binding.jobs.data();
  for (const Section& section : binding.sections) {
    if (!forked || &section != binding.sections.data()) member.meet();
    if (failed_before(binding, section, *arguments.error)) continue;
    if (section.controls) {
      run_whole(arguments, arena, jobs[section.first]);
    } else if (section.alone) {
      if (member.worker != 0) continue;
      arguments.member = &alone;
      run_in_order(arguments, arena, jobs + section.first, jobs + section.last);
      arguments.member = &member;
    } else {
      for (int i = section.first; i < section.divided; ++i) run_share(arguments, arena, jobs[i]);
      for (int i = section.divided; i < section.last; ++i)
        if (jobs[i].owner % member.team == member.worker) run_whole(arguments, arena, jobs[i]);
    }
  }
}

KernelArguments arguments_of(const TeamMember& member, const Binding& binding, void* const* slots, ErrorWord& error) {
  return {slots, binding.dimensions.data(), nullptr, nullptr, &error, 0, &member};
}

void run_alone(const Binding& binding, void* const* slots, std::byte* arena, ErrorWord& error) {
  KernelArguments arguments = arguments_of(alone, binding, slots, error);
  run_in_order(arguments, arena, binding.jobs.data(), binding.jobs.data() + binding.jobs.size());
}

/// The barrier of teams that this thread leads.
Barrier& barrier_for(int team) {
  thread_local std::optional<Barrier> barrier;
  thread_local int seats = 0;
  if (seats != team) barrier.emplace(team);
  seats = team;
  return *barrier;
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

void execute(const Binding& binding, void* const* slots, std::byte* arena, ErrorWord& error) {
  if (binding.team == 1) {
    const FlushDenormals flush;
    return run_alone(binding, slots, arena, error);
  }
  ThreadPool::global().run(binding.team, [&, barrier = &barrier_for(binding.team)](int worker, int team) {
    if (team != binding.team) {  // the pool is busy, or was made smaller just now
      if (worker == 0) run_alone(binding, slots, arena, error);
      return;
    }
    const TeamMember member{worker, team, barrier};
    KernelArguments arguments = arguments_of(member, binding, slots, error);
    work(binding, arguments, arena, true);
  });
}

void execute_within(const TeamMember& member, const Binding& binding, void* const* slots, std::byte* arena,
                    ErrorWord& error) {
  if (binding.team == member.team && member.team > 1) {
    KernelArguments arguments = arguments_of(member, binding, slots, error);
    return work(binding, arguments, arena, false);
  }
  member.meet();
  if (member.worker == 0) run_alone(binding, slots, arena, error);
}

void execute_rows(const TeamMember& member, const Binding& binding, void* const* slots, std::byte* scratch,
                  ErrorWord& error) {
  const RowJobs& all = binding.by_rows;
  const auto worker = static_cast<std::size_t>(member.worker);
  const std::int64_t begin = all.first[worker], end = all.first[worker + 1];
  KernelArguments arguments{slots, binding.dimensions.data(), scratch, nullptr, &error, 0, &alone};
  for (const Job& job : all.jobs) {
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
