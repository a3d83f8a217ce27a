/// Extents, the layout of the arena, and each worker's jobs.
#include "gradus/backend/cpu/run/binding.h"
#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <set>
#include "gradus/backend/cpu/thread_rates.h"
#include "gradus/base/divide.h"
#include "gradus/base/share.h"

namespace gradus {
namespace {

// The cost model, in nanoseconds.
constexpr double fork_ns = 2000, barrier_ns = 300;
constexpr double worth_dividing_ns = 1500, worth_working_together_ns = 50000;
/// At the usual rates: less gains nothing by threads even where a thread is four times slower, and rates are not asked.
constexpr double worth_measuring_ns = fork_ns / 4;
/// Time of one thread between two meetings: from there on a team is worth it although some of its threads may be late.
constexpr double long_section_ns = 1e6;
constexpr double worth_taking_over_ns = 8000,
                 worth_sharing_ns = 200000;  // a piece, and a job that has pieces
/// For a body's temporaries, which members with rows of their own have each for itself.
constexpr std::int64_t most_bytes_by_rows = 4 << 20;

class Binder {
 public:
  Binder(const Graph& graph, const Lowered& lowered, const StagePlan& schedule, std::span<const std::int64_t> symbols,
         int threads, Start start, const LoopBody* body)
      : graph_(graph), lowered_(lowered), schedule_(schedule), symbols_(symbols), start_(start), body_(body) {
    static std::atomic<std::uint64_t> bindings{0};
    bound_->number = bindings.fetch_add(1, std::memory_order_relaxed) + 1;
    bound_->symbols.assign(symbols.begin(), symbols.end());
    bound_->threads = threads;
    bound_->inside = schedule.inside;
  }

  std::unique_ptr<Binding> run() {
    refuse_what_no_memory_holds();
    for (std::int64_t d : lowered_.dimensions.all()) bound_->dimensions.push_back(extent(d));
    for (const Thunk& thunk : lowered_.thunks) bind_thunk(thunk);
    choose_rates();
    bound_->section_of.assign(lowered_.thunks.size(), 0);
    if (lowered_.times) bound_->measured.resize(lowered_.thunks.size());
    for (const std::vector<int>& stage : schedule_.stages) add_stage(stage);
    decide_team();
    note_times();
    if (body_ && !body_->carries.empty() && threads_gain()) divide_by_rows();
    lay_out_arena();
    find_outputs();
    return std::move(bound_);
  }

 private:
  std::int64_t extent(std::int64_t d) const { return dimension::evaluate(d, symbols_); }

  /// Before anything is reckoned with such sizes: ResourceExhausted.
  void refuse_what_no_memory_holds() const {
    constexpr std::int64_t address_space = std::int64_t{1} << 47;
    const auto check = [&](int value) {
      const Spec& spec = graph_[value].spec;
      const std::int64_t bytes = bytes_of({spec.dtype, spec.shape.evaluated(symbols_)});
      if (bytes > address_space) Buffer::allocate(bytes);
    };
    for (const Temporary& t : schedule_.temporaries)
      if (t.thunk < 0) check(t.slot);
    for (const int output : graph_.outputs) check(output);
  }

  void bind_thunk(const Thunk& thunk) {
    BoundThunk& b = thunks_.emplace_back();
    if (thunk.is_second) set_second(thunks_.end()[-2], b);
    else if (thunk.bind) b = thunk.bind(symbols_);
    else
      b = {thunk.data,          extent(thunk.extent),         extent(thunk.grain),          extent(thunk.bytes),
           extent(thunk.flops), extent(thunk.worker_scratch), extent(thunk.shared_scratch), thunk.failure};
    if (b.together) choose_together(b);
    bound_->data.push_back(b.data);
    bound_->tiles |= b.tiles;
    bound_->images.push_back(thunk.is_second ? bound_->images.back() : b.image);
    const std::string_view subject = b.fails_as.empty() ? std::string_view(thunk.label) : b.fails_as;
    bound_->failures.push_back(b.failure.empty() ? std::string() : text(subject, ": ", b.failure));
    bound_->moved.push_back(b.bytes);
    bound_->flops.push_back(b.flops);
  }

