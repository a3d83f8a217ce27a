/// Binding, running and committing.
#include "gradus/function/one_call.h"
#include <algorithm>
#include <unordered_set>
#include "gradus/base/activity_log.h"
#include "gradus/base/of_thread.h"
#include "gradus/backend/divided_value.h"
#include "gradus/backend/compile.h"
#include "gradus/backend/shard_run.h"
#include "gradus/compiler/recompute.h"
#include "gradus/ops/call_keys.h"
#include "gradus/function/pending.h"
#include "gradus/function/resident.h"
#include "gradus/ops/random_state.h"
#include "gradus/tensor/borrowed.h"

namespace gradus {
namespace {

/// Buffers of one program; kept by the thread.
struct Frame {
  std::vector<Ref<Buffer>> inputs, outputs;
};
Frame& frame() { return OfThread<Frame>::get(); }
struct FrameInUse {
  ~FrameInUse() {
    frame().inputs.clear();
    frame().outputs.clear();
  }
};

/// Marks the cells that a call assigns; two calls at once that assign one cell are a mistake.
class Claim {
 public:
  explicit Claim(const Segment& leaf) : leaf_(leaf) {
    for (; claimed_ < leaf.assignments.size(); ++claimed_) {
      VariableCell& cell = *leaf.cells[leaf.assignments[claimed_].cell].cell;
      if (!cell.assigning.exchange(true, std::memory_order_acq_rel)) continue;
      release();
      throw Error(
          text("variable ", cell.name,
               ": two threads assign it at once; let one thread train, or guard the calls with a mutex of yours"));
    }
  }
  ~Claim() { release(); }
  Claim(const Claim&) = delete;

