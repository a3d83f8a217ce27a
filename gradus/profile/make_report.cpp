/// Sums become rows.
#include "gradus/profile/make_report.h"
#include <algorithm>
#include "gradus/base/numbered.h"
#include "gradus/profile/machine_rates.h"

namespace gradus {
namespace {

using Kind = ActivityEvent::Kind;

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

/// Rows of one kind, by name, and by the stage for which kernels run.
class Rows {
 public:
  ProfileRow& row(ProfileKind kind, const std::string& name, const std::string& stage = {}) {
    ProfileRow& row = rows_[{kind, name, stage}];
    row.kind = kind;
    row.name = name;
    row.stage = stage;
    return row;
  }
  /// Work that would take so long at the rates of a thread.
  void add_least(ProfileRow& row, double flop_seconds, double byte_seconds) {
    row.of_peak += flop_seconds;
    row.of_bandwidth += byte_seconds;
  }
  std::vector<ProfileRow> sorted() {
    std::vector<ProfileRow> all;
    for (auto& [key, row] : rows_) {
      if (row.seconds > 0) row.of_peak /= row.seconds, row.of_bandwidth /= row.seconds;
      all.push_back(std::move(row));
    }
    std::ranges::stable_sort(all, std::greater<>(), &ProfileRow::seconds);
    return all;
  }

