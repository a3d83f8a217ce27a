/// What is compiled of a branch or a loop, and how it runs: every member of the team goes through it, and they run the
/// programs of its regions together, or each its own rows of them; what has to be copied is worker 0's. Carries
/// alternate between two places unless the body may write over them; elements of what is gone through and of what is
/// stacked are read and written where they lie.
#include "gradus/backend/cpu/run/control.h"
#include <algorithm>
#include <cstring>
#include "gradus/backend/cpu/budget.h"
#include "gradus/backend/cpu/run/nested.h"
#include "gradus/base/divide.h"
#include "gradus/compiler/pipeline.h"
#include "gradus/ops/control_ops.h"

namespace gradus {
namespace {

std::int64_t aligned(std::int64_t bytes) { return round_up(bytes, 64); }

using Symbols = std::span<const std::int64_t>;
using Inputs = std::vector<const void*>;
using Outputs = std::vector<void*>;

void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, at(bytes));
}
void clear_bytes(void* to, std::int64_t bytes) {
  if (bytes > 0) std::memset(to, 0, at(bytes));
}
std::byte* advanced(void* base, std::int64_t bytes) { return static_cast<std::byte*>(base) + bytes; }

/// A step as the graph says it: operands by storage, results by output.
struct Place {
  std::vector<int> operands;  // slots
  std::vector<int> results;   // per output of the op its slot; -1: nobody asked
  int memory = -1;            // the slot of its scratch
};

Place place_of(const Graph& graph, const Step& step, int memory) {
  const Value& first = graph[step.members.front()];
  Place place{
      .operands = {}, .results = std::vector<int>(at(first.op->outputs(first.op.attributes())), -1), .memory = memory};
  for (int operand : first.in) place.operands.push_back(storage_of(graph, operand));
  for (int i : step.outputs) place.results[at(graph[i].op.output())] = i;
  return place;
}

/// What is compiled of a region.
Graph region_graph(const Region& region, const std::vector<int>& outputs, int carries) {
  Graph graph = region.graph();
  std::vector<int> kept;
  for (int k : outputs) kept.push_back(graph.outputs[at(k)]);
  graph.outputs = std::move(kept);
  for (int k = 0; k < carries; ++k) graph.dying.push_back(graph.inputs[at(k)]);
  return graph;
}

CompileOptions region_options(CompileOptions options, int carries) {
  options.max_bytes = 0;                                       // the budget is of the whole
  if (carries > 0) options.disable.emplace_back("epilogues");  // rows of a product and of formulas are divided
  return options;
}

std::shared_ptr<const CpuProgram> compile_region(const Region& region, const std::vector<int>& outputs, int carries,
                                                 const CompileOptions& options) {
  return compile(region_graph(region, outputs, carries), region_options(options, carries));
}

/// Per input of a region, whether the outputs in `wanted` depend on it.
std::vector<bool> inputs_needed(const Region& region, const std::vector<bool>& wanted) {
  const Graph& graph = region.graph();
  PerValue<bool> needed(graph);
  for (std::size_t k = 0; k < wanted.size(); ++k)
    if (wanted[k]) needed[graph.outputs[k]] = true;
  needed = needed_for(graph, std::move(needed));
  std::vector<bool> result;
  for (int i : graph.inputs) result.push_back(needed[i]);
  return result;
}

/// Which outputs of the bodies have to be computed: those asked for, and the carries on which they depend.
std::vector<int> outputs_needed(std::vector<bool> wanted, std::span<const Region* const> bodies, int carries) {
  for (bool grown = true; std::exchange(grown, false);)
    for (const Region* body : bodies) {
      const std::vector<bool> needed = inputs_needed(*body, wanted);
      for (int k = 0; k < carries; ++k)
        if (needed[k] && !wanted[at(k)]) grown = wanted[at(k)] = true;
    }
  std::vector<int> outputs;
  for (std::size_t k = 0; k < wanted.size(); ++k)
    if (wanted[k]) outputs.push_back(static_cast<int>(k));
  return outputs;
}