  /// A program that no team would run is bound without a measurement.
  void choose_rates() {
    double cost = 0;
    for (const BoundThunk& b : thunks_) cost += estimated_ns(rates_, b.bytes, b.flops) + b.nested_ns;
    if (body_) cost *= static_cast<double>(std::max<std::int64_t>(1, body_->iterations));
    if (bound_->threads > 1 && cost > worth_measuring_ns) rates_ = thread_rates();
  }

  static void set_second(const BoundThunk& first, BoundThunk& second) {
    second.data = first.data;
    second.extent = first.second.extent;
    second.bytes = first.second.bytes;
    second.flops = first.second.flops;
    second.worker_scratch = first.second.worker_scratch;
  }

  Job job_of(int t) const {
    const BoundThunk& b = thunks_[t];
    Job job = whole_job_of(t);
    if (b.together) {
      job.run = b.together, job.controls = true, job.team = bound_->threads;
      return job;
    }
    if (b.in_turns && is_divided(job)) job.run = b.in_turns, job.extent = b.turns, job.grain = 1, job.in_turns = true;
    if (is_shared(job)) {
      const auto grains = static_cast<double>(divide_up(job.extent, job.grain));
      job.cut = b.cut;
      job.piece = std::max<std::int64_t>(1, static_cast<std::int64_t>(worth_taking_over_ns / job.cost * grains));
    }
    return job;
  }
  /// True if it is worth asking, for each piece, if another worker has taken it over.
  bool is_shared(const Job& job) const {
    return lowered_.balances && is_divided(job) && !job.in_turns && job.cost >= worth_sharing_ns &&
           divide_up(job.extent, job.grain) <= Share::most_units;
  }
  Job whole_job_of(int t) const {
    const BoundThunk& b = thunks_[t];
    return {.run = b.run ? b.run : lowered_.thunks[at(t)].run,
            .data = b.data.get(),
            .extent = b.extent,
            .grain = std::max<std::int64_t>(1, b.grain),
            .thunk = t,
            .cost = estimated_ns(rates_, b.bytes, b.flops),
            .controls = lowered_.thunks[at(t)].controls,
            .team = b.team == bound_->threads ? b.team : 1,
            .may_fail = b.may_fail || !b.failure.empty()};
  }
  /// The same job, with a clock around it if the program is measured.
  Job measured(Job job) {
    if (!lowered_.times) return job;
    const auto t = static_cast<std::size_t>(job.thunk);
    bound_->measured[t] = {job.run, job.data, &lowered_.times->thunk(t), job.controls || job.in_turns};
    job.run = run_measured;
    job.data = &bound_->measured[t];
    return job;
  }
  /// A team works on each grain together where the grains are too few to be divided.
  void choose_together(BoundThunk& b) const {
    const bool is_even = divide_up(b.extent, std::max<std::int64_t>(1, b.grain)) % bound_->threads == 0;
    if (bound_->threads > 1 && may_work_together(b) && !is_even) b.worker_scratch = b.scratch_together;
    else b.together = nullptr, b.shared_scratch = 0, b.nested_meetings = 0;
  }
  bool is_divided(const Job& job) const {
    return bound_->threads > 1 && job.cost > worth_dividing_ns && (job.extent > job.grain || job.in_turns);
  }

  void add_stage(const std::vector<int>& stage) {
    std::vector<Job> jobs;
    std::vector<Job> controls;
    for (int t : stage)
      if (const Job job = measured(job_of(t)); job.extent > 0) (job.controls ? controls : jobs).push_back(job);
    if (!jobs.empty()) add_section(std::move(jobs));
    for (const Job& job : controls) add_control(job);
  }

  void add_control(const Job& job) {
    const int first = static_cast<int>(bound_->jobs.size());
    bound_->jobs.push_back(job);
    if (job.team == 1) add_alone(first, first + 1);
    else
      bound_->sections.push_back(
          {.first = first, .divided = first, .last = first + 1, .alone = false, .controls = true});
    note_section(first, first + 1);
  }