 private:
  std::map<std::tuple<ProfileKind, std::string, std::string>, ProfileRow> rows_;
};

/// Adds a program's kernels and layers for one stage of a dataset, or for none.
void add_program(Rows& rows, const ProfiledProgram& described, const std::vector<KernelSum>& sums,
                 const std::string& stage) {
  const MachineRates& rates = machine_rates();
  std::map<std::string, std::int64_t> layer_calls;
  for (std::size_t t = 0; t < sums.size(); ++t) {
    const KernelSum& sum = sums[t];
    const ProfiledKernel& kernel = described.kernels[t];
    if (sum.calls == 0 && sum.own_ns == 0) continue;
    const auto runs = static_cast<double>(sum.calls);
    const auto add = [&](ProfileRow& row) {
      row.seconds += seconds(sum.own_ns);
      row.waiting += seconds(sum.waiting_ns);
      row.bytes += static_cast<std::size_t>(sum.calls * kernel.bytes);
      row.flops += runs * kernel.flops;
      rows.add_least(row, runs * kernel.flops / (kernel.is_narrow ? rates.narrow_flops : rates.flops),
                     runs * static_cast<double>(kernel.bytes) / rates.bytes);
    };
    ProfileRow& row = rows.row(ProfileKind::kernel, kernel.name, stage);
    row.calls += sum.calls;
    add(row);
    if (kernel.layer.empty()) continue;
    ProfileRow& layer = rows.row(ProfileKind::layer, kernel.layer, stage);
    std::int64_t& calls = layer_calls[kernel.layer];
    calls = std::max(calls, sum.calls);
    if (kernel.is_gradient) layer.gradient_seconds += seconds(sum.own_ns);
    add(layer);
  }
  for (const auto& [layer, calls] : layer_calls) rows.row(ProfileKind::layer, layer, stage).calls += calls;
}

void add_kernels(Rows& rows, const ProfileTimeline& timeline) {
  for (const auto& [number, program] : timeline.programs)
    for (const auto& [stage, sums] : program.sums) add_program(rows, program.described, sums, timeline.name(stage));
}

/// A scope has all threads.
void add_others(Rows& rows, const ProfileTimeline& timeline, int threads) {
  const MachineRates& rates = machine_rates();
  for (const ProfileTimeline::Track& track : timeline.tracks)
    for (std::size_t i = 0; i < track.kept.sums.size(); ++i) {
      const auto& [kind, name] = track.kept.of_sums[i];
      const ActivitySum& sum = track.kept.sums[i];
      if (kind == Kind::stage) {
        ProfileRow& row = rows.row(ProfileKind::stage, timeline.name(name));
        row.calls += sum.calls;
        row.seconds += seconds(sum.own_ns);
        row.bytes += static_cast<std::size_t>(sum.bytes);
        rows.add_least(row, 0, static_cast<double>(sum.bytes) / rates.bytes);
      } else if (kind == Kind::room) {
        rows.row(ProfileKind::stage, timeline.name(name)).waiting += seconds(sum.seconds_ns);
      } else if (kind == Kind::scope) {
        ProfileRow& row = rows.row(ProfileKind::scope, timeline.name(name));
        row.calls += sum.calls;
        row.seconds += seconds(sum.seconds_ns);
        row.bytes += static_cast<std::size_t>(sum.bytes);
        row.flops += sum.flops;
        row.waiting += seconds(sum.waiting_ns);
        rows.add_least(row, sum.flops / rates.flops / threads, static_cast<double>(sum.bytes) / rates.bytes / threads);
      }
    }
  for (const ActivityEvent& event : timeline.tracks.front().kept.events)  // readers wait for prefetched elements
    if (event.kind == Kind::fetch && event.part == 1)
      rows.row(ProfileKind::stage, timeline.name(event.name)).waiting += seconds(event.end - event.begin);
}

/// Bytes of batches that are ready and of those that datasets hold, at each time at which that changed.
std::vector<std::pair<std::int64_t, std::int64_t>> bytes_of_queues(const ProfileTimeline& timeline) {
  std::vector<const ActivityEvent*> samples;
  for (const ProfileTimeline::Track& track : timeline.tracks)
    for (const ActivityEvent& event : track.kept.events)
      if (event.kind == Kind::queue || event.kind == Kind::held) samples.push_back(&event);
  std::ranges::stable_sort(samples, {}, &ActivityEvent::begin);
  std::map<std::pair<Kind, std::uint64_t>, std::int64_t> of_queue;
  std::vector<std::pair<std::int64_t, std::int64_t>> sums;
  for (const ActivityEvent* sample : samples) {
    of_queue[{sample->kind, sample->name}] = sample->bytes;
    std::int64_t all = 0;
    for (const auto& [name, bytes] : of_queue) all += bytes;
    sums.emplace_back(sample->begin, all);
  }
  return sums;
}

std::vector<ProfileMemory> memory_of(const ProfileTimeline& timeline) {
  std::vector<const ProfileTimeline::VariableMemory*> variables;
  for (const auto& [id, variable] : timeline.variables) variables.push_back(&variable);
  std::ranges::stable_sort(variables, {}, &ProfileTimeline::VariableMemory::time);
  const auto queues = bytes_of_queues(timeline);
  std::vector<ProfileMemory> all;
  std::size_t next_variable = 0, next_queue = 0;
  ProfileMemory now;
  for (const ActivityEvent& event : timeline.tracks.front().kept.events) {
    if (event.kind != Kind::memory) continue;
    for (; next_variable < variables.size() && variables[next_variable]->time <= event.end; ++next_variable)
      (variables[next_variable]->of_optimizer ? now.optimizer : now.weights) += at(variables[next_variable]->bytes);
    for (; next_queue < queues.size() && queues[next_queue].first <= event.end; ++next_queue)
      now.data = at(queues[next_queue].second);
    now.seconds = seconds(event.end - timeline.begin);
    now.activations = at(event.own);
    now.temporaries = at(std::max<std::int64_t>(0, event.count - event.own));
    const std::size_t known = now.weights + now.optimizer + now.activations + now.temporaries + now.data;
    now.others = at(event.bytes) > known ? at(event.bytes) - known : 0;
    all.push_back(now);
  }
  return all;
}

}  // namespace

ProfileReport make_report(ProfileTimeline timeline, std::size_t peak_bytes, int threads) {
  ProfileReport report{.peak_bytes = peak_bytes, .threads = threads};
  const auto& parts = timeline.tracks.front().kept.nanoseconds;
  const auto part = [&](Activity activity) { return seconds(parts[static_cast<std::size_t>(activity)]); };
  report.compute = part(Activity::compute);
  report.input_wait = part(Activity::input);
  report.compile = part(Activity::compile);
  report.communication = part(Activity::communication);
  report.host = part(Activity::host);
  report.seconds = report.compute + report.input_wait + report.compile + report.communication + report.host;
  report.peak_flops = machine_rates().flops;
  report.peak_bandwidth = machine_rates().bytes;
  for (const ProfileTimeline::Track& track : timeline.tracks)
    for (std::size_t i = 0; i < track.kept.sums.size(); ++i)
      if (track.kept.of_sums[i].first == Kind::run) report.waiting += seconds(track.kept.sums[i].own_ns);
  Rows rows;
  add_kernels(rows, timeline);
  add_others(rows, timeline, std::max(1, threads));
  report.rows = rows.sorted();
  report.memory = memory_of(timeline);
  report.suggestions = suggestions_of(report, timeline);
  report.timeline = std::make_shared<const ProfileTimeline>(std::move(timeline));
  return report;
}

}  // namespace gradus