/// What a thunk says of the programs that it runs, each so many times at most.
void note_programs(BoundThunk& thunk, std::initializer_list<const NestedProgram*> programs, std::int64_t times) {
  for (const NestedProgram* program : programs) {
    if (!*program) continue;
    thunk.team = std::max(thunk.team, program->team());
    thunk.may_fail = thunk.may_fail || program->may_fail();
    thunk.nested_ns = std::max(thunk.nested_ns, program->cost_ns() * static_cast<double>(times));
    thunk.nested_meetings = std::max(thunk.nested_meetings, program->meetings() * times);
  }
}

/// What failed within is what failed. Worker 0 alone reports it, and it alone may ask a program for its failure.
void report(const KernelArguments& arguments, std::exception_ptr failure) {
  arguments.error->nested = std::move(failure);
  report_failure(&arguments, 0, 0);
}

std::int64_t bytes_for(const Spec& spec, Symbols symbols) {
  return bytes_of({spec.dtype, spec.shape.evaluated(symbols)});
}

// ---------------------------------------------------------------- cond

struct CondCode {
  Place place;
  std::vector<int> outputs;  // that are computed
  std::shared_ptr<const CpuProgram> if_true, if_false;
};
struct BoundCond {
  std::shared_ptr<const CondCode> code;
  NestedProgram if_true, if_false;
};

void run_cond(const KernelArguments* arguments, std::int64_t, std::int64_t) {
  const auto& bound = *static_cast<const BoundCond*>(arguments->data);
  const Place& place = bound.code->place;
  const bool chosen = *static_cast<const bool*>(arguments->slots[place.operands[0]]);
  const NestedProgram& taken = chosen ? bound.if_true : bound.if_false;
  Inputs inputs;
  for (std::size_t i = 1; i < place.operands.size(); ++i) inputs.push_back(arguments->slots[place.operands[i]]);
  Outputs outputs;
  for (int k : bound.code->outputs) outputs.push_back(arguments->slots[place.results[at(k)]]);
  auto* memory = static_cast<std::byte*>(arguments->slots[place.memory]);
  taken.prepare(*arguments->member, memory);
  if (!taken.run(*arguments->member, memory, inputs, outputs) && arguments->member->worker == 0)
    report(*arguments, taken.failure(memory));
}

BoundThunk bind_cond(const std::shared_ptr<const CondCode>& code, Symbols symbols) {
  auto bound = std::make_shared<BoundCond>(
      BoundCond{code, NestedProgram(code->if_true, symbols), NestedProgram(code->if_false, symbols)});
  BoundThunk thunk{.shared_scratch = std::max(bound->if_true.bytes(), bound->if_false.bytes())};
  note_programs(thunk, {&bound->if_true, &bound->if_false}, 1);
  thunk.data = std::move(bound);
  return thunk;
}

// ---------------------------------------------------------------- loops

/// A carry while a loop runs.
struct CarryPlan {
  int number = 0;          // among the carries of the op
  std::size_t output = 0;  // among the outputs that are computed
  std::int64_t bytes = 0;
  bool in_place = false;               // the body may write over it
  std::int64_t offsets[2] = {-1, -1};  // of its places in the memory of the loop; -1: not needed
};

/// What the bodies of loops have in common.
struct LoopCode {
  Place place;
  std::vector<int> outputs;                      // of the body that are computed
  std::shared_ptr<const CpuProgram> body, last;  // last: of the last iteration, if that is another

  /// Whether output k may lie where input i lies.
  bool may_overwrite(std::size_t k, int i) const {
    return body->may_overwrite()[k] == i && (!last || last->may_overwrite()[k] == i);
  }
};

