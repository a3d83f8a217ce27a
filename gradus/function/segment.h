/// Segment: a piece of a variant between two guards, one compiled program. A guarded variant is a tree of segments. A
/// segment that ends in a guard computes the predicate, and hands on values that later segments need. A leaf computes
/// results and assignments, so nothing is committed before the path of a call is known.
#pragma once
#include <array>
#include <atomic>
#include "gradus/base/rooms.h"
#include "gradus/function/recording.h"
#include "gradus/function/tiered_program.h"
#include "gradus/function/trace.h"
#include "gradus/function/traced_function.h"

namespace gradus {

/// A Variable that a program reads or assigns. Not kept alive: one that dies is noticed.
struct UsedCell {
  VariableCell* cell = nullptr;
  int index = 0;  // in the memory of the trace
  std::weak_ptr<VariableCell> alive;
  bool was_abandoned = false;  // when it was traced: something else kept it alive already
  std::string name = {};
  std::uint64_t mask_id = 0;  // when it was traced

  bool is_gone() const {
    return alive.expired() || (!was_abandoned && cell->abandoned.load(std::memory_order_relaxed));
  }
  /// True if the trace no longer holds.
  bool has_changed() const { return is_gone() || cell->mask_id.load(std::memory_order_relaxed) != mask_id; }
};

struct Segment {
  std::unique_ptr<TieredProgram> program;
  std::vector<Source> sources;  // of the program's inputs
  std::vector<Tensor> captures;
  std::vector<std::pair<std::uint64_t, std::string>> large_captures;  // numbers of their nodes, and their messages
  std::vector<UsedCell> cells;
  std::vector<Trace::Bound> bounds;                // of sizes that vary: they hold before it runs
  mutable std::atomic<bool> was_compared = false;  // its Variables, with other ranks
  SizesSeen fitting;  // values of the symbols at which the C++ is this program; of others it is to be found out

  // For a segment that ends in a guard.
  Tensor predicate;               // output 0; empty: a leaf
  std::vector<Ref<Node>> yields;  // outputs 1, 2, ...
  struct Way {
    std::unique_ptr<Segment> owned;
    std::atomic<Segment*> segment{nullptr};  // null: that way has not been traced
  };
  std::array<Way, 2> ways;

  // For a leaf.
  struct Result {
    int output = -1;  // -1: empty
    Spec spec;        // may be symbolic
  };
  std::vector<Result> results;
  struct Assignment {
    std::size_t cell;  // in cells
    std::size_t output;
  };
  std::vector<Assignment> assignments;  // by the id of the cell, so that locks are taken in one order
  /// CompileOptions::replaces, for a program of `graph_outputs` outputs.
  std::vector<int> replaces(std::size_t graph_outputs) const;
  std::shared_ptr<const void> structure;  // of the user's result

  bool is_leaf() const { return !predicate.defined(); }
  const UsedCell* find_changed() const;
  /// Tells listeners of the Variables that it reads.
  void tell_of_reading() const;
};

/// Visits a tree, parents first, `false` before `true`.
void for_each_segment(const Segment& root, const std::function<void(const Segment&)>& visit);

/// The path of a call whose program is the right one for its sizes: it goes these ways.
void note_fitting(Segment& root, const std::vector<bool>& ways, const std::vector<std::int64_t>& symbols);

/// A segment that a call has run, and the way it took.
struct PathStep {
  Segment* segment;
  bool taken;
};

/// The values that a segment which ends in a guard leaves to later ones, beside its predicate. Under a byte budget
/// there are none: they would be alive until the call ends, whatever the plans of the segments say.
enum class HandOn { what_is_needed, nothing };

/// The segments that the run `trace` needs beyond those of `known`, the way to where it leaves them; each holds the
/// next one as the way that was taken. `called`: the run's results. Not compiled yet.
class Draft {
 public:
  Draft(const Trace& trace, Called called, std::span<const PathStep> known, HandOn hand_on);
  /// InvalidArgument if a Variable of the trace has died, as those of a model do that was made or copied within it.
  void check_cells() const;
  /// InvalidArgument if a Variable of the trace is a copy that was made within it.
  void check_copies() const;
  std::unique_ptr<Segment> compile(const CompileOptions& options) &&;
  /// The one segment, without its program, and the graph of that. InvalidArgument if the C++ branches on values.
  std::pair<std::unique_ptr<Segment>, Graph> take_leaf(const std::string& title, std::string_view what) &&;

 private:
  struct Part {
    std::unique_ptr<Segment> segment;
    Graph graph;
    bool taken = false;
  };
  struct Used {
    std::shared_ptr<VariableCell> cell;
    bool was_abandoned, made_within;
  };
  std::vector<Part> parts_;
  std::vector<Used> cells_;
};

}  // namespace gradus
