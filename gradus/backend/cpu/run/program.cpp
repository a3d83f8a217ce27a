/// A program finds its binding, its memory, and runs.
#include "gradus/backend/cpu/run/program.h"
#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include "gradus/backend/cpu/run/executor.h"
#include "gradus/backend/cpu/run/kernel_times.h"
#include "gradus/backend/cpu/run/profiled_run.h"
#include "gradus/backend/cpu/thread_rates.h"
#include "gradus/backend/run_listener.h"
#include "gradus/base/of_thread.h"
#include "gradus/base/thread_pool.h"
#include "gradus/graph/call_context.h"
#include "gradus/graph/scope.h"
#include "gradus/tensor/heap.h"

namespace gradus {
namespace {

/// The memory table of the program that this thread runs; kept, so that no run allocates one.
std::vector<void*>& slots_of_thread(std::size_t count) {
  std::vector<void*>& slots = OfThread<std::vector<void*>>::get();
  if (slots.size() < count) slots.resize(count);
  return slots;
}

std::string with_number(std::string message, std::string_view name, std::int64_t number) {
  if (const std::size_t at = message.find(name); at != std::string::npos)
    message.replace(at, name.size(), std::to_string(number));
  return message;
}

/// The memory whose pages a run joins to huge ones before it begins: one huge page, and more for a long run, as long as
/// that takes about a twentieth of it.
std::int64_t bytes_to_join(double cost_ns) {
  constexpr double ns_of_a_page = 4e6, part = 20;  // 1 to 10 ms in virtual machines of Zen 4 and Sapphire Rapids
  constexpr double most_pages = 8;
  return heap::huge_page_bytes *
         static_cast<std::int64_t>(std::clamp(cost_ns / (part * ns_of_a_page), 1.0, most_pages));
}

}  // namespace

int DimensionTable::position_of(std::int64_t dimension) {
  const auto found = std::ranges::find(dimensions_, dimension);
  if (found != dimensions_.end()) return static_cast<int>(found - dimensions_.begin());
  dimensions_.push_back(dimension);
  return static_cast<int>(dimensions_.size()) - 1;
}

struct CpuProgram::State {
  static constexpr std::size_t most_bindings = 16;

  const CpuProgram* program = nullptr;
  std::shared_ptr<const Graph> graph;
  std::vector<Step> steps;
  Lowered lowered;
  StagePlan schedule;
  std::vector<int> may_overwrite;
  int symbols = 0;
  std::int64_t recomputed_bytes = 0;

  mutable std::mutex guard;                                      // guards the members below
  mutable std::vector<std::shared_ptr<const Binding>> bindings;  // last used first
  /// For a program without symbols, whose bindings all stay: found without a lock.
  mutable std::atomic<const Binding*> last{nullptr};
  mutable std::atomic<bool> has_run{false};

  /// `whole`: the binding to all threads, if this one is for fewer since it is short.
  std::shared_ptr<const Binding> binding_for(std::span<const std::int64_t> values, int threads,
                                             const Binding* whole = nullptr) const {
    constexpr double small_ns = 2e6;  // on one thread: it may be run both ways
    internal_check(static_cast<int>(values.size()) >= symbols, "a program of ", symbols, " symbols is run with ",
                   values.size());
    const auto wanted = values.first(static_cast<std::size_t>(symbols));
    std::lock_guard lock(guard);
    const auto found = std::ranges::find_if(bindings, [&](const auto& binding) {
      const bool is_of = !whole || (binding->is_short && binding->choice == whole->choice);
      return binding->threads == threads && is_of && std::ranges::equal(binding->symbols, wanted);
    });
    if (found != bindings.end()) {
      std::rotate(bindings.begin(), found, found + 1);
    } else {
      const ThreadPool::AtMost only(threads);
      std::unique_ptr<Binding> bound = bind(*graph, lowered, schedule, wanted, threads);
      bound->program = program;
      if (whole) bound->is_short = true, bound->choice = whole->choice;
      else if (bound->is_short && bound->cost_ns < small_ns) bound->choice = std::make_shared<TeamChoice>(threads);
      bindings.insert(bindings.begin(), std::move(bound));
      if (symbols > 0 && bindings.size() > most_bindings) bindings.pop_back();
    }
    if (symbols == 0) last.store(bindings.front().get(), std::memory_order_release);
    return bindings.front();
  }