class Carries {
 public:
  Carries() = default;
  /// `final_result(k)` and `history(k)`: the slots of the results of carry k, or -1.
  Carries(const LoopCode& code, int carries, int first_result, int first_history, Symbols symbols)
      : first_result_(first_result), first_history_(first_history) {
    const Graph& graph = code.body->graph();
    for (std::size_t k = 0; k < code.outputs.size() && code.outputs[k] < carries; ++k) {
      CarryPlan plan{.number = code.outputs[k], .output = k};
      plan.bytes = bytes_for(graph[graph.outputs[k]].spec, symbols);
      plan.in_place = code.may_overwrite(k, plan.number);
      const bool has_result = result_slot(code.place, plan) >= 0, has_history = history_slot(code.place, plan) >= 0;
      if (!has_result) plan.offsets[0] = take(plan.bytes);
      if (!has_history && !plan.in_place) plan.offsets[1] = take(plan.bytes);
      plans_.push_back(plan);
    }
  }
  std::int64_t bytes() const { return bytes_; }
  const std::vector<CarryPlan>& plans() const { return plans_; }
  int result_slot(const Place& place, const CarryPlan& plan) const {
    return place.results[at(first_result_ + plan.number)];
  }
  int history_slot(const Place& place, const CarryPlan& plan) const {
    return first_history_ < 0 ? -1 : place.results[at(first_history_ + plan.number)];
  }

 private:
  std::int64_t take(std::int64_t bytes) { return std::exchange(bytes_, bytes_ + aligned(bytes)); }
  std::vector<CarryPlan> plans_;
  int first_result_ = 0, first_history_ = -1;
  std::int64_t bytes_ = 0;
};

/// The places of the carries in one run of a loop, as one member of the team sees them.
class CarryPlaces {
 public:
  /// `capacity`: elements of a history.
  CarryPlaces(const Carries& carries, const LoopCode& code, int first_operand, const KernelArguments& arguments,
              std::byte* memory, std::int64_t capacity)
      : carries_(carries), member_(*arguments.member), capacity_(capacity) {
    void* const* slots = arguments.slots;
    for (const CarryPlan& plan : carries.plans()) {
      const int result = carries.result_slot(code.place, plan), history = carries.history_slot(code.place, plan);
      now_.push_back(slots[code.place.operands[at(first_operand + plan.number)]]);
      home_.push_back(result >= 0 ? slots[result] : memory + plan.offsets[0]);
      spare_.push_back(plan.offsets[1] >= 0 ? memory + plan.offsets[1] : nullptr);
      history_.push_back(history >= 0 ? slots[history] : nullptr);
    }
  }
  const void* now(std::size_t i) const { return now_[i]; }

  /// Before an iteration whose element is `element`: its place in the history becomes the carry's.
  void enter(std::int64_t element) {
    for (std::size_t i = 0; i < now_.size(); ++i) {
      if (!history_[i]) continue;
      void* place = advanced(history_[i], element * bytes(i));
      if (copies()) copy_bytes(place, now_[i], bytes(i));
      now_[i] = place;
    }
  }
  /// Where carry i goes in an iteration, if the next one's element is `next`; -1: there is none, or it is not known.
  void* target(std::size_t i, std::int64_t next) const {
    if (history_[i]) return next >= 0 && next < capacity_ ? advanced(history_[i], next * bytes(i)) : home_[i];
    if (plan(i).in_place) return home_[i];
    return now_[i] == home_[i] ? spare_[i] : home_[i];
  }
  void moved_to(std::size_t i, const void* place) { now_[i] = place; }

  /// After the last iteration: results to where they are expected, zeros for elements [begin, capacity) of histories.
  void leave(std::int64_t begin) {
    member_.meet();
    for (std::size_t i = 0; copies() && i < now_.size(); ++i) {
      copy_bytes(home_[i], now_[i], bytes(i));
      if (history_[i]) clear_bytes(advanced(history_[i], begin * bytes(i)), (capacity_ - begin) * bytes(i));
    }
  }

 private:
  bool copies() const { return member_.worker == 0; }
  const CarryPlan& plan(std::size_t i) const { return carries_.plans()[i]; }
  std::int64_t bytes(std::size_t i) const { return plan(i).bytes; }
  const Carries& carries_;
  const TeamMember& member_;
  const std::int64_t capacity_;
  std::vector<const void*> now_;
  std::vector<void*> home_, spare_, history_;
};

