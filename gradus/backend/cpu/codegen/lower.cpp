/// Steps of loops become thunks: the kernels that a step needs, their extents, and their cost.
#include "gradus/backend/cpu/codegen/lower.h"
#include <algorithm>
#include "gradus/backend/cpu/codegen/kernel_key.h"
#include "gradus/backend/cpu/codegen/llvm_failures.h"
#include "gradus/backend/cpu/codegen/step_code.h"
#include "gradus/base/divide.h"

namespace gradus::cpu_backend {
namespace {

constexpr std::int64_t small_item = 1024;  // elements that one worker should at least get

std::int64_t times(std::int64_t a, std::int64_t b) { return dimension::multiply(a, b); }

/// "add+relu+sum", cut where it would be longer than a line.
std::string label_of(const Graph& graph, const Step& step) {
  std::string label;
  for (int member : step.members) {
    if (label.size() > 60) return label + "+...";
    const Value& v = graph[member];
    label += label.empty() ? "" : "+";
    label += v.is_constant ? std::string_view("constant") : v.op->name;
  }
  return label;
}

std::int64_t bytes_moved(const Graph& graph, const Step& step) {
  std::int64_t bytes = 0;
  const auto add = [&](const Spec& spec) {
    bytes = dimension::add(bytes, times(spec.shape.size(), size_of(spec.dtype)));
  };
  for (const Read& read : reads_of(graph, step)) add(graph[extent_of(graph, read)].spec);
  for (int output : step.outputs) add(graph[output].spec);
  return bytes;
}

std::int64_t operations(const Graph& graph, const Step& step, KnownFormulas& formulas) {
  std::int64_t sum = 0;
  for (int member : step.members) {
    const Value& v = graph[member];
    const std::int64_t each = v.op.is_elementwise() ? std::ssize(formulas.of(graph, v).instructions) : 1;
    sum =
        dimension::add(sum, times(each, v.op.is_reduction() ? graph[v.in[0]].spec.shape.size() : v.spec.shape.size()));
  }
  return sum;
}

using Symbols = std::span<const std::int64_t>;

/// How much a thunk does at a call, how it may be divided, and whether its step needs partial results.
struct Work {
  std::int64_t extent = 0, grain = 1;
  bool shares = true;
};
using WorkOf = std::function<Work(Symbols)>;

/// A thunk, and the part of the code that it runs.
struct Planned {
  Thunk thunk;
  WorkOf work;
  bool combines = false;  // partial results
  const StepCode* code = nullptr;
  std::size_t part = 0;
};

/// Rows and columns of a step at a call.
struct Extents {
  std::int64_t rows, columns;
  bool are_long() const { return columns > row_block; }
  std::int64_t blocks() const { return rows * divide_up(columns, row_block); }
  /// Rows that one worker should at least get.
  std::int64_t rows_at_once() const {
    return std::max<std::int64_t>(1, small_item / std::max<std::int64_t>(1, columns));
  }
};

class StepLowering {
 public:
  /// Without `codes` no code is made.
  StepLowering(StepCodes* codes, KnownFormulas& formulas, const Graph& graph, const Step& step, int index, Lowered& out)
      : codes_(codes),
        graph_(graph),
        step_(step),
        loops_(graph, step),
        context_{.graph = graph, .step = step, .loops = loops_},
        combined_{.graph = graph, .step = step, .loops = loops_},
        dimensions_(out.dimensions) {
    context_.partials = partials_of(graph, step, loops_);
    if (!context_.partials.empty()) context_.shared_slot = out.slots++;
    combined_.partials = context_.partials;
    combined_.shared_slot = context_.shared_slot;
    if (codes) own_ = find_code(kernel_key(context_));
    common_ = {.step = index,
               .bytes = bytes_moved(graph, step),
               .flops = operations(graph, step, formulas),
               .shared_slot = context_.shared_slot,
               .label = codes ? label_of(graph, step) : std::string()};
  }

  std::vector<Planned> run() {
    const bool reduces = std::any_of(step_.members.begin(), step_.members.end(),
                                     [&](int member) { return graph_[member].op.is_reduction(); });
    if (times(loops_.rows(), loops_.columns()) == 0 && !reduces) return {};  // nothing to write
    if (step_.in_pieces) lower_pieces();
    else if (loops_.column_reduction()) lower_column_reduction();
    else if (loops_.may_be_blocked()) lower_long_rows();
    else lower_rows();
    finish();
    return std::move(planned_);
  }

 private:
  /// Code that is this step's, or of its combination alone.
  struct Found {
    StepCode* code = nullptr;
    bool is_new = false;
  };
  Found find_code(KernelKey key) {
    StepCode& code = codes_->find_or_add(key.text, std::move(key.ops));
    return {&code, code.parts.empty()};
  }