  void run(const Binding& binding, std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
           RunListener* told) const;
  /// For each output the last job that writes it; -1: it is complete before.
  std::vector<int> last_jobs(const Binding& binding) const;
  void add_times(const Binding& binding, std::vector<Kernel>& kernels) const;
  void add_memory(const Binding& binding, std::vector<Kernel>& kernels) const;
  void add_measured(std::vector<Kernel>& kernels, double calls) const;
  void forget_times() const;
  std::vector<Kernel> own_kernels(const Binding& binding, std::span<const std::int64_t> symbols) const;
  std::vector<Kernel> kernels(const Binding& binding, std::span<const std::int64_t> symbols, double calls) const;
  std::int64_t activation_bytes(const Binding& binding) const;
  std::exception_ptr failure(const Binding& binding, const ErrorWord& error) const;
};

/// How many threads are worth it now.
int threads_for(const Binding& binding) {
  const ThreadPool& pool = ThreadPool::global();
  if (!binding.is_short) return pool.threads();
  if (binding.choice && binding.choice->prefers_alone() && binding.choice->threads() == pool.threads()) return 1;
  return pool.threads_for_short_work();
}

/// Tells a RunListener of outputs when the last job that writes them is done.
class OutputsInJobs final : public JobListener {
 public:
  OutputsInJobs(RunListener& listener, std::span<const Ref<Buffer>> outputs, std::vector<int> last_jobs)
      : listener_(listener), outputs_(outputs), last_jobs_(std::move(last_jobs)) {
    for (std::size_t k = 0; k < outputs_.size(); ++k) waiting_.push_back(k);
    std::ranges::stable_sort(waiting_, {}, [&](std::size_t k) { return last_jobs_[k]; });
  }
  void done_before(int job) noexcept override {
    if (problem_) return;
    try {
      for (; next_ < waiting_.size() && last_jobs_[waiting_[next_]] < job; ++next_)
        listener_.made(waiting_[next_], outputs_[waiting_[next_]]);
      listener_.between();
    } catch (...) { problem_ = std::current_exception(); }
  }
  /// Rethrows the error of the listener.
  void finish() {
    done_before(std::numeric_limits<int>::max());
    if (problem_) std::rethrow_exception(problem_);
  }

