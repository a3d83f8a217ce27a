/// Trace: one run of the tracing of a call. Arguments are symbols, a Variable that is read is a parameter of the
/// program, one that is assigned is an output. A C++ branch on a symbol becomes a guard: the trace's owner decides
/// which way this run goes. No two nodes of a run are ever merged here: that is the compiler's job alone.
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <set>
#include "gradus/base/floating_point_state.h"
#include "gradus/function/trace_memory.h"
#include "gradus/function/watched_state.h"
#include "gradus/graph/context.h"
#include "gradus/graph/graph.h"

namespace gradus {

/// The bytes of the callable that is being traced, to find its captures by value.
struct ClosureRange {
  const void* begin = nullptr;
  std::size_t bytes = 0;
};

/// A mistake that is no op's: where sizes are open, it comes of C++ that reads them.
class MistakeOfCpp : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

namespace detail::inline rooms {

class Trace : public Context {
 public:
  /// The value of a predicate in this run. A constant one needs no guard.
  struct Decision {
    bool taken = false, is_constant = false;
  };
  using Decide = std::function<Decision(const Trace& trace, const Tensor& predicate)>;

  /// A trace that runs once, in which C++ branches on symbols are errors.
  explicit Trace(std::span<const Spec> arguments, ClosureRange closure = {});
  /// A first or another run of the trace of `memory`.
  Trace(std::shared_ptr<TraceMemory> memory, ClosureRange closure, Decide decide);
  Tensor read(VariableCell& cell) override;
  void assign(VariableCell& cell, const Tensor& value) override;
  /// Readers get `same` from now on, another node for the cell's value; no assignment.
  void hold(VariableCell& cell, const Tensor& same) { cell_of(cell).now = same; }
  bool decide(const Tensor& predicate) override;
  Ref<Node>* place_of(const AnyOp& op, In inputs) override {
    count_application();
    return &memory_->place_of(op, inputs);
  }
  void count_application() override {
    if (++applications_ > most_applications_) [[unlikely]]
      fail_endless();
  }
  Tensor literal(const Tensor& made) override { return memory_->literal(made); }

  /// Past this many applications of ops the C++ is assumed to count with a size that it sees as a negative number:
  /// InvalidArgument. A run with open sizes without other bounds gets most_of_open_sizes.
  static constexpr std::size_t most_of_open_sizes = std::size_t{1} << 17;
  void set_limit(std::size_t applications) { most_applications_ = applications; }
  std::size_t applications() const { return applications_; }
  /// A choice of the library by sizes.
  struct Choice {
    bool taken;
    bool is_of_sizes;  // they alone make it: a run that knows them does not repeat another
    bool operator==(const Choice&) const = default;
  };
  using Choices = std::vector<Choice>;
  /// Choices are those of another run, as far as it had any.
  void repeat_choices(Choices choices, bool knows_sizes) {
    given_choices_ = std::move(choices);
    knows_sizes_ = knows_sizes;
  }
  bool choose(bool suggested, bool is_of_sizes) override;
  const Choices& choices() const { return choices_; }
  /// True if the sizes themselves make the same choices.
  static bool are_alike(const Choices& a, const Choices& b);

  /// A fresh id for the memory of a trace.
  static std::uint32_t new_id() { return Context::new_id(); }

  /// `dimension` must not be negative in any call of the trace; else `otherwise` is the message.
  struct Bound {
    std::int64_t dimension;
    std::string otherwise;
  };
  void require_not_negative(std::int64_t dimension, const std::string& otherwise) override;
  /// The first that does not hold for these sizes; null: all hold.
  static const Bound* broken(std::span<const Bound> bounds, std::span<const std::int64_t> symbols);
  const std::vector<Bound>& bounds() const { return bounds_; }

  /// A predicate that was asked for, in the order of asking.
  struct Guard {
    Tensor predicate;
    bool taken;
    std::size_t bounds;  // their number then
  };
  const std::vector<Guard>& guards() const { return guards_; }

  /// A key for the next random op of this call: another one in every call of the compiled function.
  Tensor next_key() override;
  /// A model that lies inside the closure is a copy: assigning one of its cells is a user's mistake.
  void note_use(const void* object, const Variables& cells);

  /// Notes a state: this trace, and those around it, hold only as long as it is unchanged.
  template <class State> void watch(const State& state) {
    for (Trace* trace = this; trace; trace = trace->scope_.before()) trace->watched_.add(state);
  }
  /// True if it has looked at the fields of this object.
  bool has_looked_into(const Setup& object) const { return watched_.has_fields_of(object); }
  /// For a strategy that cuts a step in two, as one with parameter servers: the tensors from which optimizers make
  /// their updates. Each gets a node of its own there.
  struct Given {
    Tensor made, as_seen;
  };
  void keep_given() { keeps_given_ = true; }
  Tensor given(const Tensor& x);
  const std::vector<Given>& all_given() const { return given_; }

  /// As watch(), of a flag, unless it was set in this trace: then it is no state of before.
  void watch_flag(std::shared_ptr<const std::atomic<bool>> flag, const std::string& name);
  void note_set(const std::atomic<bool>& flag);
  /// As the end of the run leaves it.
  WatchedState watched() const { return watched_.at_end(); }

  /// The innermost Trace of this thread, or null.
  static Trace* current() { return CallContext::here().trace; }
  /// The one of this thread with this id, or null.
  static Trace* find(std::uint32_t id);
  /// The C++ runs once more in this trace, with other arguments: it meets the same Variables, as they were, and the
  /// same nodes, where they depend on no argument. Earlier assignments count no more.
  void run_again();

  struct Cell {
    std::shared_ptr<VariableCell> cell;
    int index;
    Tensor parameter;
    Tensor now;
    bool was_abandoned;
    bool assigned = false;
  };
  TraceMemory& memory() const { return *memory_; }
  const Tensors& parameters() const { return memory_->arguments(); }
  const std::vector<std::unique_ptr<Cell>>& cells() const { return cells_; }
  /// True if this run has assigned `cell` so far.
  bool has_assigned(const VariableCell& cell) const;
  /// True if `cell` was made while this run lived.
  bool has_made(const VariableCell& cell) const { return cell.id > last_cell_before_; }
  /// True if anything random was traced in this run.
  bool is_random() const { return ordinals_ > 0; }

 private:
  const HostFloats floats_;  // C++ that is computed now is part of a program: it rounds as everywhere
  Cell& cell_of(VariableCell& cell);
  [[noreturn]] void fail_endless() const;
  std::shared_ptr<TraceMemory> memory_;
  Decide decide_;
  std::vector<Guard> guards_;
  std::vector<std::unique_ptr<Cell>> cells_;
  std::map<const VariableCell*, Cell*> by_cell_;
  std::set<const VariableCell*> copies_;
  std::vector<Bound> bounds_;
  WatchedState watched_;
  std::set<const std::atomic<bool>*> set_here_;
  std::uint64_t ordinals_ = 0;
  std::size_t applications_ = 0, most_applications_ = std::numeric_limits<std::size_t>::max();
  Choices choices_, given_choices_;
  std::vector<Given> given_;
  bool keeps_given_ = false;
  bool knows_sizes_ = true;
  const std::uint64_t last_cell_before_;
  ClosureRange closure_;
  const FieldScope<&CallContext::trace> scope_{this};
  const FieldScope<&CallContext::keys> no_keys_{nullptr};  // of a call around it
};

}  // namespace detail::inline rooms

}  // namespace gradus
