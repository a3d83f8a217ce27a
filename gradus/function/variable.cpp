/// Reading and assigning cells, and lists of them.
#include "gradus/function/variable.h"
#include <algorithm>
#include <unordered_set>
#include "gradus/base/nearest.h"
#include "gradus/function/pending.h"
#include "gradus/function/trace.h"
#include "gradus/function/whereabouts.h"
#include "gradus/graph/context.h"
#include "gradus/graph/copy.h"
#include "gradus/graph/mask.h"
#include "gradus/graph/trace_names.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/views.h"

namespace gradus {
namespace {

std::atomic<std::uint64_t> next_id{1};

/// Two threads that assign one cell at once would race for which value stays.
class Assigning {
 public:
  explicit Assigning(VariableCell& cell) : cell_(cell) {
    require(!cell.assigning.exchange(true, std::memory_order_acq_rel), "variable ", cell.name,
            ": two threads assign it at once; let one thread assign, or guard it with a mutex of yours");
  }
  ~Assigning() { cell_.assigning.store(false, std::memory_order_release); }
  Assigning(const Assigning&) = delete;

 private:
  VariableCell& cell_;
};

/// True if `value`, a cell's only one so far, waits in this queue, held by the cell alone: no pending op reads it
/// either. `value` itself is one more handle.
bool is_unread(VariableCell& cell, const Tensor& value, const Pending& queue) {
  const Node& node = *value.node();
  const std::lock_guard lock(cell.guard);
  return node.queue.load(std::memory_order_acquire) == &queue && !cell.committed.defined() &&
         node.refs.load(std::memory_order_acquire) == 2;
}

bool waits_for_an_assignment(VariableCell& cell) {
  const std::lock_guard lock(cell.guard);
  return cell.committed.defined();
}

/// `next` becomes the cell's value; its computation may wait. A pending value, as a first one, that was never read is
/// not computed at all, unless a failure returns to it.
void assign_lazily(VariableCell& cell, const Tensor& next) {
  const Assigning alone(cell);
  // Before the cell is locked: a flush of nodes that become this thread's queue locks it.
  const Pending& own = Pending::mine();
  const Tensor before = cell.read();
  if (!is_unread(cell, before, own)) {
    before.observed();  // flushes align with steps, and there is a value to return to
    if (waits_for_an_assignment(cell)) Pending::flush_assigning(cell);  // which a compiled function has overtaken
  }
  Pending* queue = next.node()->queue.load(std::memory_order_acquire);
  if (queue != &own) {
    next.observed();  // for values that wait nowhere, since they failed, too: the present value stays
    queue = nullptr;
  }
  {
    std::lock_guard lock(cell.guard);
    cell.value = next;
    if (!queue) return;
    cell.committed = before;
  }
  queue->add_assignment(cell.shared_from_this());
}

/// The value that a copy of the cell begins with. Within a trace that is the cell's value before it.
Tensor value_to_copy(VariableCell& cell) {
  const Trace* trace = Trace::current();
  require(!trace || !trace->has_assigned(cell), "variable ", cell.name,
          ": copied within a traced function that has assigned it before, so its value is not known yet; make the copy "
          "outside of the function, and assign it within");
  return cell.read();
}

/// While it lives, new nodes belong to `trace`, which is on the stack of this thread.
class Within : public Context {
 public:
  explicit Within(Context& trace) : Context(trace.id()), trace_(trace) {}
  Ref<Node>* place_of(const AnyOp& op, In inputs) override { return trace_.place_of(op, inputs); }