  void add_section(std::vector<Job> jobs) {
    const auto whole = std::ranges::stable_partition(jobs, [&](const Job& job) { return is_divided(job); });
    const double cost =
        std::accumulate(jobs.begin(), jobs.end(), 0.0, [](double c, const Job& j) { return c + j.cost; });
    const bool alone = whole.size() == jobs.size() && (jobs.size() == 1 || cost < worth_dividing_ns);
    const bool may_fail = std::ranges::any_of(jobs, &Job::may_fail);
    for (Job& job : jobs) job.may_fail = false;
    jobs.back().may_fail = may_fail;
    const int first = static_cast<int>(bound_->jobs.size());
    const int divided = first + static_cast<int>(jobs.size() - whole.size());
    if (!alone) {
      give_owners(std::span(whole.begin(), whole.end()));
      bound_->side_by_side_ns += gain_of(jobs, jobs.size() - whole.size());
    }
    bound_->jobs.insert(bound_->jobs.end(), jobs.begin(), jobs.end());
    const int last = static_cast<int>(bound_->jobs.size());
    if (alone) add_alone(first, last);
    else bound_->sections.push_back({.first = first, .divided = divided, .last = last, .alone = false});
    note_section(first, last);
  }

  /// Neighbours that worker 0 runs alone are one section.
  void add_alone(int first, int last) {
    if (!bound_->sections.empty() && bound_->sections.back().alone) bound_->sections.back().last = last;
    else bound_->sections.push_back({.first = first, .divided = first, .last = last});
  }

  void note_section(int first, int last) {
    for (int i = first; i < last; ++i)
      bound_->section_of[bound_->jobs[at(i)].thunk] = static_cast<int>(bound_->sections.size()) - 1;
  }

  /// The gain of running these jobs together instead of in sequence.
  double gain_of(const std::vector<Job>& jobs, std::size_t divided) const {
    if (jobs.size() == 1) return 0;
    Numbered<double> load(static_cast<std::size_t>(bound_->threads));
    double one_by_one = 0;
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      one_by_one += barrier_ns + (k < divided ? jobs[k].cost / bound_->threads : jobs[k].cost);
      if (k < divided)
        for (double& each : load) each += jobs[k].cost / bound_->threads;
      else load[jobs[k].owner] += jobs[k].cost;
    }
    return one_by_one - barrier_ns - std::ranges::max(load);
  }

  /// The longest job goes to the worker that has least to do.
  void give_owners(std::span<Job> jobs) const {
    std::ranges::stable_sort(jobs, std::greater<>(), &Job::cost);
    Numbered<double> load(static_cast<std::size_t>(bound_->threads));
    for (Job& job : jobs) {
      const auto least = std::ranges::min_element(load);
      job.owner = static_cast<int>(least - load.begin());
      *least += job.cost;
    }
  }

  /// Forking has to gain more than it costs. A loop has weighed the same for itself.
  void decide_team() {
    double gain = start_ == Start::fork ? -fork_ns : 0;
    for (const Section& section : bound_->sections) {
      gain -= barrier_ns;
      if (section.controls) gain += std::numeric_limits<double>::infinity();
      if (section.alone || section.controls) continue;
      for (int i = section.first; i < section.last; ++i) gain += bound_->jobs[at(i)].cost * (1 - 1.0 / bound_->threads);
    }
    bound_->team = gain > 0 ? bound_->threads : 1;
    if (bound_->team == 1) bound_->side_by_side_ns = 0;
  }

  void note_times() {
    std::int64_t meetings = 0;
    for (const Section& section : bound_->sections) bound_->meets_within |= section.controls;
    for (const Job& job : bound_->jobs) {
      const BoundThunk& b = thunks_[job.thunk];
      bound_->cost_ns += job.cost + b.nested_ns;
      meetings += 1 + b.nested_meetings;
    }
    if (bound_->team == 1) return;
    bound_->gain_ns = bound_->cost_ns * (1 - 1.0 / bound_->team);
    bound_->is_short = bound_->cost_ns < long_section_ns * static_cast<double>(meetings);
  }