 private:
  RunListener& listener_;
  const std::span<const Ref<Buffer>> outputs_;
  const std::vector<int> last_jobs_;  // of each output: the last one that writes it
  std::vector<std::size_t> waiting_;  // outputs in the order in which they are complete
  std::size_t next_ = 0;
  std::exception_ptr problem_;
};

/// Runs it, and reports its time to the choice of a team for short programs.
void execute_noting(const Binding& binding, void* const* slots, std::byte* arena, ErrorWord& error,
                    JobListener* listener) {
  ThreadPool& pool = ThreadPool::global();
  TeamChoice* const choice = binding.choice.get();
  const bool chosen = choice && choice->threads() == pool.threads() &&
                      binding.threads == (choice->prefers_alone() ? 1 : choice->threads());
  if (chosen && choice->is_measuring()) {
    const auto began = std::chrono::steady_clock::now();
    const bool by_team = execute(binding, slots, arena, error, listener) && binding.threads > 1;
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    choice->note(by_team, took.count());
  } else {
    execute(binding, slots, arena, error, listener);
    if (chosen) choice->note();
  }
  if (binding.is_short) pool.did_short_work(binding.cost_ns);
}

void CpuProgram::State::run(const Binding& binding, std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
                            RunListener* told) const {
  void** slots = slots_of_thread(static_cast<std::size_t>(lowered.slots)).data();
  for (std::size_t k = 0; k < inputs.size(); ++k)
    slots[graph->inputs[k]] = const_cast<void*>(inputs[k]->host());  // throws if this process cannot read the value
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const OutputSource& source = binding.outputs[k];
    if (source.slot < 0) {
      outputs[k] = source.input >= 0 ? inputs[at(source.input)] : outputs[at(source.earlier)];
      continue;
    }
    if (!outputs[k] || !outputs[k]->data()) outputs[k] = Buffer::allocate(source.bytes);  // nor in a device's memory
    slots[source.slot] = outputs[k]->data();
  }
  for (const Inside& inside : binding.inside) slots[inside.value] = slots[inside.output];
  if (lowered.times && lowered.times->is_first_warm()) forget_times();
  Ref<Buffer> arena;
  std::byte* memory = nullptr;
  if (binding.arena_bytes > 0) {
    arena = Buffer::allocate(binding.arena_bytes, "temporaries of a program");
    memory = arena->data<std::byte>();
    for (const auto& [slot, offset] : binding.temporaries) slots[slot] = memory + offset;
  }
  if (has_run.load(std::memory_order_relaxed)) heap::settle(bytes_to_join(binding.cost_ns));
  else has_run.store(true, std::memory_order_relaxed);
  if (lowered.times) lowered.times->add_team(binding.team);
  const TimedRun timed(lowered.times ? &lowered.times->whole() : nullptr);
  const ProfiledRun profiled(binding, inputs);
  ErrorWord error;
  std::optional<OutputsInJobs> listener;
  if (told) listener.emplace(*told, outputs, last_jobs(binding));
  execute_noting(binding, slots, memory, error, listener ? &*listener : nullptr);
  if (error.thunk.load(std::memory_order_relaxed) != -1) [[unlikely]]
    std::rethrow_exception(failure(binding, error));
  if (listener) listener->finish();
}

std::vector<int> CpuProgram::State::last_jobs(const Binding& binding) const {
  PerValue<int> of_values(*graph, -1);
  for (std::size_t j = 0; j < binding.jobs.size(); ++j) {
    const auto thunk = static_cast<std::size_t>(binding.jobs[j].thunk);
    for (const int value : steps[static_cast<std::size_t>(lowered.thunks[thunk].step)].outputs)
      of_values[value] = std::max(of_values[value], static_cast<int>(j));
  }
  for (const Inside& inside : binding.inside)
    of_values[inside.output] = std::max(of_values[inside.output], of_values[inside.value]);
  std::vector<int> last;
  for (const OutputSource& source : binding.outputs)
    last.push_back(source.slot >= 0      ? of_values[source.slot]
                   : source.earlier >= 0 ? last[static_cast<std::size_t>(source.earlier)]
                                         : -1);
  return last;
}

std::exception_ptr CpuProgram::State::failure(const Binding& binding, const ErrorWord& error) const {
  if (error.nested) return error.nested;
  const auto thunk = static_cast<std::size_t>(error.thunk.load());
  const Step& step = steps[at(lowered.thunks[thunk].step)];
  const Value& value = (*graph)[step.members.front()];
  std::string message = with_number(binding.failures[thunk], "{value}", error.value);
  message = with_number(std::move(message), "{index}", error.index);
  if (!scope_path(value.scope).empty()) message += text(", in ", scope_path(value.scope));
  return std::make_exception_ptr(OutOfRange(message));
}

