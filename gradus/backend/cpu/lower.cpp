/// Steps of loops become thunks: which kernels a step needs, over how much, and what they cost.
#include "gradus/backend/cpu/lower.h"
#include <algorithm>
#include <map>
#include "gradus/backend/cpu/jit.h"
#include "gradus/backend/cpu/kernel_key.h"

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
  for (const Read& read : reads_of(graph, step)) add(graph[read.storage].spec);
  for (int output : step.outputs) add(graph[output].spec);
  return bytes;
}

std::int64_t operations(const Graph& graph, const Step& step) {
  std::int64_t sum = 0;
  for (int member : step.members) {
    const Value& v = graph[member];
    std::int64_t each = 1;
    if (v.op.is_elementwise()) {
      std::vector<DType> types;
      for (int operand : v.in) types.push_back(graph[operand].spec.dtype);
      each = static_cast<std::int64_t>(v.op.formula(types).instructions.size());
    }
    sum =
        dimension::add(sum, times(each, v.op.is_reduction() ? graph[v.in[0]].spec.shape.size() : v.spec.shape.size()));
  }
  return sum;
}

/// A thunk and the kernel that it will run.
struct Planned {
  Thunk thunk;
  std::string kernel;
};

/// The kernels of one module: steps of one structure share theirs.
struct Kernels {
  llvm::Module& module;
  std::map<std::string, std::vector<std::int64_t>> known = {};  // by key: the scratch that each part's workers need
  std::map<std::string, std::string> names = {};                // by key

  /// What part `part` of the step needs in scratch; `emit` makes its kernel if nothing like it was made before.
  template <class Emit> std::int64_t part(const std::string& key, std::size_t part, Emit emit) {
    std::vector<std::int64_t>& parts = known[key];
    if (part == parts.size()) parts.push_back(emit());
    return parts[part];
  }
  std::string name(const std::string& key, std::size_t part) {
    const std::string& name = names.try_emplace(key, "loops" + std::to_string(names.size())).first->second;
    return name + "_" + std::to_string(part);
  }
};

class StepLowering {
 public:
  /// Without `kernels` no code is made.
  StepLowering(Kernels* kernels, const Graph& graph, const Step& step, int index, Lowered& out)
      : kernels_(kernels),
        graph_(graph),
        step_(step),
        loops_(graph, step),
        context_{.graph = graph, .step = step, .loops = loops_, .dimensions = out.dimensions} {
    const std::int64_t bytes = lay_out_partials(context_);
    if (bytes != 0) context_.shared_slot = out.slots++;
    if (kernels) key_ = kernel_key(context_);
    const auto slots = std::make_shared<std::vector<std::int64_t>>(context_.slots.begin(), context_.slots.end());
    common_ = {.data = {slots, slots->data()},
               .step = index,
               .bytes = bytes_moved(graph, step),
               .flops = operations(graph, step),
               .shared_scratch = bytes,
               .shared_slot = context_.shared_slot,
               .label = label_of(graph, step)};
  }

  std::vector<Planned> run() {
    const bool reduces = std::any_of(step_.members.begin(), step_.members.end(),
                                     [&](int member) { return graph_[member].op.is_reduction(); });
    if (times(loops_.rows(), loops_.columns()) == 0 && !reduces) return {};  // nothing to write
    if (loops_.blocked()) lower_blocked();
    else if (loops_.column_reduction()) lower_column_reduction();
    else lower_rows();
    return std::move(planned_);
  }

 private:
  /// The next thunk; `emit(emitter)` makes its kernel.
  template <class Emit> Thunk& add(std::int64_t extent, std::int64_t grain, Emit emit) {
    const std::size_t part = planned_.size();
    Planned& planned = planned_.emplace_back(common_, std::string());
    planned.thunk.extent = extent;
    planned.thunk.grain = grain;
    if (!kernels_) {
      planned.thunk.worker_scratch = most_worker_scratch();
      return planned.thunk;
    }
    planned.kernel = kernels_->name(key_, part);
    planned.thunk.worker_scratch = kernels_->part(key_, part, [&] {
      LoopEmitter emitter(kernels_->module, planned.kernel, context_);
      emit(emitter);
      return emitter.worker_scratch();
    });
    return planned.thunk;
  }
  Thunk& add_combination(std::int64_t extent, std::int64_t grain, void (LoopEmitter::*emit)()) {
    Thunk& thunk = add(extent, grain, [&](LoopEmitter& emitter) { (emitter.*emit)(); });
    thunk.label += " (combined)";
    thunk.bytes = thunk.flops = common_.shared_scratch;
    return thunk;
  }