  /// The next thunk; `emit(emitter)` makes its kernel, if nothing like it was made before.
  template <class Emit> void add(WorkOf work, Emit emit, bool combines = false) {
    add_part(own_, context_, planned_.size(), std::move(work), emit, combines);
  }
  void add_combination(WorkOf work, void (LoopEmitter::*emit)()) {
    add(std::move(work), [&](LoopEmitter& emitter) { (emitter.*emit)(); }, true);
  }
  template <class Emit>
  void add_part(const Found& found, StepContext& context, std::size_t part, WorkOf work, Emit emit, bool combines) {
    Thunk& thunk = planned_.emplace_back(common_, std::move(work), combines, found.code, part).thunk;
    if (combines) thunk.label += " (combined)";
    if (found.is_new) {
      std::string name = codes_->new_name();
      LoopEmitter emitter(codes_->module_of(*found.code), name, context);
      emit(emitter);
      codes_->add_part(*found.code, {.name = std::move(name), .worker_scratch = emitter.worker_scratch()});
    }
    thunk.worker_scratch = found.code ? found.code->parts.at(part).worker_scratch : most_worker_scratch();
  }

  /// Called when the kernels' inputs are known.
  void finish() {
    const auto data = data_of(own_, context_);
    for (Planned& planned : planned_) {
      planned.thunk.data = data, planned.thunk.words = words_of(own_, context_);
      if (combination_.code && planned.code == combination_.code)
        planned.thunk.data = data_of(combination_, combined_), planned.thunk.words = words_of(combination_, combined_);
      bind(planned.thunk, planned.work, planned.combines);
    }
  }
  /// How many i64 data_of() are.
  std::int64_t words_of(const Found& found, const StepContext& context) const {
    return std::ssize(context.slots) + (found.code ? std::ssize(found.code->dimensions) : 0);
  }
  std::shared_ptr<const void> data_of(const Found& found, const StepContext& context) {
    if (found.is_new) found.code->dimensions = context.dimensions;
    const auto data = std::make_shared<std::vector<std::int64_t>>(context.slots.begin(), context.slots.end());
    if (found.code)
      for (const std::int64_t d : found.code->dimensions) data->push_back(dimensions_.position_of(d));
    return {data, data->data()};
  }

  /// The part of the thunk that depends on sizes: found now if they are known.
  void bind(Thunk& thunk, const WorkOf& work, bool combines) const {
    auto bind = [data = thunk.data, bytes = thunk.bytes, flops = thunk.flops, scratch = thunk.worker_scratch,
                 partials = context_.partials, combines, work](Symbols symbols) {
      const auto extent = [&](std::int64_t d) { return dimension::evaluate(d, symbols); };
      const auto [own, grain, shares] = work(symbols);
      BoundThunk bound{.data = data, .extent = own, .grain = grain};
      if (shares) bound.shared_scratch = bytes_of(partials, symbols);
      if (own == 0) return bound;
      bound.bytes = combines ? bound.shared_scratch : extent(bytes);
      bound.flops = combines ? bound.shared_scratch : extent(flops);
      bound.worker_scratch = extent(scratch);
      return bound;
    };
    const bool is_known =
        std::min({thunk.bytes, thunk.flops, thunk.worker_scratch, loops_.rows(), loops_.columns()}) >= 0;
    if (is_known) {
      const BoundThunk bound = bind({});
      thunk.extent = bound.extent;
      thunk.grain = bound.grain;
      thunk.bytes = bound.bytes;
      thunk.flops = bound.flops;
      thunk.worker_scratch = bound.worker_scratch;
      thunk.shared_scratch = bound.shared_scratch;
    } else {
      thunk.bind = std::move(bind);
    }
  }

  /// The caller says which elements.
  void lower_pieces() {
    add([](Symbols) { return Work{.extent = 0, .shares = false}; }, [](LoopEmitter& emitter) { emitter.emit_rows(); });
  }

  /// The most that row buffers may take: they are decided upon when code is made.
  std::int64_t most_worker_scratch() const {
    if (loops_.phases() == 1 || (loops_.may_be_blocked() && !has_short_rows())) return 0;
    std::int64_t bytes = 0;
    for (int member : step_.members)
      bytes =
          dimension::add(bytes, times(dimension::add(loops_.columns(), 2 * lanes), size_of(graph_[member].spec.dtype)));
    return bytes;
  }

  std::function<Extents(Symbols)> extents() const {
    return [rows = loops_.rows(), columns = loops_.columns()](Symbols symbols) {
      return Extents{dimension::evaluate(rows, symbols), dimension::evaluate(columns, symbols)};
    };
  }

  void lower_rows() {
    const auto emit = [](LoopEmitter& emitter) { emitter.emit_rows(); };
    const std::int64_t least = codes_ && walks_in_tiles(context_) ? tile_rows : 1;  // an outline needs no grain
    const auto at = extents();
    if (loops_.flat()) add([at](Symbols symbols) { return Work{at(symbols).columns, 64}; }, emit);
    else
      add(
          [at, least](Symbols symbols) {
            const Extents e = at(symbols);
            return e.are_long() ? Work{0, 1, true} : Work{e.rows, std::max(least, e.rows_at_once()), false};
          },
          emit);
  }