/// The stages and costs of kernels: those of one section run side by side unless one worker does all of them.
void CpuProgram::State::add_times(const Binding& binding, std::vector<Kernel>& kernels) const {
  std::vector<bool> seen(kernels.size());
  int stage = -1;
  for (const Section& section : binding.sections) {
    const bool together = !section.alone && binding.team > 1;
    if (together) ++stage;
    for (int i = section.first; i < section.last; ++i) {
      const Job& job = binding.jobs[at(i)];
      const auto k = static_cast<std::size_t>(lowered.thunks[at(job.thunk)].step);
      const auto thunk = static_cast<std::size_t>(job.thunk);
      kernels[k].seconds += estimated_ns(thread_rates(), binding.moved[thunk], binding.flops[thunk]) * 1e-9;
      if (seen[k]) continue;
      seen[k] = true;
      kernels[k].stage = together ? stage : ++stage;
      const bool is_teams = section.controls && !lowered.thunks[at(job.thunk)].controls;
      kernels[k].divided = together && (i < section.divided || is_teams);
    }
  }
}

void CpuProgram::State::add_memory(const Binding& binding, std::vector<Kernel>& kernels) const {
  std::vector<std::int64_t> alive(schedule.stages.size() + 1, 0);
  for (std::size_t i = 0; i < binding.temporaries.size(); ++i) {
    const Temporary& t = schedule.temporaries[i];
    if (t.last < t.first) continue;  // of a step without work
    alive[at(t.first)] += binding.bytes[i];
    alive[at(binding.last_stages[i]) + 1] -= binding.bytes[i];
  }
  std::int64_t bytes = 0;
  for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    bytes += alive[stage];
    for (int t : schedule.stages[stage]) {
      Kernel& kernel = kernels[at(lowered.thunks[at(t)].step)];
      kernel.bytes_alive = std::max(kernel.bytes_alive, static_cast<std::size_t>(bytes));
    }
  }
}

/// Measured times, as shares of `calls` calls of the outermost program.
void CpuProgram::State::add_measured(std::vector<Kernel>& kernels, double calls) const {
  if (!lowered.times || calls == 0) return;
  for (std::size_t t = 0; t < lowered.thunks.size(); ++t) {
    Kernel& kernel = kernels[at(lowered.thunks[t].step)];
    const KernelTimes::Entry& entry = lowered.times->thunk(t);
    auto nanoseconds = static_cast<double>(entry.nanoseconds.load(std::memory_order_relaxed));
    for (const auto& nested : lowered.thunks[t].nested)
      nanoseconds -= static_cast<double>(nested->state_->lowered.times->of_thunks());
    kernel.measured += std::max(0.0, nanoseconds) * 1e-9 / calls;
    kernel.runs = std::max(kernel.runs, static_cast<double>(entry.runs.load(std::memory_order_relaxed)) / calls);
  }
}

/// Measurements so far, also of programs that this one runs.
void CpuProgram::State::forget_times() const {
  lowered.times->clear();
  for (const Thunk& thunk : lowered.thunks)
    for (const auto& nested : thunk.nested) nested->state_->forget_times();
}

CpuProgram::CpuProgram(std::shared_ptr<const Graph> graph, Plan plan, Lowered lowered)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.program = this;
  s.schedule = plan_stages(*graph, plan.steps, plan.sharing, lowered.thunks, plan.staging);
  s.symbols = graph->symbols();
  for (int input : plan.sharing.may_overwrite)
    s.may_overwrite.push_back(
        input < 0 ? -1 : static_cast<int>(std::ranges::find(graph->inputs, input) - graph->inputs.begin()));
  s.graph = std::move(graph);
  s.steps = std::move(plan.steps);
  s.recomputed_bytes = plan.recomputed_bytes;
  s.lowered = std::move(lowered);
}

CpuProgram::~CpuProgram() = default;

void CpuProgram::run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
                     const RunContext& context) const {
  const OnLogicalDevice account(context.device.index);
  internal_check(inputs.size() == graph().inputs.size() && outputs.size() == graph().outputs.size(),
                 "a program is run with other numbers of inputs and outputs than it has");
  const Binding* last = state_->last.load(std::memory_order_acquire);
  if (last && last->threads == threads_for(*last)) return state_->run(*last, inputs, outputs, context.listener);
  const std::shared_ptr<const Binding> whole = state_->binding_for(context.symbols, ThreadPool::global().threads());
  const int threads = threads_for(*whole);
  state_->run(threads == whole->threads ? *whole : *state_->binding_for(context.symbols, threads, whole.get()), inputs,
              outputs, context.listener);
}