/// All members call it.
void fail_in_iteration(const KernelArguments& arguments, const NestedProgram& program, std::byte* memory,
                       std::int64_t iteration, std::string_view loop) {
  if (arguments.member->worker != 0) return;
  try {
    std::rethrow_exception(program.failure(memory));
  } catch (const OutOfRange& error) {
    const OutOfRange located(text(error.what(), ", in iteration ", iteration, " of ", loop));
    report(arguments, std::make_exception_ptr(located));
  }
}

// ---------------------------------------------------------------- scan

struct ScanCode : LoopCode {
  Scan op;
  bool may_keep_apart = false;  // members may have rows of their own
};
struct BoundScan {
  std::shared_ptr<const ScanCode> code;
  NestedProgram body, last;
  Carries carries;
  std::int64_t iterations = 0;
  std::vector<std::int64_t> step_in, step_out;  // bytes from one iteration's to the next one's; 0: seen whole
};

/// One run of a scan.
class ScanRun {
 public:
  ScanRun(const BoundScan& bound, const KernelArguments& arguments)
      : bound_(bound),
        op_(bound.code->op),
        place_(bound.code->place),
        arguments_(arguments),
        slots_(arguments.slots),
        memory_(static_cast<std::byte*>(slots_[place_.memory])),
        count_(op_.counted ? std::clamp<std::int64_t>(*static_cast<const std::int64_t*>(slots_[place_.operands[0]]), 0,
                                                      bound.iterations)
                           : bound.iterations),
        carries_(bound.carries, *bound.code, op_.first_carry(), arguments, memory_, bound.iterations) {
    for (std::size_t i = at(op_.first_carry()); i < place_.operands.size(); ++i)
      inputs_.push_back(slots_[place_.operands[i]]);
    outputs_.resize(bound.code->outputs.size());
  }

  void run() {
    std::byte* programs = memory_ + bound_.carries.bytes();
    const TeamMember& member = *arguments_.member;
    const NestedProgram* prepared = nullptr;
    for (std::int64_t t = 0; t < count_; ++t) {
      const std::int64_t i = element(t);
      const NestedProgram& body = bound_.last && i + 1 == bound_.iterations ? bound_.last : bound_.body;
      if (prepared != &body) {
        if (prepared) member.meet();  // the other one's memory is this one's
        body.prepare(member, programs);
        prepared = &body;
      }
      point_at(t);
      if (t == 0 && body.keeps_apart(member)) member.meet();  // what carries begin with has been copied
      if (!body.run(member, programs, inputs_, outputs_)) [[unlikely]]
        return fail_in_iteration(arguments_, body, programs, i, "scan");
      for (std::size_t c = 0; c < bound_.carries.plans().size(); ++c)
        carries_.moved_to(c, outputs_[bound_.carries.plans()[c].output]);
    }
    carries_.leave(count_);
    clear_rest();
  }

 private:
  std::int64_t element(std::int64_t t) const { return t < 0 || t >= count_ ? -1 : op_.reverse ? count_ - 1 - t : t; }

  void point_at(std::int64_t t) {
    const std::int64_t i = element(t);
    carries_.enter(i);
    for (std::size_t c = 0; c < bound_.carries.plans().size(); ++c) {
      const CarryPlan& plan = bound_.carries.plans()[c];
      inputs_[at(plan.number)] = carries_.now(c);
      outputs_[plan.output] = carries_.target(c, element(t + 1));
    }
    for (std::size_t k = at(op_.carries); k < inputs_.size(); ++k)
      if (bound_.step_in[k] != 0)
        inputs_[k] = advanced(slots_[place_.operands[k + at(op_.first_carry())]], i * bound_.step_in[k]);
    for (std::size_t k = bound_.carries.plans().size(); k < outputs_.size(); ++k)
      outputs_[k] = advanced(slots_[place_.results[at(bound_.code->outputs[k])]], i * bound_.step_out[k]);
  }

  /// Iterations that did not happen leave zeros.
  void clear_rest() const {
    if (!op_.counted || arguments_.member->worker != 0) return;
    for (std::size_t k = bound_.carries.plans().size(); k < outputs_.size(); ++k)
      clear_bytes(advanced(slots_[place_.results[at(bound_.code->outputs[k])]], count_ * bound_.step_out[k]),
                  (bound_.iterations - count_) * bound_.step_out[k]);
  }