 private:
  void release() {
    for (std::size_t i = 0; i < claimed_; ++i)
      leaf_.cells[leaf_.assignments[i].cell].cell->assigning.store(false, std::memory_order_release);
    claimed_ = 0;
  }
  const Segment& leaf_;
  std::size_t claimed_ = 0;
};

/// Tells the profile of this thread whose memory the Variables of a program are.
void note_variables(const Segment& segment) {
  ActivityLog* const log = CallContext::here().log;
  if (!log) [[likely]]
    return;
  log->note_function();
  if (!log->is_new(&segment)) return;
  for (const UsedCell& used : segment.cells) {
    const VariableCell& cell = *used.cell;
    const bool counts = cell.spec.shape.rank() == 0 && !cell.made_trainable;  // steps, and the totals of metrics
    log->profile().note_variable(cell.id, bytes_of(cell.spec), cell.is_optimizer_state || counts);
  }
}

bool predicate_in(const Ref<Buffer>& buffer) { return *static_cast<const bool*>(buffer->host()); }

}  // namespace

void OneCall::begin(std::vector<std::int64_t> symbols) {
  symbols_ = std::move(symbols);
  is_guarded_ = false;
  cells_.clear();
  path_.clear();
  yields_.clear();
  known_.clear();
}

const Tensor& OneCall::key() {
  if (!key_.defined()) key_ = CallKeys::fresh(&seed_);
  return key_;
}

void OneCall::undo() {
  if (seed_) return_seed(*seed_);
}

Ref<Buffer> OneCall::value_of_cell(int index, VariableCell& cell) {
  if (!is_guarded_) return resident(cell.read());
  const auto place = static_cast<std::size_t>(index);
  if (cells_.size() <= place) cells_.resize(place + 1);
  if (!cells_[place]) cells_[place] = resident(cell.read());
  return cells_[place];
}

Ref<Buffer> OneCall::value_of(const Source& source, const Segment& segment) {
  const auto index = static_cast<std::size_t>(source.index);
  switch (source.kind) {
    case Source::Kind::argument: return resident(arguments_[index]);
    case Source::Kind::cell: return value_of_cell(segment.cells[index].index, *segment.cells[index].cell);
    case Source::Kind::call_key: return resident(key());
    case Source::Kind::capture: return resident(segment.captures[index]);
    case Source::Kind::yield: return yields_[static_cast<std::size_t>(source.segment)][index];
  }
  throw InternalError("internal fault: a program is bound to nothing");
}

Ref<Buffer> OneCall::value_of(const Trace& trace, const Ref<Node>& node) {
  if (const auto known = known_.find(node.get()); known != known_.end()) return known->second;
  const Source source = trace.memory().source_of(*node);
  if (source.kind == Source::Kind::argument) return resident(arguments_[static_cast<std::size_t>(source.index)]);
  if (source.kind == Source::Kind::call_key) return resident(key());
  if (source.kind == Source::Kind::capture) return resident(Tensor(node));
  const auto cell = std::ranges::find(trace.cells(), source.index, [](const auto& c) { return c->index; });
  return value_of_cell(source.index, *(*cell)->cell);
}

void OneCall::bind(const Segment& segment) {
  for (const Source& source : segment.sources) frame().inputs.push_back(value_of(source, segment));
  if (shards_ && shards_->ranks > 1 && !segment.was_compared.exchange(true)) compare_with_ranks(segment);
}

/// Ranks that begin with other Variables, or draw other random numbers, would train other models without a word.
void OneCall::compare_with_ranks(const Segment& segment) const {
  std::vector<ShardRun::Common> common;
  for (std::size_t k = 0; k < segment.sources.size(); ++k) {
    const Source& source = segment.sources[k];
    const auto index = static_cast<std::size_t>(source.index);
    const auto add = [&](std::string name, const Spec& spec) {
      common.push_back({std::move(name), hash_among_ranks(*frame().inputs[k], bytes_of(spec))});
    };
    if (source.kind == Source::Kind::cell) {
      const VariableCell& cell = *segment.cells[index].cell;
      add(text("Variable ", printable(cell.name, true), " (every rank begins with the same values: call set_seed with ",
               "one number on all before the model is made, or load the same weights)"),
          cell.spec);
    } else if (source.kind == Source::Kind::call_key) {
      add("the key of random numbers (call set_seed with one number on all ranks)", key_.spec());
    } else if (source.kind == Source::Kind::capture) {
      const Spec& spec = segment.captures[index].spec();
      add(text("a captured tensor ", spec, " (what differs from rank to rank is an argument of the step)"), spec);
    }
  }
  shards_->exchange->compare(common);
}

void OneCall::run(const Executable& program) {
  ++dispatches_;
  ++Pending::mine().dispatches();
  program.run(frame().inputs, frame().outputs, {.symbols = symbols_, .shards = shards_});
  if (!program.keeps_old_values()) program.wait(frame().outputs);
}

bool OneCall::take_way(Segment& segment) {
  const FrameInUse in_use;
  is_guarded_ = true;
  bind(segment);
  const auto program = segment.program->next();
  frame().outputs.resize(program->graph().outputs.size());
  run(*program);
  yields_.push_back(std::exchange(frame().outputs, {}));
  path_.push_back({&segment, predicate_in(yields_.back().front())});
  return path_.back().taken;
}

/// True if the cells that the leaf assigns still hold the values that an earlier segment has read.
bool OneCall::is_as_read(const Segment& leaf) const {
  for (const Segment::Assignment& a : leaf.assignments) {
    const UsedCell& used = leaf.cells[a.cell];
    const auto place = static_cast<std::size_t>(used.index);
    if (place >= cells_.size() || !cells_[place]) continue;
    std::lock_guard lock(used.cell->guard);
    if (used.cell->value.node()->value.get() != cells_[place].get()) return false;
  }
  return true;
}

/// Lets assigned Variables be computed in their own memory if there is no other holder. `locks`: keep others from
/// taking a handle on overwritten memory.
void OneCall::overwrite(const Segment& leaf, const Executable& program,
                        std::vector<std::unique_lock<CellLock>>& locks) {
  for (const Segment::Assignment& a : leaf.assignments) {
    const int place_taken = program.may_overwrite()[a.output];
    if (place_taken < 0) continue;
    VariableCell& cell = *leaf.cells[a.cell].cell;
    std::unique_lock lock(cell.guard);
    const Ref<Buffer>& input = frame().inputs[static_cast<std::size_t>(place_taken)];
    const Ref<Node>& node = cell.value.node();
    const auto place = static_cast<std::size_t>(leaf.cells[a.cell].index);
    const bool held_by_call = place < cells_.size() && cells_[place].get() == input.get();
    const std::uint32_t holders = held_by_call ? 3 : 2;  // the node, the frame, and this call
    if (node->value.get() != input.get() || node->refs.load(std::memory_order_acquire) != 1 ||
        input->refs.load(std::memory_order_acquire) != holders || is_borrowed(*input))
      continue;
    frame().outputs[a.output] = input;
    locks.push_back(std::move(lock));
  }
}

bool OneCall::finish(const Segment& leaf, Tensors& results) {
  const Claim claim(leaf);
  if (!is_as_read(leaf)) return false;
  note_variables(leaf);
  const FrameInUse in_use;
  std::vector<Tensor> released;  // after the locks
  {
    bind(leaf);
    std::vector<std::unique_lock<CellLock>> locks;
    const auto program = leaf.program->next();
    frame().outputs.resize(program->graph().outputs.size());
    overwrite(leaf, *program, locks);
    run(*program);
  }
  for (const Segment::Assignment& a : leaf.assignments) {
    VariableCell& cell = *leaf.cells[a.cell].cell;
    Tensor next = Tensor::of_buffer(cell.spec, frame().outputs[a.output]);
    std::lock_guard lock(cell.guard);
    std::swap(cell.value, next);
    released.push_back(std::move(next));
    // An assignment before may wait still: if it fails, this one holds.
    if (cell.committed.defined()) released.push_back(std::exchange(cell.committed, cell.value));
  }
  results.reserve(leaf.results.size());
  for (const Segment::Result& result : leaf.results) {
    if (result.output < 0) {
      results.emplace_back();
      continue;
    }
    Spec spec = result.spec;
    if (spec.shape.is_symbolic()) spec.shape = spec.shape.evaluated(symbols_);
    results.push_back(Tensor::of_buffer(spec, frame().outputs[static_cast<std::size_t>(result.output)]));
  }
  return true;
}

void OneCall::remember_path() {
  for (std::size_t k = 0; k < path_.size(); ++k) {
    const Segment& segment = *path_[k].segment;
    known_.try_emplace(segment.predicate.node().get(), yields_[k][0]);
    for (std::size_t i = 0; i < segment.yields.size(); ++i)
      known_.try_emplace(segment.yields[i].get(), yields_[k][i + 1]);
  }
}

/// The predicate, and without a budget other values computed for it that the program under trace still holds: a later
/// predicate may need them.
std::vector<Ref<Node>> OneCall::worth_keeping(const Trace& trace, Node& predicate) const {
  std::vector<Ref<Node>> kept{Ref<Node>(&predicate)};
  if (max_bytes_ > 0) return kept;
  const auto uses = trace.memory().uses();
  std::unordered_set<const Node*> seen;
  std::vector<Node*> stack{&predicate};
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second || node->trace != trace.id() || node->is_leaf() || known_.contains(node)) continue;
    const auto found = uses.find(node);
    const std::uint32_t holders = 1 + (found == uses.end() ? 0 : found->second);
    const bool is_free = node->op.is_view() || node->op.is_alias() || node->op.is_index();
    if (node != &predicate && !is_free && !node->varies && node->refs.load(std::memory_order_relaxed) > holders)
      kept.emplace_back(node);
    for (const Ref<Node>& operand : node->inputs) stack.push_back(operand.get());
  }
  return kept;
}