std::shared_ptr<const Binding> CpuProgram::bound_within(std::span<const std::int64_t> symbols, int threads,
                                                        std::vector<int> carries, std::int64_t iterations) const {
  const LoopBody body{state_->steps, std::move(carries), iterations};
  std::unique_ptr<Binding> bound =
      gradus::bind(*state_->graph, state_->lowered, state_->schedule, symbols, threads, Start::within, &body);
  bound->program = this;
  return bound;
}
int CpuProgram::slots() const { return state_->lowered.slots; }
const Lowered& CpuProgram::lowered() const { return state_->lowered; }
const std::vector<Step>& CpuProgram::steps() const { return state_->steps; }
std::exception_ptr CpuProgram::failure(const Binding& binding, const ErrorWord& error) const {
  return state_->failure(binding, error);
}

const Graph& CpuProgram::graph() const { return *state_->graph; }
const std::vector<int>& CpuProgram::may_overwrite() const { return state_->may_overwrite; }
ExecutableReport CpuProgram::report(std::span<const std::int64_t> symbols) const {
  const std::shared_ptr<const Binding> binding = state_->binding_for(symbols, ThreadPool::global().threads());
  const KernelTimes* times = state_->lowered.times.get();
  const double runs = times ? static_cast<double>(times->whole().runs.load()) : 0;
  ExecutableReport report{.kernels = state_->kernels(*binding, symbols, runs),
                          .arena_bytes = binding->arena_bytes,
                          .temporary_bytes = binding->temporary_bytes,
                          .recomputed_bytes = state_->recomputed_bytes,
                          .side_by_side_seconds = binding->side_by_side_ns * 1e-9,
                          .threads = std::max(binding->team, times ? times->most_threads() : 0)};
  if (runs > 0) report.measured_seconds = static_cast<double>(times->whole().nanoseconds.load()) * 1e-9 / runs;
  return report;
}

std::int64_t CpuProgram::temporary_bytes(std::span<const std::int64_t> symbols) const {
  return state_->binding_for(symbols, ThreadPool::global().threads())->temporary_bytes;
}

/// The scope of a step: that of its product, or else of the first of its results or members that has one.
std::uint32_t scope_of(const Graph& graph, const Step& step) {
  const auto is_named = [&](int value) { return value >= 0 && !scope_path(graph[value].scope).empty(); };
  if (is_named(step.product)) return graph[step.product].scope;
  for (const std::vector<int>* values : {&step.outputs, &step.members})
    for (const int value : *values)
      if (is_named(value)) return graph[value].scope;
  return step.members.empty() ? 0 : graph[step.members.front()].scope;
}

/// Without those of branches and loops, and without times.
std::vector<Kernel> CpuProgram::State::own_kernels(const Binding& binding,
                                                   std::span<const std::int64_t> symbols) const {
  const State& s = *this;
  const auto bytes = [&](int i) {
    return static_cast<std::size_t>(bytes_of({(*s.graph)[i].spec.dtype, (*s.graph)[i].spec.shape.evaluated(symbols)}));
  };
  std::vector<Kernel> kernels;
  for (const Step& step : s.steps) {
    Kernel& kernel = kernels.emplace_back();
    for (int member : step.members)
      kernel.ops.push_back((*s.graph)[member].is_constant ? "constant" : std::string((*s.graph)[member].op->name));
    std::vector<int> extents;
    for (const Read& read : reads_of(*s.graph, step)) extents.push_back(extent_of(*s.graph, read));
    std::ranges::sort(extents);
    extents.erase(std::ranges::unique(extents).begin(), extents.end());
    for (int extent : extents) kernel.bytes_read += bytes(extent);
    for (int output : step.outputs) kernel.bytes_written += bytes(output);
    const int called = step.called();
    kernel.narrow = called >= 0 && std::ranges::any_of((*s.graph)[called].in,
                                                       [&](int i) { return is_narrow((*s.graph)[i].spec.dtype); });
    const std::uint32_t scope = scope_of(*s.graph, step);
    kernel.layer = scope_path(scope);
    kernel.is_gradient = (scope & gradient_scope) != 0;
  }
  for (std::size_t t = 0; t < s.lowered.thunks.size(); ++t) {
    Kernel& kernel = kernels[at(s.lowered.thunks[t].step)];
    if (kernel.name.empty()) kernel.name = s.lowered.thunks[t].label;
    kernel.flops += static_cast<double>(binding.flops[t]);
  }
  return kernels;
}