  const BoundScan& bound_;
  const Scan& op_;
  const Place& place_;
  const KernelArguments& arguments_;
  void* const* slots_;
  std::byte* memory_;
  const std::int64_t count_;
  CarryPlaces carries_;
  Inputs inputs_;
  Outputs outputs_;
};

void run_scan(const KernelArguments* arguments, std::int64_t, std::int64_t) {
  ScanRun(*static_cast<const BoundScan*>(arguments->data), *arguments).run();
}

BoundThunk bind_scan(const std::shared_ptr<const ScanCode>& code, Symbols symbols) {
  const Scan& op = code->op;
  auto bound = std::make_shared<BoundScan>();
  bound->code = code;
  bound->iterations = dimension::evaluate(op.iterations, symbols);
  std::vector<int> handed_on;
  for (int k : code->outputs)
    if (code->may_keep_apart && k < op.carries) handed_on.push_back(k);
  bound->body = NestedProgram(code->body, symbols, std::move(handed_on), bound->iterations);
  if (code->last) bound->last = NestedProgram(code->last, symbols);
  bound->carries = Carries(*code, op.carries, 0, static_cast<int>(op.body.outputs()), symbols);
  for (std::size_t k = 0; k < op.body.inputs(); ++k) {
    const bool stepped = k >= at(op.carries) && k < at(op.first_whole() - op.first_carry());
    bound->step_in.push_back(stepped ? bytes_for(op.body.input(k), symbols) : 0);
  }
  for (int k : code->outputs) bound->step_out.push_back(bytes_for(op.body.output(at(k)), symbols));
  const std::int64_t programs = std::max(bound->body.bytes(), bound->last ? bound->last.bytes() : 0);
  BoundThunk thunk{.shared_scratch = bound->carries.bytes() + programs};
  note_programs(thunk, {&bound->body, &bound->last}, bound->iterations);
  thunk.data = std::move(bound);
  return thunk;
}

// ---------------------------------------------------------------- while

struct WhileCode : LoopCode {
  While op;
  std::shared_ptr<const CpuProgram> condition;
};
struct BoundWhile {
  std::shared_ptr<const WhileCode> code;
  NestedProgram condition, body;
  Carries carries;
};

/// One run of a while loop. The memory: the carries, two answers of the condition, the two programs. The answers take
/// turns, since a member may still look at the last one while another asks again.
class WhileRun {
 public:
  static constexpr std::int64_t answer_bytes = 64, answers = 2;

  WhileRun(const BoundWhile& bound, const KernelArguments& arguments)
      : bound_(bound),
        op_(bound.code->op),
        arguments_(arguments),
        slots_(arguments.slots),
        memory_(static_cast<std::byte*>(slots_[bound.code->place.memory])),
        answers_(memory_ + bound.carries.bytes()),
        carries_(bound.carries, *bound.code, 0, arguments, memory_, op_.max_iterations) {
    for (int slot : bound.code->place.operands) inputs_.push_back(slots_[slot]);
    outputs_.resize(bound.code->outputs.size());
  }

  void run() {
    const TeamMember& member = *arguments_.member;
    std::byte* const asking = answers_ + answers * answer_bytes;
    std::byte* const doing = asking + bound_.condition.bytes();
    bound_.condition.prepare(member, asking);
    bound_.body.prepare(member, doing);
    std::int64_t count = 0;
    for (; op_.max_iterations == 0 || count < op_.max_iterations; ++count) {
      std::byte* const answer = answers_ + count % answers * answer_bytes;
      void* const asked[] = {answer};
      take_carries();
      if (!bound_.condition.run(member, asking, inputs_, asked)) [[unlikely]]
        return fail_in_iteration(arguments_, bound_.condition, asking, count, "while_loop");
      member.meet();
      if (!*reinterpret_cast<const bool*>(answer)) break;
      carries_.enter(count);
      take_carries();
      for (std::size_t c = 0; c < outputs_.size(); ++c) outputs_[c] = carries_.target(c, count + 1);
      if (!bound_.body.run(member, doing, inputs_, outputs_)) [[unlikely]]
        return fail_in_iteration(arguments_, bound_.body, doing, count, "while_loop");
      for (std::size_t c = 0; c < outputs_.size(); ++c) carries_.moved_to(c, outputs_[c]);
    }
    carries_.leave(count);
    if (const int slot = bound_.code->place.results[at(op_.carries)]; slot >= 0 && member.worker == 0)
      *static_cast<std::int64_t*>(slots_[slot]) = count;
  }

