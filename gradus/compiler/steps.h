/// Steps: the result of fusing a graph. A step becomes one or a few thunks, with a barrier between those that depend on
/// each other.
#pragma once
#include <optional>
#include <string>
#include <vector>
#include "gradus/graph/per_value.h"

namespace gradus {

/// One unit of execution.
struct Step {
  enum class Kind {
    loops,    // formulas, row and column reductions, and views, indexes or constants that have to stand in memory
    library,  // one call of a kernel of the backend
    control,  // a branch or a loop: its results, which are siblings
    product,  // a matrix product, and formulas of it that run over each piece of it as soon as that is complete
  };
  Kind kind = Kind::loops;
  Shape space;               // the iterations of loops: all but the last dimension are rows
  std::vector<int> members;  // values, ascending
  std::vector<int> outputs;  // members that others read from memory, or that the graph yields; ascending
  int product = -1;          // of kind product: the member that is one; it is no output
  bool in_pieces = false;    // of loops over elements: any range of them may be run

  /// The part that loops compute, as a step of loops; without members if there is none.
  Step loops() const;
  /// True if loops compute `member`, which is one of the members: they read views in place.
  bool is_in_loops(int member) const { return kind == Kind::loops || (kind == Kind::product && member != product); }
  /// The member that one call of a kernel of the backend computes; -1: there is none.
  int called() const { return kind == Kind::library ? members.front() : product; }
};

Step::Kind kind_of(const Value& v);

/// True for the same bytes under another shape. A barrier is no such alias: passes must not look behind it.
inline bool is_plain_alias(const Value& v) { return v.op.is_alias() && v.in.size() == 1; }

/// Every value that is computed as a step of its own; values not needed in memory are no step.
std::vector<Step> single_steps(const Graph& graph);

/// The value in whose memory `value` lies: itself unless it is an alias.
int storage_of(const Graph& graph, int value);

/// True if a view reads by a table: instead of row r of its source, which its strides would give, it reads row
/// table[r], for a table of indices that is its second operand and stands in memory. Rows are those of the source's
/// first axis.
inline bool is_by_table(const Value& v) { return v.op.is_view() && v.in.size() == 2; }
/// How many elements such a row has.
std::int64_t row_elements(const Shape& source);

/// The value whose storage a loop reads when it reads `operand`. A view is read in place, so that is the value that it
/// views. A view of a view (or of an alias of one) reads the inner view from memory.
int source_of(const Graph& graph, int operand);

/// Constants and index formulas, which loops compute instead of reading.
bool is_computed_where_read(const Graph& graph, int storage);

/// A value that a step reads from memory.
struct Read {
  int operand;  // as it stands in the graph: a value, an alias or a view
  int storage;  // in whose memory it lies
  bool is_table = false;
};
std::vector<Read> reads_of(const Graph& graph, const Step& step);
/// The value that is as large as the read: all of a storage, or some of its rows.
inline int extent_of(const Graph& graph, const Read& read) {
  return is_by_table(graph[read.operand]) ? read.operand : read.storage;
}

/// The number of elements if each open size is 256, and their bytes. A dimension that becomes negative counts as 0.
std::int64_t usual_elements(const Shape& shape);
std::int64_t usual_bytes(const Spec& spec);

/// Values that have to be complete before `operand` may be read, or before `step` runs, although they are not read:
/// barriers on the way wait for them. Constants and index formulas always are complete.
std::vector<int> waits_of(const Graph& graph, int operand);
std::vector<int> waits_of(const Graph& graph, const Step& step);

/// The dependencies between steps.
struct Dependencies {
  Dependencies(const Graph& graph, const std::vector<Step>& steps);

  PerValue<int> maker;                 // the step that computes it; -1: none
  PerValue<std::vector<int>> readers;  // of a storage: steps, ascending
  PerValue<bool> is_awaited;           // a step waits for this storage without reading it
  Numbered<int> depth;                 // per step: how many there are in the longest chain before it
};

/// True if `step` (of loops) reads each element of `input` before it writes the same element of `output` and not after,
/// so that both may lie in the same memory. Their specs agree.
bool may_write_over(const Graph& graph, const Step& step, int output, int input);

}  // namespace gradus
