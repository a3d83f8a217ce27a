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

void run_whole(KernelArguments& arguments, const Job& job) {
  arguments.data = job.data;
  arguments.thunk = job.thunk;
  job.run(&arguments, 0, job.extent);
}

void run_share(KernelArguments& arguments, const Job& job, int worker, int team) {
  const std::int64_t units = (job.extent + job.grain - 1) / job.grain;
  const std::int64_t begin = units * worker / team * job.grain;
  const std::int64_t end = std::min(job.extent, units * (worker + 1) / team * job.grain);
  if (begin >= end) return;
  arguments.data = job.data;
  arguments.thunk = job.thunk;
  job.run(&arguments, begin, end);
}

void run_in_order(KernelArguments& arguments, const Job* first, const Job* last) {
  for (const Job* job = first; job != last; ++job) {
    run_whole(arguments, *job);
    if (job->may_fail && failed(*arguments.error)) return;
  }
}

/// What one worker of a team does. After a failure it does nothing more, but meets the others at every barrier.
void work(const Binding& binding, std::span<const Section> sections, KernelArguments arguments, Barrier& barrier,
          int worker, int team) {
  const Job* jobs = binding.jobs.data();
  for (const Section& section : sections) {
    if (&section != sections.data()) barrier.wait(worker);
    if (failed_before(binding, section, *arguments.error)) continue;
    if (section.alone) {
      if (worker == 0) run_in_order(arguments, jobs + section.first, jobs + section.last);
      continue;
    }
    for (int i = section.first; i < section.divided; ++i) run_share(arguments, jobs[i], worker, team);
    for (int i = section.divided; i < section.last; ++i)
      if (jobs[i].owner % team == worker) run_whole(arguments, jobs[i]);
  }
}

/// Sections without branches and loops, with one fork.
void run_together(const Binding& binding, std::span<const Section> sections, KernelArguments& arguments) {
  thread_local std::optional<Barrier> barrier;
  thread_local int seats = 0;
  if (seats != binding.team) {
    barrier.emplace(binding.team);
    seats = binding.team;
  }
  const Job* jobs = binding.jobs.data();
  auto* const scratch = static_cast<std::byte*>(arguments.scratch);
  ThreadPool::global().run(binding.team, [&, meeting = &*barrier](int worker, int team) {
    KernelArguments mine = arguments;
    mine.scratch = scratch + worker * binding.scratch_stride;
    if (team == binding.team) work(binding, sections, mine, *meeting, worker, team);
    else if (worker == 0)  // the pool is busy, or was made smaller just now
      run_in_order(mine, jobs + sections.front().first, jobs + sections.back().last);
  });
}

/// Phases: what lies between branches and loops runs together, they themselves on this thread.
void run_in_phases(const Binding& binding, KernelArguments& arguments) {
  std::span<const Section> rest = binding.sections;
  while (!rest.empty() && !failed(*arguments.error)) {
    const auto next = std::ranges::find_if(rest, &Section::controls);
    const auto together = static_cast<std::size_t>(next - rest.begin());
    if (together > 0) {
      run_together(binding, rest.first(together), arguments);
      rest = rest.subspan(together);
    } else {
      run_whole(arguments, binding.jobs[static_cast<std::size_t>(rest.front().first)]);
      rest = rest.subspan(1);
    }
  }
}

}  // namespace

void execute(const Binding& binding, void* const* slots, std::byte* scratch, ErrorWord& error) {
  KernelArguments arguments{slots, binding.dimensions.data(), scratch, nullptr, &error, 0};
  const Job* jobs = binding.jobs.data();
  if (binding.team == 1) {
    const FlushDenormals flush;
    run_in_order(arguments, jobs, jobs + binding.jobs.size());
    return;
  }
  if (binding.controls) run_in_phases(binding, arguments);
  else run_together(binding, binding.sections, arguments);
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