 private:
  Context& trace_;
};

VariableCell& living(const std::shared_ptr<VariableCell>& cell) {
  require(cell.get() != nullptr, "this Variable has been moved from; use the one that it was moved to");
  return *cell;
}

/// A Variable has no mask of places, since compiled functions return values alone: it holds a value that has lost its
/// mask.
Tensor without_places(const Tensor& value) {
  return SequenceMask::of(value).defined() ? apply(ReshapeOp{value.shape()}, value) : value;
}

/// A node that stands for `value` in the cell. It is made where `value` was, which a region around the reader is not,
/// and is the cell's value from now on: all readers get the same one.
Tensor own_node_of(VariableCell& cell, const Tensor& value) {
  const ReshapeOp same{value.shape()};
  if (value.is_symbolic()) {
    Trace* const trace = Trace::find(value.node()->trace);
    internal_check(trace != nullptr, "a Variable holds what no trace of this thread has made");
    const Within there(*trace);
    const Tensor own = apply(same, value);
    trace->hold(cell, own);
    return own;
  }
  const Untraced there;
  const Tensor own = apply(same, value);
  const std::lock_guard lock(cell.guard);
  if (cell.value.node() == value.node()) cell.value = own;
  return own;
}

}  // namespace

std::shared_ptr<VariableCell> VariableCell::make(const Tensor& initial, std::string name, VariableOptions options) {
  require(!initial.is_symbolic(), "variable ", name, ": its first value, ", initial.spec(),
          ", is symbolic; make Variables outside of traced functions");
  auto cell = std::make_shared<VariableCell>();
  // A Variable lives where it is made.
  const Placement scope = DeviceScope::current();
  const Tensor first = without_places(initial);
  const Tensor here = scope.is_named() && !first.spec().device.is_named() ? copy_to(first, scope) : first;
  cell->name = std::move(name);
  cell->spec = here.spec();
  cell->trainable = cell->made_trainable = options.trainable;
  cell->aggregation = options.aggregation;
  cell->id = next_id.fetch_add(1, std::memory_order_relaxed);
  cell->value = here;
  cell->handle.cell_ = std::shared_ptr<VariableCell>(std::shared_ptr<void>(), cell.get());
  return cell;
}

std::uint64_t VariableCell::last_id() { return next_id.load(std::memory_order_relaxed) - 1; }
bool VariableCell::is_trainable() {
  if (Trace* trace = Trace::current())
    trace->watch_flag(std::shared_ptr<const std::atomic<bool>>(shared_from_this(), &trainable), "variable " + name);
  return trainable;
}

void VariableCell::set_trainable(bool next) {
  if (Trace* trace = Trace::current()) trace->note_set(trainable);
  if (trainable.exchange(next, std::memory_order_acq_rel) != next) note_change_of_setup();
}

Tensor VariableCell::read() {
  std::lock_guard lock(guard);
  return value;
}

Tensor VariableCell::value_here() {
  const Tensor now = Context::current() ? Context::current()->read(*this) : Tensor();
  return now.defined() ? now : read();
}

std::shared_ptr<VariableCell> VariableCell::mask_cell() {
  if (mask_id.load(std::memory_order_acquire) == 0) return nullptr;
  std::lock_guard lock(guard);
  return mask;
}

void VariableCell::set_mask_cell(std::shared_ptr<VariableCell> next) {
  std::lock_guard lock(guard);
  mask_id.store(next ? next->id : 0, std::memory_order_release);
  std::swap(mask, next);  // the old one dies after the lock
}

Tensor VariableCell::masked(const Tensor& x) {
  const auto cell = mask_cell();
  return cell ? where(cell->value_here(), x, fill(x.shape(), 0, x.dtype())) : x;
}

Variable::Variable(std::shared_ptr<VariableCell> cell) : cell_(std::move(cell)) {}
Variable::Variable(const Tensor& initial, std::string name, VariableOptions options)
    : cell_(VariableCell::make(initial, name.empty() ? "variable" : std::move(name), options)) {
  whereabouts::enter(this, whereabouts::Kind::variable);
}
Variable::Variable(const Variable& other)
    : cell_(VariableCell::make(value_to_copy(living(other.cell_)), living(other.cell_).name,
                               {living(other.cell_).made_trainable, living(other.cell_).aggregation})) {
  cell_->trainable = living(other.cell_).trainable.load();
  cell_->is_copy = true;
  cell_->is_optimizer_state = living(other.cell_).is_optimizer_state;
  if (const auto mask = living(other.cell_).mask_cell())
    cell_->set_mask_cell(VariableCell::make(mask->read(), mask->name, {.trainable = false}));
  whereabouts::enter(this, whereabouts::Kind::variable);
}
Variable::Variable(Variable&& other) noexcept : cell_(std::move(other.cell_)) {
  if (cell_.use_count() == 0) return;
  whereabouts::leave(&other);
  whereabouts::enter(this, whereabouts::Kind::variable);
}
Variable::~Variable() {
  const bool owner = cell_.use_count() > 0;  // not the cell's own handle, nor moved from
  if (!owner) return;
  whereabouts::leave(this);
  cell_->abandoned.store(true, std::memory_order_relaxed);
}

Tensor Variable::value() const {
  VariableCell& cell = living(cell_);
  return ReadListener::tell(cell, cell.value_here());
}
const Shape& Variable::shape() const { return living(cell_).spec.shape; }
DType Variable::dtype() const { return living(cell_).spec.dtype; }
const std::string& Variable::name() const { return living(cell_).name; }
void Variable::become(const std::shared_ptr<VariableCell>& cell) {
  const Variable left(std::exchange(cell_, cell));  // the cell that it leaves has no Variable any more
  whereabouts::note_change();
}
void Variable::set_name(std::string name) {
  VariableCell& cell = living(cell_);
  if (cell.name != name) cell.name = std::move(name);
}
bool Variable::trainable() const { return living(cell_).is_trainable(); }
void Variable::set_trainable(bool trainable) { living(cell_).set_trainable(trainable); }
Aggregation Variable::aggregation() const { return living(cell_).aggregation; }
std::ostream& operator<<(std::ostream& out, const Variable& variable) { return out << variable.value(); }

void Variable::assign(const Tensor& given) {
  VariableCell& cell = living(cell_);
  const Spec& spec = given.spec();
  require(spec.dtype == cell.spec.dtype && spec.shape == cell.spec.shape, "assign to variable ", cell.name,
          ": expected ", cell.spec, ", got ", spec);
  require(!spec.device.is_named() || spec.device.device() == cell.spec.device.physical(), "assign to variable ",
          cell.name, ": it is on ", cell.spec.device.physical(), ", the value ", spec, " on ", spec.device.physical(),
          "; copy it by .to(", cell.spec.device.physical(), ")");
  const Tensor value = copy_to(without_places(given), cell.spec.device);
  if (Context* context = Context::current()) {
    const std::string_view why = context->why_no_assignment();
    require(why.empty(), "assign to variable ", cell.name, ": ", why);
    context->assign(cell, cell.masked(value));
    return;
  }
  if (value.is_symbolic())
    throw InvalidArgument(
        text("assign to variable ", cell.name, ": the value, ", value.spec(), origin_of(*value.node())));
  assign_lazily(cell, cell.masked(value));
}

void Variable::set_mask(const Tensor& mask) {
  VariableCell& cell = living(cell_);
  const auto known = cell.mask_cell();
  require(!Context::current() || (known && mask.defined()), "set_mask of variable ", cell.name,
          ": within a traced function a mask can only be replaced; set the first one, and take it away, outside");
  if (!mask.defined()) return cell.set_mask_cell(nullptr);
  require(mask.shape() == shape(), "set_mask of variable ", cell.name, ": expected a mask of ", shape(), ", got ",
          mask.spec());
  const Tensor kept = mask.dtype() == boolean ? mask : not_equal(mask, fill(shape(), 0, mask.dtype()));
  assign(where(kept, cell.value_here(), fill(shape(), 0, dtype())));
  if (known) known->handle.assign(kept);
  else cell.set_mask_cell(VariableCell::make(kept, cell.name + "/mask", {.trainable = false}));
}

Tensor Variable::mask() const {
  const auto mask = living(cell_).mask_cell();
  return mask ? mask->value_here() : Tensor();
}

void Variable::assign_add(const Tensor& value) {
  VariableCell& cell = living(cell_);
  Context* const context = Context::current();
  if (!context || !context->increase(cell, value, false)) assign(this->value() + value);
}
void Variable::assign_sub(const Tensor& value) {
  VariableCell& cell = living(cell_);
  Context* const context = Context::current();
  if (!context || !context->increase(cell, value, true)) assign(this->value() - value);
}

Variable& Variables::operator[](std::size_t i) const {
  require<OutOfRange>(i < cells().size(), "variable ", i, " of ", cells().size());
  return cells()[i]->handle;
}

Variable& Variables::operator[](std::string_view name) const {
  for (const auto& cell : cells())
    if (cell->name == name) return cell->handle;
  std::vector<std::string> names;
  for (const auto& cell : cells()) names.push_back(cell->name);
  throw InvalidArgument(text("there is no variable `", name, "`", did_you_mean(name, names)));
}

void Variables::add(const Variable& variable) {
  require(static_cast<bool>(variable.cell_), "this Variable has been moved from");
  if (find(*variable.cell_) < 0) cells_.push_back(variable.cell_->shared_from_this());
}

std::ptrdiff_t Variables::find(const VariableCell& cell) const {
  const auto it = std::ranges::find(cells(), &cell, [](const auto& known) { return known.get(); });
  return it == cells().end() ? -1 : it - cells().begin();
}

Variables Variables::operator+(const Variables& more) const {
  Variables sum = *this;
  std::unordered_set<const VariableCell*> known;
  for (const auto& cell : sum.cells()) known.insert(cell.get());
  for (const auto& cell : more.cells())
    if (known.insert(cell.get()).second) sum.cells_.push_back(cell);
  return sum;
}

Variables Variables::filter(const std::function<bool(std::string_view)>& keep) const {
  Variables kept;
  for (const Variable& variable : *this)
    if (keep(variable.name())) kept.add(variable);
  return kept;
}

std::int64_t Variables::parameters() const {
  std::int64_t count = 0;
  for (const auto& cell : cells()) count += cell->spec.shape.size();
  return count;
}

Variables Variables::later(std::function<Variables()> list) {
  Variables variables;
  variables.later_ = std::move(list);
  return variables;
}

void Variables::find_out() const {
  cells_ = later_().cells();
  later_ = nullptr;
}

ReadListener::~ReadListener() { leave(); }
void ReadListener::leave() {
  // Listeners are tapes, which users may destroy in any order.
  ReadListener** place = &CallContext::here().listener;
  while (*place && *place != this) place = &(*place)->outer_;
  if (*place) *place = outer_;
}
Tensor ReadListener::tell(VariableCell& cell, Tensor value) {
  Pending::mine().destroy_abandoned();
  bool is_known = false;
  for (ReadListener* listener = CallContext::here().listener; listener; listener = listener->outer_)
    is_known = is_known || listener->knows(value);
  if (is_known) value = own_node_of(cell, value);
  for (ReadListener* listener = CallContext::here().listener; listener; listener = listener->outer_)
    listener->on_read(cell, value);
  return value;
}
void ReadListener::tell_within(VariableCell& cell) {
  Pending::mine().destroy_abandoned();
  for (ReadListener* listener = CallContext::here().listener; listener; listener = listener->outer_)
    listener->on_read_within(cell);
}

}  // namespace gradus