  /// True if elements of rows are written or reduced in this phase.
  bool walks_columns(int phase) const {
    return std::ranges::any_of(step_.members, [&](int member) {
      return loops_.phase(member) == phase &&
             (is_row_reduction(graph_[member]) || (loops_.is_output(member) && !loops_.is_row_value(member)));
    });
  }
  /// True if rows of unknown length get a kernel for the case that they are short: keeping values in registers and in
  /// the worker's scratch, it does less than one kernel a phase.
  bool has_short_rows() const {
    if (loops_.columns() >= 0) return false;
    int walks = 0;
    for (int phase = 0; phase < loops_.phases(); ++phase) walks += walks_columns(phase);
    const bool reduces =
        std::ranges::any_of(step_.members, [&](int member) { return is_row_reduction(graph_[member]); });
    return walks > 1 || (reduces && loops_.rows() != 1) || walks_in_tiles(context_);
  }

  /// Rows that are so long that workers share them, or may be, which is seen at each call.
  void lower_long_rows() {
    const bool has_short = has_short_rows();
    if (has_short) lower_rows();
    const auto blocks = [at = extents(), has_short](Symbols symbols) {
      const Extents e = at(symbols);
      return e.are_long() || !has_short ? Work{e.blocks(), e.rows_at_once(), true} : Work{0, 1, false};
    };
    for (int phase = 0; phase < loops_.phases(); ++phase)
      if (walks_columns(phase)) add(blocks, [&](LoopEmitter& emitter) { emitter.emit_blocks(phase); });
    const auto rows = [at = extents(), has_short](Symbols symbols) {
      const Extents e = at(symbols);
      return e.are_long() || !has_short ? Work{e.rows, 1, true} : Work{0, 1, false};
    };
    if (std::ranges::any_of(step_.outputs, [&](int output) { return loops_.is_row_value(output); }))
      add_combination(rows, &LoopEmitter::emit_row_outputs);
  }

  void lower_column_reduction() {
    const Reduced view = *loops_.column_reduction();
    const auto blocks = [view, chunks = column_chunks(context_)](Symbols symbols) {
      const auto extent = [&](std::int64_t d) { return dimension::evaluate(d, symbols); };
      return Work{extent(view.outer) * divide_up(extent(view.n), column_block) * chunks, 1};
    };
    add(blocks, [](LoopEmitter& emitter) { emitter.emit_rows(); });
    if (is_reduced_at_once(graph_, step_, loops_)) return;
    const auto columns = [view](Symbols symbols) {
      return view.outer == 1 ? Work{dimension::evaluate(view.inner, symbols), 64}
                             : Work{dimension::evaluate(view.outer, symbols), 1};
    };
    if (codes_) combination_ = find_code(combination_key(combined_));
    add_part(
        combination_, combined_, 0, columns, [](LoopEmitter& emitter) { emitter.emit_column_combination(); }, true);
  }

  StepCodes* codes_;
  Found own_, combination_;
  const Graph& graph_;
  const Step& step_;
  const Loops loops_;
  StepContext context_, combined_;  // of the step's code, and of the combination of partial results by columns
  DimensionTable& dimensions_;
  Thunk common_;
  std::vector<Planned> planned_;
};

}  // namespace

namespace {

std::vector<std::vector<Thunk>> lower_steps(const Graph& graph, std::span<const Step> steps, Isa isa, Lowered& out,
                                            bool shares) {
  const LlvmScope scope;
  std::vector<std::vector<Planned>> planned(steps.size());
  StepCodes codes(isa, shares, out.kept.get());
  KnownFormulas formulas;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step loops = steps[i].loops();
    if (!loops.members.empty())
      planned[i] = StepLowering(&codes, formulas, graph, loops, static_cast<int>(i), out).run();
  }
  codes.finish();
  std::vector<std::vector<Thunk>> thunks(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (Planned& p : planned[i]) {
      p.thunk.run = p.code->parts[p.part].run;
      thunks[i].push_back(std::move(p.thunk));
    }
  out.owner = codes.owner();
  out.code_bytes += codes.bytes();
  return thunks;
}

}  // namespace

std::vector<std::vector<Thunk>> lower_loops(const Graph& graph, std::span<const Step> steps, Isa isa, Lowered& out,
                                            bool shares) {
  internal_check(out.slots >= graph.size(), "the slots of a program begin with its values");
  try {
    return lower_steps(graph, steps, isa, out, shares);
  } catch (const InternalError& fault) {
    throw InternalError(text(fault.what(), "\nwhile lowering\n", to_text(graph)));
  }
}

std::vector<std::vector<Thunk>> outline_loops(const Graph& graph, std::span<const Step> steps, KnownFormulas& formulas,
                                              Lowered& out) {
  std::vector<std::vector<Thunk>> thunks(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step loops = steps[i].loops();
    if (loops.members.empty()) continue;
    for (Planned& planned : StepLowering(nullptr, formulas, graph, loops, static_cast<int>(i), out).run())
      thunks[i].push_back(std::move(planned.thunk));
  }
  return thunks;
}

}  // namespace gradus::cpu_backend
