/// Loop nests: the loop structure of a step, derived from the step alone. It says which members are values per row or
/// per element, in which phase they are computed, and how operands are walked through. Fusion asks whether there is
/// one; code generation follows it.
#pragma once
#include <optional>
#include <vector>
#include "gradus/compiler/steps.h"

namespace gradus {

/// A reduction of one row is cut into blocks of this many elements, a reduction of columns into this many rows. Part of
/// the numeric contract.
inline constexpr std::int64_t row_block = 32768;
inline constexpr std::int64_t column_block = 32;

/// One dimension of a walk: `extent` steps of `step` elements, towards lower addresses if `backwards`.
struct Stride {
  std::int64_t extent = 1, step = 0;
  bool backwards = false;
  bool operator==(const Stride&) const = default;
};

/// How a reader of an operand, element after element in row-major order, moves through the memory of `source`.
struct Walk {
  int source = -1;
  std::int64_t offset = 0;
  std::vector<Stride> strides;  // outermost first; neighbours that one stride passes through are one; no extent is 1
  int table = -1;               // if not: how far along the first stride, which may have extent 1, is looked up there
  bool is_uniform() const;      // stays at one element
  bool is_dense() const;        // element i of the operand is element i of the source
};
Walk walk_of(const Graph& graph, int operand);

/// A walk over rows of `columns` elements.
struct SplitWalk {
  std::vector<Stride> rows;
  Stride column;  // extent: columns
};
/// True if an innermost stride of `extent` elements passes through each row of `columns` as a whole.
bool are_rows_of(std::int64_t extent, std::int64_t columns);
/// Nothing unless every row is walked in one stride.
std::optional<SplitWalk> split(const Walk& walk, std::int64_t columns);

bool is_row_reduction(const Value& v);
bool is_column_reduction(const Value& v);

/// A reduced operand seen as [outer, n, inner].
struct Reduced {
  std::int64_t outer = 1, n = 1, inner = 1;
  bool operator==(const Reduced&) const = default;
};
Reduced reduced_view(const Graph& graph, int reduction);

/// True if a view reads one value per row, in loops of rows x columns: element (r, c) is element r of the source.
bool spreads_rows(const Walk& walk, std::int64_t rows, std::int64_t columns);

class Loops {
 public:
  Loops(const Graph& graph, const Step& step);

  bool flat() const { return flat_; }                     // one row, which may be divided anywhere
  bool scalar() const { return flat_ && columns_ == 1; }  // one element: every member is a value per row
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  /// Rows that are so long that several workers share one, or may be: each phase is a thunk of its own.
  bool may_be_blocked() const { return !flat_ && !reduced_ && (columns_ < 0 || columns_ > row_block); }
  int phases() const { return phases_; }
  const std::optional<Reduced>& column_reduction() const { return reduced_; }

  bool is_inside(int value) const;
  /// True for a value per row: row reductions, and values computed from them before these are spread over the columns.
  bool is_row_value(int member) const;
  int phase(int member) const { return phase_[position(member)]; }
  bool is_output(int member) const;
  /// The member whose register `operand` reads, directly, through an alias, or spread over its row; -1: none.
  int register_source(int operand) const;

 private:
  std::size_t position(int member) const;
  const Graph& graph_;
  const Step& step_;
  bool flat_ = false;
  std::int64_t rows_ = 1, columns_ = 1, elements_ = 1;
  int phases_ = 1;
  std::vector<int> phase_;
  std::optional<Reduced> reduced_;
};

}  // namespace gradus
