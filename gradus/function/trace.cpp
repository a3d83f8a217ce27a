/// Cells, guards, keys and copies of one run of a trace.
#include "gradus/function/trace.h"
#include <algorithm>
#include "gradus/ops/random_key.h"
#include "gradus/ops/views.h"

namespace gradus {

Trace::Trace(std::span<const Spec> arguments, ClosureRange closure)
    : Trace(std::make_shared<TraceMemory>(arguments, new_id()), closure, {}) {}

Trace::Trace(std::shared_ptr<TraceMemory> memory, ClosureRange closure, Decide decide)
    : Context(memory->id()),
      memory_(std::move(memory)),
      decide_(std::move(decide)),
      last_cell_before_(VariableCell::last_id()),
      closure_(closure) {
  memory_->start_run();
}

Trace::Cell& Trace::cell_of(VariableCell& cell) {
  Cell*& known = by_cell_[&cell];
  if (!known) {
    const TraceMemory::Parameter parameter = memory_->parameter_of(cell);
    cells_.push_back(std::make_unique<Cell>(
        Cell{cell.shared_from_this(), parameter.index, parameter.tensor, parameter.tensor, cell.abandoned.load()}));
    known = cells_.back().get();
  }
  return *known;
}

Trace* Trace::find(std::uint32_t id) {
  Trace* trace = current();
  while (trace && trace->id() != id) trace = trace->scope_.before();
  return trace;
}

void Trace::run_again() {
  memory_->start_run();
  ordinals_ = 0;
  for (const auto& cell : cells_) {
    cell->now = cell->parameter;
    cell->assigned = false;
  }
}

Tensor Trace::read(VariableCell& cell) { return cell_of(cell).now; }

void Trace::assign(VariableCell& cell, const Tensor& value) {
  require(!copies_.contains(&cell), "variable ", cell.name,
          " belongs to a model that the function's closure holds by value: training would change that copy, not yours; "
          "capture it by reference, as in [&]");
  Cell& known = cell_of(cell);
  known.now = value;
  known.assigned = true;
}

bool Trace::has_assigned(const VariableCell& cell) const {
  const auto known = by_cell_.find(&cell);
  return known != by_cell_.end() && known->second->assigned;
}

bool Trace::decide(const Tensor& predicate) {
  for (const Guard& known : guards_)
    if (known.predicate.node() == predicate.node()) return known.taken;
  if (!decide_) return Context::decide(predicate);
  const Decision decision = decide_(*this, predicate);
  if (!decision.is_constant) guards_.push_back({predicate, decision.taken, bounds_.size()});
  return decision.taken;
}

bool Trace::choose(bool suggested, bool is_of_sizes) {
  const bool is_given = choices_.size() < given_choices_.size() && !(is_of_sizes && knows_sizes_);
  if (is_given) suggested = given_choices_[choices_.size()].taken;
  choices_.push_back({suggested, is_of_sizes});
  return suggested;
}

void Trace::require_not_negative(std::int64_t dimension, const std::string& otherwise) {
  if (std::ranges::find(bounds_, dimension, &Bound::dimension) == bounds_.end())
    bounds_.push_back({dimension, otherwise});
}

const Trace::Bound* Trace::broken(std::span<const Bound> bounds, std::span<const std::int64_t> symbols) {
  const auto holds = [&](const Bound& bound) { return dimension::evaluate(bound.dimension, symbols) >= 0; };
  const auto found = std::ranges::find_if_not(bounds, holds);
  return found == bounds.end() ? nullptr : &*found;
}

bool Trace::are_alike(const Choices& a, const Choices& b) {
  const auto of_sizes = [](const Choices& all) {
    std::vector<bool> taken;
    for (const Choice& choice : all)
      if (choice.is_of_sizes) taken.push_back(choice.taken);
    return taken;
  };
  return of_sizes(a) == of_sizes(b);
}

void Trace::fail_endless() const {
  throw MistakeOfCpp(
      text("more than ", most_applications_, " ops: a C++ loop counts with a size that varies; write it as a scan"));
}

Tensor Trace::next_key() { return fold_key(memory_->call_key(), ordinals_++); }

Tensor Trace::given(const Tensor& x) {
  if (!keeps_given_ || !x.defined()) return x;
  return given_.emplace_back(Given{x, apply(ReshapeOp{x.shape()}, x)}).as_seen;
}

void Trace::watch_flag(std::shared_ptr<const std::atomic<bool>> flag, const std::string& name) {
  const WatchedFlag now{flag, flag->load(std::memory_order_acquire), name};
  for (Trace* trace = this; trace; trace = trace->scope_.before())
    if (!trace->set_here_.contains(flag.get())) trace->watched_.add(now);
}

void Trace::note_set(const std::atomic<bool>& flag) {
  for (Trace* trace = this; trace; trace = trace->scope_.before()) trace->set_here_.insert(&flag);
}

void Trace::note_use(const void* object, const Variables& cells) {
  const auto* at = static_cast<const char*>(object);
  const auto* begin = static_cast<const char*>(closure_.begin);
  if (std::less<>{}(at, begin) || !std::less<>{}(at, begin + closure_.bytes)) return;
  for (const auto& cell : cells.cells()) copies_.insert(cell.get());
}

}  // namespace gradus