  void lay_out_arena() {
    const auto scratch_of = [&](int thunk) { return thunks_[thunk].shared_scratch; };
    const auto [intervals, layout] =
        gradus::lay_out_arena(schedule_, intervals_of(graph_, schedule_, symbols_, scratch_of));
    for (const Interval& interval : intervals) {
      bound_->bytes.push_back(interval.bytes);
      bound_->last_stages.push_back(interval.last);
    }
    for (std::size_t i = 0; i < layout.offsets.size(); ++i)
      bound_->temporaries.emplace_back(schedule_.temporaries[i].slot, layout.offsets[i]);
    bound_->temporary_bytes = layout.bytes;
    RowJobs& by_rows = bound_->by_rows;
    if (layout.bytes > most_bytes_by_rows && !by_rows.jobs.empty()) {
      by_rows = {};
      decide_team();
    }
    place_scratch(intervals, layout);
    if (by_rows.jobs.empty()) return;
    by_rows.scratch = round_up(layout.bytes, 64);
    by_rows.stride = by_rows.scratch + scratch_by_rows_;
    bound_->arena_bytes = std::max(bound_->arena_bytes, bound_->team * by_rows.stride);
  }

  /// The scratch of a stage lies where none of its temporaries do: at the end of the arena, so that it is in the caches
  /// still, or, where the stages need most, at the lowest place.
  void place_scratch(std::span<const Interval> intervals, const Layout& layout) {
    const std::size_t stages = schedule_.stages.size();
    std::vector<std::int64_t> strides(stages), places(stages), taken_until(stages);
    Numbered<std::vector<std::size_t>> beginning(stages), ending(stages);  // intervals
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      const int first = std::max(0, intervals[i].first),
                last = std::min(intervals[i].last, static_cast<int>(stages) - 1);
      if (first > last || intervals[i].bytes == 0) continue;
      beginning[first].push_back(i);
      ending[last].push_back(i);
    }
    const auto memory_of = [&](std::size_t i) {
      return std::pair(layout.offsets[i], layout.offsets[i] + intervals[i].bytes);
    };
    std::set<std::pair<std::int64_t, std::int64_t>> taken;  // in this stage: no two of them overlap
    bound_->arena_bytes = layout.bytes;
    for (std::size_t s = 0; s < stages; ++s) {
      for (std::size_t i : beginning[s]) taken.insert(memory_of(i));
      std::int64_t most = 0;
      for (int t : schedule_.stages[s]) most = std::max(most, thunks_[t].worker_scratch);
      if (most > 0) {
        strides[s] = round_up(most + 64, 64);
        for (const auto& [begin, end] : taken) {
          if (begin - places[s] >= bound_->team * strides[s]) break;
          places[s] = std::max(places[s], round_up(end, 64));
        }
        if (!taken.empty()) taken_until[s] = taken.rbegin()->second;
        bound_->arena_bytes = std::max(bound_->arena_bytes, places[s] + bound_->team * strides[s]);
      }
      for (std::size_t i : ending[s]) taken.erase(memory_of(i));
    }
    Numbered<std::size_t> stage_of(thunks_.size());
    for (std::size_t s = 0; s < stages; ++s) {
      for (int t : schedule_.stages[s]) stage_of[t] = s;
      const std::int64_t at_end = (bound_->arena_bytes - bound_->team * strides[s]) / 64 * 64;
      if (at_end >= taken_until[s]) places[s] = at_end;
    }
    for (Job& job : bound_->jobs) {
      const std::size_t s = stage_of[job.thunk];
      job.scratch = places[s], job.scratch_stride = strides[s];
    }
  }

  /// True if all iterations together are worth more than one thread.
  bool threads_gain() const {
    double cost = 0;
    for (const Job& job : bound_->jobs) cost += job.cost;
    const double gain = cost * static_cast<double>(body_->iterations) * (1 - 1.0 / bound_->threads);
    return bound_->threads > 1 && gain > fork_ns + 2 * barrier_ns;
  }