/// A budget that does not suffice here is reported by the segments, since they know the whole path.
std::shared_ptr<const Executable> OneCall::program_of_predicate(Graph graph) const {
  if (max_bytes_ > 0) {
    try {
      return compile(graph, {.max_bytes = max_bytes_, .symbols = symbols_, .shards = shards_});
    } catch (const BudgetTooSmall&) {}
  }
  return compile(std::move(graph), {.tier = Tier::interpreted, .shards = shards_});
}

Trace::Decision OneCall::evaluate(const Trace& trace, const Tensor& predicate) {
  is_guarded_ = true;
  remember_path();
  if (const auto known = known_.find(predicate.node().get()); known != known_.end())
    return {predicate_in(known->second)};
  if (const Trace::Bound* broken = Trace::broken(trace.bounds(), symbols_))
    throw OutOfRange(text(title_, ": ", broken->otherwise));
  const std::vector<Ref<Node>> roots = worth_keeping(trace, *predicate.node());
  Flattened flat = flatten(roots, [&](const Node& node) { return node.trace != trace.id() || known_.contains(&node); });
  bool is_constant = flat.graph.symbols() == 0;
  std::vector<Ref<Buffer>> inputs, outputs(roots.size());
  for (const Ref<Node>& node : flat.inputs) {
    is_constant =
        is_constant && !known_.contains(node.get()) && trace.memory().source_of(*node).kind == Source::Kind::capture;
    inputs.push_back(value_of(trace, node));
  }
  const auto program = program_of_predicate(std::move(flat.graph));
  ++dispatches_;
  ++Pending::mine().dispatches();
  program->run(inputs, outputs, {.symbols = symbols_, .shards = shards_});
  program->wait(outputs);
  const bool taken = predicate_in(outputs[0]);
  if (is_constant) trace.memory().constants().emplace(predicate.node().get(), taken);
  else
    for (std::size_t k = 0; k < roots.size(); ++k) known_.try_emplace(roots[k].get(), outputs[k]);
  return {taken, is_constant};
}

}  // namespace gradus