 private:
  void take_carries() {
    for (std::size_t c = 0; c < outputs_.size(); ++c) inputs_[at(bound_.carries.plans()[c].number)] = carries_.now(c);
  }

  const BoundWhile& bound_;
  const While& op_;
  const KernelArguments& arguments_;
  void* const* slots_;
  std::byte* memory_;
  std::byte* answers_;
  CarryPlaces carries_;
  Inputs inputs_;
  Outputs outputs_;
};

void run_while(const KernelArguments* arguments, std::int64_t, std::int64_t) {
  WhileRun(*static_cast<const BoundWhile*>(arguments->data), *arguments).run();
}

BoundThunk bind_while(const std::shared_ptr<const WhileCode>& code, Symbols symbols) {
  const While& op = code->op;
  auto bound = std::make_shared<BoundWhile>();
  bound->code = code;
  bound->condition = NestedProgram(code->condition, symbols);
  bound->body = NestedProgram(code->body, symbols);
  bound->carries = Carries(*code, op.carries, 0, op.max_iterations > 0 ? op.carries + 1 : -1, symbols);
  BoundThunk thunk{.shared_scratch = bound->carries.bytes() + WhileRun::answers * WhileRun::answer_bytes +
                                     bound->condition.bytes() + bound->body.bytes()};
  constexpr std::int64_t unknown = 100;  // iterations
  note_programs(thunk, {&bound->condition, &bound->body}, op.max_iterations > 0 ? op.max_iterations : unknown);
  thunk.data = std::move(bound);
  return thunk;
}

// ---------------------------------------------------------------- lowering

template <class Code>
void finish(Thunk& thunk, std::shared_ptr<const Code> code, KernelFunction run,
            BoundThunk (*bind)(const std::shared_ptr<const Code>&, Symbols)) {
  thunk.run = run;
  thunk.bind = [code = std::move(code), bind](Symbols symbols) { return bind(code, symbols); };
}

/// Carries that are asked for, by their last value or their history.
std::vector<bool> outputs_asked(const Place& place, std::size_t outputs, int carries, int first_history) {
  std::vector<bool> asked(outputs);
  for (std::size_t k = 0; k < outputs; ++k) asked[k] = place.results[k] >= 0;
  for (int k = 0; k < carries && first_history >= 0; ++k)
    if (place.results[at(first_history + k)] >= 0) asked[at(k)] = true;
  return asked;
}

std::vector<int> outputs_of(const Cond&, const Place& place) {
  return outputs_needed(outputs_asked(place, place.results.size(), 0, -1), {}, 0);
}

void lower_cond(const Cond& op, Place place, const CompileOptions& options, Thunk& thunk) {
  auto code = std::make_shared<CondCode>();
  code->outputs = outputs_of(op, place);
  code->place = std::move(place);
  code->if_true = compile_region(op.if_true, code->outputs, 0, options);
  code->if_false = compile_region(op.if_false, code->outputs, 0, options);
  thunk.nested = {code->if_true, code->if_false};
  finish<CondCode>(thunk, std::move(code), run_cond, bind_cond);
}

std::vector<int> outputs_of(const Scan& op, const Place& place) {
  std::vector<const Region*> bodies{&op.body};
  if (op.last) bodies.push_back(&op.last);
  const auto results = op.body.outputs();
  return outputs_needed(outputs_asked(place, results, op.carries, static_cast<int>(results)), bodies, op.carries);
}