std::vector<Kernel> CpuProgram::State::kernels(const Binding& binding, std::span<const std::int64_t> symbols,
                                               double calls) const {
  const State& s = *this;
  std::vector<Kernel> kernels = own_kernels(binding, symbols);
  s.add_times(binding, kernels);
  s.add_measured(kernels, calls);
  s.add_memory(binding, kernels);
  for (std::size_t t = 0; t < s.lowered.thunks.size(); ++t)
    for (const auto& nested : s.lowered.thunks[t].nested) {
      const auto inner = nested->bound_within(symbols, ThreadPool::global().threads());
      std::ranges::move(nested->state_->kernels(*inner, symbols, calls), std::back_inserter(kernels));
    }
  return kernels;
}

/// Temporaries that a forward step makes and a step of a gradient reads.
std::int64_t CpuProgram::State::activation_bytes(const Binding& binding) const {
  PerValue<bool> read_by_gradients(*graph);
  for (const Step& step : steps)
    if (scope_of(*graph, step) & gradient_scope)
      for (const Read& read : reads_of(*graph, step)) read_by_gradients[read.storage] = true;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < binding.temporaries.size(); ++i) {
    const Temporary& t = schedule.temporaries[i];
    const bool is_value = t.thunk < 0 && t.slot < graph->size();
    if (is_value && read_by_gradients[t.slot] && !((*graph)[t.slot].scope & gradient_scope)) bytes += binding.bytes[i];
  }
  return bytes;
}

ProfiledProgram CpuProgram::described(const Binding& binding) const {
  const std::vector<Kernel> of_steps = state_->own_kernels(binding, binding.symbols);
  ProfiledProgram described{.temporaries = binding.arena_bytes, .activations = state_->activation_bytes(binding)};
  Numbered<char> is_counted(of_steps.size());  // the bytes of a step, by its first thunk
  for (const Thunk& thunk : state_->lowered.thunks) {
    const Kernel& kernel = of_steps[at(thunk.step)];
    ProfiledKernel& made = described.kernels.emplace_back();
    made = {.name = kernel.name, .layer = kernel.layer, .is_gradient = kernel.is_gradient, .is_narrow = kernel.narrow};
    if (made.name.empty())
      for (const std::string& op : kernel.ops) made.name += (made.name.empty() ? "" : "+") + op;
    made.flops = static_cast<double>(binding.flops[described.kernels.size() - 1]);
    if (!std::exchange(is_counted[thunk.step], 1))
      made.bytes = static_cast<std::int64_t>(kernel.bytes_read + kernel.bytes_written);
  }
  return described;
}

std::size_t CpuProgram::footprint() const {
  std::size_t bytes = sizeof(State) + state_->lowered.code_bytes;
  for (const Value& v : state_->graph->values) bytes += sizeof v + v.in.capacity() * sizeof(int);
  for (const Step& step : state_->steps)
    bytes += sizeof step + (step.members.capacity() + step.outputs.capacity()) * sizeof(int);
  for (const Thunk& thunk : state_->lowered.thunks)  // and about as much for its data and each of a few bindings
    bytes += sizeof thunk + thunk.label.capacity() + thunk.failure.capacity() + 512;
  for (const Thunk& thunk : state_->lowered.thunks)
    for (const auto& nested : thunk.nested) bytes += nested->footprint();
  return bytes;
}

}  // namespace gradus