  /// What row buffers may take, which are decided upon when code is made.
  std::int64_t most_worker_scratch() const {
    if (loops_.phases() == 1 || loops_.blocked()) return 0;
    std::int64_t bytes = 0;
    for (int member : step_.members)
      bytes =
          dimension::add(bytes, times(dimension::add(loops_.columns(), 2 * lanes), size_of(graph_[member].spec.dtype)));
    return bytes;
  }

  std::int64_t rows_at_once() const {
    return loops_.columns() <= 0 ? 1 : std::max<std::int64_t>(1, small_item / loops_.columns());
  }

  void lower_rows() {
    const auto emit = [](LoopEmitter& emitter) { emitter.emit_rows(); };
    if (loops_.flat()) add(loops_.columns(), 64, emit);
    else add(loops_.rows(), walks_in_tiles(context_) ? std::max(tile_rows, rows_at_once()) : rows_at_once(), emit);
  }

  void lower_column_reduction() {
    const auto emit = [](LoopEmitter& emitter) { emitter.emit_rows(); };
    const Reduced& view = *loops_.column_reduction();
    const std::int64_t blocks = (view.n + column_block - 1) / column_block;
    if (view.n >= 0) add(times(times(view.outer, blocks), column_chunks(context_)), 1, emit);
    else if (view.outer == 1) add(view.n, column_block, emit);
    else add(view.outer, 1, emit);
    if (is_reduced_at_once(context_)) return;
    if (view.outer == 1) add_combination(view.inner, 64, &LoopEmitter::emit_column_combination);
    else add_combination(view.outer, 1, &LoopEmitter::emit_column_combination);
  }

  void lower_blocked() {
    const std::int64_t blocks = (loops_.columns() + row_block - 1) / row_block;
    for (int phase = 0; phase < loops_.phases(); ++phase)
      add(times(loops_.rows(), blocks), 1, [&](LoopEmitter& emitter) { emitter.emit_blocks(phase); });
    if (std::any_of(step_.outputs.begin(), step_.outputs.end(),
                    [&](int output) { return loops_.is_row_value(output); }))
      add_combination(loops_.rows(), 1, &LoopEmitter::emit_row_outputs);
  }

  Kernels* kernels_;
  const Graph& graph_;
  const Step& step_;
  const Loops loops_;
  StepContext context_;
  std::string key_;
  Thunk common_;
  std::vector<Planned> planned_;
};

}  // namespace

namespace {

std::vector<std::vector<Thunk>> lower_in_module(const Graph& graph, std::span<const Step> steps, Isa isa,
                                                Lowered& out) {
  std::vector<std::vector<Planned>> planned(steps.size());
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module = new_module(context, isa);
  Kernels kernels{*module};
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i].kind == Step::Kind::loops)
      planned[i] = StepLowering(&kernels, graph, steps[i], static_cast<int>(i), out).run();
  std::vector<std::vector<Thunk>> thunks(steps.size());
  if (module->empty()) return thunks;
  const std::shared_ptr<const MachineCode> code = generate(*module, isa);
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (Planned& p : planned[i]) {
      p.thunk.run = reinterpret_cast<KernelFunction>(code->address(p.kernel));
      thunks[i].push_back(std::move(p.thunk));
    }
  out.owner = code;
  out.code_bytes += code->bytes();
  return thunks;
}

}  // namespace

std::vector<std::vector<Thunk>> lower_loops(const Graph& graph, std::span<const Step> steps, Isa isa, Lowered& out) {
  internal_check(out.slots >= graph.size(), "the slots of a program begin with its values");
  try {
    return lower_in_module(graph, steps, isa, out);
  } catch (const InternalError& fault) {
    throw InternalError(text(fault.what(), "\nwhile lowering\n", to_text(graph)));
  }
}

std::vector<Thunk> outline_loops(const Graph& graph, const Step& step) {
  Lowered nowhere{.slots = graph.size()};
  std::vector<Thunk> thunks;
  for (Planned& planned : StepLowering(nullptr, graph, step, 0, nowhere).run())
    thunks.push_back(std::move(planned.thunk));
  return thunks;
}

}  // namespace gradus::cpu_backend