void lower_scan(const Scan& op, Place place, const CompileOptions& options, Thunk& thunk) {
  auto code = std::make_shared<ScanCode>();
  code->op = op;
  code->outputs = outputs_of(op, place);
  code->place = std::move(place);
  code->may_keep_apart = options.tier == Tier::compiled && !op.last && !is_disabled(options.disable, "rows");
  code->body = compile_region(op.body, code->outputs, op.carries, options);
  thunk.nested = {code->body};
  if (op.last) thunk.nested.push_back(code->last = compile_region(op.last, code->outputs, op.carries, options));
  finish<ScanCode>(thunk, std::move(code), run_scan, bind_scan);
}

std::vector<int> outputs_of(const While& op, const Place& place) {
  std::vector<bool> asked =
      outputs_asked(place, at(op.carries), op.carries, op.max_iterations > 0 ? op.carries + 1 : -1);
  const std::vector<bool> looked_at = inputs_needed(op.condition, {true});
  for (std::size_t k = 0; k < asked.size(); ++k) asked[k] = asked[k] || looked_at[k];
  const Region* const bodies[] = {&op.body};
  return outputs_needed(std::move(asked), bodies, op.carries);
}

void lower_while(const While& op, Place place, const CompileOptions& options, Thunk& thunk) {
  auto code = std::make_shared<WhileCode>();
  code->op = op;
  code->outputs = outputs_of(op, place);
  code->place = std::move(place);
  code->condition = compile_region(op.condition, {0}, 0, options);
  code->body = compile_region(op.body, code->outputs, op.carries, options);
  thunk.nested = {code->condition, code->body};
  finish<WhileCode>(thunk, std::move(code), run_while, bind_while);
}

}  // namespace

Thunk lower_control(std::shared_ptr<const Graph> graph, const Step& step, const CompileOptions& options, Lowered& out) {
  const AnyOp& op = (*graph)[step.members.front()].op;
  Thunk thunk{.shared_slot = out.slots++, .label = std::string(op->name), .controls = true};
  Place place = place_of(*graph, step, thunk.shared_slot);
  if (const Cond* branch = op.as<Cond>()) lower_cond(*branch, std::move(place), options, thunk);
  else if (const Scan* scan = op.as<Scan>()) lower_scan(*scan, std::move(place), options, thunk);
  else if (const While* loop = op.as<While>()) lower_while(*loop, std::move(place), options, thunk);
  else throw InternalError(text("internal fault: the backend has no construct `", op->control, "`"));
  return thunk;
}

/// The regions of a step that are alive at the same time, and two places for each carry.
std::int64_t control_bytes(const Graph& graph, const Step& step, const CompileOptions& options) {
  const AnyOp& op = graph[step.members.front()].op;
  const Place place = place_of(graph, step, -1);
  const auto bytes_of = [&](const Region& region, const std::vector<int>& outputs, int carries) -> std::int64_t {
    if (!region) return 0;
    const PlannedUse use = planned_use(region_graph(region, outputs, carries), region_options(options, carries));
    std::int64_t bytes = NestedProgram::bytes_for(use.slots, use.arena_bytes);
    for (int k = 0; k < carries; ++k) bytes += 2 * aligned(bytes_for(region.output(at(k)), options.symbols));
    return bytes;
  };
  if (const Cond* branch = op.as<Cond>())
    return std::max(bytes_of(branch->if_true, outputs_of(*branch, place), 0),
                    bytes_of(branch->if_false, outputs_of(*branch, place), 0));
  if (const Scan* scan = op.as<Scan>())
    return std::max(bytes_of(scan->body, outputs_of(*scan, place), scan->carries),
                    bytes_of(scan->last, outputs_of(*scan, place), scan->carries));
  const While& loop = *op.as<While>();
  return bytes_of(loop.condition, {0}, 0) + bytes_of(loop.body, outputs_of(loop, place), loop.carries) +
         WhileRun::answers * WhileRun::answer_bytes;
}

bool has_control(const Graph& graph) {
  return std::ranges::any_of(graph.values, [](const Value& v) { return v.op.is_control(); });
}

}  // namespace gradus
