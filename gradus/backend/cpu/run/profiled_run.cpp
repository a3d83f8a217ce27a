/// Entries of runs.
#include "gradus/backend/cpu/run/profiled_run.h"

namespace gradus {

void ProfiledRun::begin(std::span<const Ref<Buffer>> inputs) {
  log_->begin(Activity::compute);
  log_->prepare(binding_.team);
  if (!log_->awaits_batch()) return;
  for (const Ref<Buffer>& input : inputs)
    if ((flow_ = log_->flow_of(input.get())) != 0) break;
}

void ProfiledRun::end() {
  ActivityEvent run{.kind = ActivityEvent::Kind::run, .part = binding_.team, .name = binding_.number};
  run.bytes = memory::live_bytes();
  run.flow = flow_;
  log_->end_run(run);
}

std::uint64_t ProfiledPart::enter(ActivityLog& log, const Binding& binding) {
  return log.enter(binding.number, [&] { return binding.program->described(binding); });
}

}  // namespace gradus