  void divide_by_rows() {
    RowJobs by_rows{.jobs = {}, .rows = rows_apart(graph_, *body_, symbols_), .first = {}};
    if (by_rows.rows < bound_->threads) return;
    std::int64_t grain = 1;  // rows
    Numbered<int> thunks_of(body_->steps.size());
    for (const std::vector<int>& stage : schedule_.stages)
      for (int t : stage) {
        Job job = whole_job_of(t);
        if (job.extent == 0) continue;
        const auto step = static_cast<std::size_t>(lowered_.thunks[at(t)].step);
        const BoundThunk& b = thunks_[t];
        if (job.controls || job.may_fail || b.together || ++thunks_of[step] > 1) return;
        if (b.by_rows) job.run = b.by_rows, job.extent = b.rows, job.grain = 1;
        else if (const Step& of = body_->steps[step]; of.called() >= 0 || of.space.rank() > 1)
          job.grain = 1;  // that of rows and of copies is a matter of time alone
        if (job.extent % by_rows.rows != 0) return;
        job.extent /= by_rows.rows;
        grain = std::lcm(grain, job.grain / std::gcd(job.grain, job.extent));
        by_rows.jobs.push_back(job);
      }
    const std::int64_t units = (by_rows.rows + grain - 1) / grain;
    for (int w = 0; w <= bound_->threads; ++w)
      by_rows.first.push_back(std::min(by_rows.rows, units * w / bound_->threads * grain));
    if (units < bound_->threads || !add_scratch_by_rows(by_rows)) return;
    if (lowered_.times) bound_->measured_by_rows.resize(by_rows.jobs.size());
    for (std::size_t i = 0; i < bound_->measured_by_rows.size(); ++i) {
      Job& job = by_rows.jobs[i];
      bound_->measured_by_rows[i] = {job.run, job.data, &lowered_.times->thunk(static_cast<std::size_t>(job.thunk))};
      job.run = run_measured;
      job.data = &bound_->measured_by_rows[i];
    }
    bound_->by_rows = std::move(by_rows);
    bound_->team = bound_->threads;
  }

  /// False if a kernel had rather not.
  bool add_scratch_by_rows(const RowJobs& by_rows) {
    std::int64_t most = 0;
    for (const Job& job : by_rows.jobs) {
      const BoundThunk& b = thunks_[job.thunk];
      most = std::max(most, b.worker_scratch);
      if (!b.by_rows) continue;
      for (std::size_t w = 1; w < by_rows.first.size(); ++w) {
        const std::int64_t own = by_rows.first[w] - by_rows.first[w - 1];
        const std::int64_t scratch = b.scratch_by_rows(b.data.get(), own * job.extent);
        if (scratch < 0) return false;
        most = std::max(most, scratch);
      }
    }
    scratch_by_rows_ = round_up(most + 64, 64);
    return true;
  }

  std::int64_t bytes_of_value(int i) const {
    return bytes_of({graph_[i].spec.dtype, graph_[i].spec.shape.evaluated(symbols_)});
  }

  void find_outputs() {
    PerValue<int> first(graph_, -1);
    for (std::size_t k = 0; k < graph_.outputs.size(); ++k) {
      const int storage = storage_of(graph_, graph_.outputs[k]);
      int& seen = first[storage];
      OutputSource source;
      if (graph_[storage].is_input())
        source.input = static_cast<int>(std::ranges::find(graph_.inputs, storage) - graph_.inputs.begin());
      else if (seen >= 0) source.earlier = seen;
      else source = {.slot = storage, .bytes = bytes_of_value(storage)};
      if (seen < 0) seen = static_cast<int>(k);
      bound_->outputs.push_back(source);
    }
  }

  const Graph& graph_;
  const Lowered& lowered_;
  const StagePlan& schedule_;
  std::span<const std::int64_t> symbols_;
  const Start start_;
  const LoopBody* const body_;
  std::unique_ptr<Binding> bound_ = std::make_unique<Binding>();
  Numbered<BoundThunk> thunks_;
  std::int64_t scratch_by_rows_ = 0;
  ThreadRates rates_;
};

}  // namespace

bool may_work_together(const BoundThunk& thunk) {
  return thunk.together && estimated_ns(ThreadRates(), thunk.bytes, thunk.flops) > worth_working_together_ns;
}

std::unique_ptr<Binding> bind(const Graph& graph, const Lowered& lowered, const StagePlan& schedule,
                              std::span<const std::int64_t> symbols, int threads, Start start, const LoopBody* body) {
  return Binder(graph, lowered, schedule, symbols, threads, start, body).run();
}

}  // namespace gradus
