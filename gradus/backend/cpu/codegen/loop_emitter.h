/// Emits the kernels of one step of loops. A kernel is a loop over rows, and within a row a sequence of phases: a phase
/// computes the values per row as scalars, then walks the columns as vectors; the results of its reductions are values
/// per row of the next phase. A value that a later phase needs is computed again if that is cheap, else kept in the
/// worker's scratch. Without rows, the whole space is one row that may be divided anywhere.
///
///   emit_access.cpp      where operands lie, and how they are read
///   emit_phases.cpp      rows, phases, columns
///   emit_reductions.cpp  reductions of rows and of columns
#pragma once
#include <llvm/IR/Module.h>
#include <map>
#include <set>
#include <span>
#include "gradus/backend/cpu/codegen/kernel_ir.h"
#include "gradus/backend/cpu/codegen/partials.h"
#include "gradus/backend/cpu/run/program.h"
#include "gradus/compiler/loops.h"

namespace gradus::cpu_backend {

/// The context that all kernels of one step share.
struct StepContext {
  const Graph& graph;
  const Step& step;
  const Loops& loops;
  int shared_slot = -1;
  std::vector<int> slots = {};  // that the kernels touch; the thunk's data say which they are
  std::vector<Partials> partials = {};
  std::vector<std::int64_t> dimensions =
      {};  // symbolic ones that the kernels ask for: the data go on with their places
};

/// Into how many parts the columns of a column reduction are divided among workers.
std::int64_t column_chunks(const StepContext& context);

/// True if rows are walked in tiles of `tile_rows`, since some operand is walked across its rows, as a transpose is:
/// then cache lines fetched for a row serve its neighbours.
inline constexpr std::int64_t tile_rows = 16;
bool walks_in_tiles(const StepContext& context);

class LoopEmitter {
 public:
  LoopEmitter(llvm::Module& module, const std::string& name, StepContext& context);

  /// Over elements, rows, or blocks of rows for column reductions.
  void emit_rows();
  /// Combines the partial results of column reductions.
  void emit_column_combination();
  /// One phase over the blocks of rows that workers share.
  void emit_blocks(int phase);
  /// Values per row of such rows.
  void emit_row_outputs();

  /// Bytes of scratch that each worker needs; a dimension.
  std::int64_t worker_scratch() const { return worker_scratch_; }

 private:
  /// Sixteen elements of a row.
  struct Columns {
    V first;           // the column of lane 0
    V end;             // no element at or past it is touched
    V mask = nullptr;  // of the lanes before `end`; null: all
  };

  // emit_access.cpp
  V argument(int field);
  V dimension(std::int64_t d);
  V from_data(std::size_t place);
  V slot(int index);
  V read(int operand, const Columns* at);
  V read_memory(const Walk& walk, DType t, int operand, const Columns* at);
  V read_index(const Walk& walk, int operand, const Columns* at);
  V gather_columns(DType t, V row_pointer, const Stride& stride, const Columns& at);
  V row_position(int operand, const Walk& walk, bool columns);
  V row_pointer(int operand, const Walk& walk, DType t, bool columns);
  V position_in(const Walk& walk, const std::vector<Stride>& rows);
  V looked_up(int table, V place);
  void ask_for_rows_ahead(const Walk& walk, DType t, V base);
  void store_row(int member);
  V output_row_pointer(int member);
  const Walk& walk(int operand);

  // emit_phases.cpp
  void begin_kernel(llvm::Module& module, const std::string& name);
  void begin_row(V row);
  void emit_row(V begin, V end);
  void emit_tiles(V begin, V end);
  void emit_pieces(V begin, V end);
  void emit_row_values(int phase);
  void emit_columns(int phase, V begin, V end);
  using ColumnBody = std::function<Carried(const Columns&, const Carried&)>;
  bool are_whole_vectors() const;
  Carried walk_columns(V begin, V end, const Carried& initial, const ColumnBody& body);
  Carried walk_vectors(V begin, V end, const Carried& initial, const ColumnBody& body, bool is_whole);
  Carried emit_column_body(int phase, const Columns& at, const Carried& accumulators);
  void store_row_outputs();
  V value(int operand, const Columns* at);
  V member_value(int member, const Columns* at);
  V formula(int member, const Columns* at);
  void plan_buffers();
  void keep_for(int member, int phase, std::set<std::pair<int, int>>& seen);
  int cost(int member) const;
  V buffer_address(int member, V column);
  bool is_one_vector() const;
  std::vector<int> members_of(int phase, bool (LoopEmitter::*belongs)(int) const) const;
  bool is_row_reduced(int member) const { return is_row_reduction(graph_[member]); }
  /// False if it is never read: it has no memory.
  bool is_column_reduced(int member) const { return is_column_reduction(graph_[member]) && loops_.is_output(member); }
  bool is_stored_column(int member) const;
  bool is_buffered(int member) const { return buffers_.count(member) != 0; }

  // emit_reductions.cpp
  V identity(const AnyOp& op, DType t, int n);
  V combine(const AnyOp& op, DType t, V accumulated, V x);
  V combine_lanes(const AnyOp& op, DType t, V vector);
  V rounded(int reduction, V result);
  Carried identities(const std::vector<int>& reductions);
  Carried added(const std::vector<int>& reductions, const Carried& totals, std::span<const V> sums);
  Carried combined_lanes(const std::vector<int>& reductions, const Carried& vectors);
  Carried reduce_row(const std::vector<int>& reductions, V begin, V end, const ColumnBody& body, bool is_whole,
                     int chains);
  Carried reduce_runs(const std::vector<int>& reductions, V begin, V end, const ColumnBody& body, bool is_whole,
                      const Carried& totals);
  Carried reduce_runs_together(const std::vector<int>& reductions, V begin, V end, const ColumnBody& body, int chains);
  int chains(int phase, const std::vector<int>& reductions) const;
  Carried join_blocks(const std::vector<int>& reductions, V begin, V end, std::int64_t size,
                      const std::function<Carried(V first, V last)>& block);
  void reduce_in_blocks(int phase, const std::vector<int>& reductions, V end);
  V reduce_partials(int reduction);
  void emit_column_blocks();
  void emit_column_block(V outer, V block, V begin, V end);
  bool keeps_sums() const;
  void emit_column_strips(V first, V last, V begin, V end);
  void emit_column_strip(V first, V last, const Columns& at, int vectors);
  std::vector<int> column_reductions() const;
  void accumulate_columns(int reduction, const Columns& at);
  V blocks_of(std::int64_t length, std::int64_t block);
  V column_blocks() { return blocks_of(loops_.column_reduction()->n, column_block); }
  V row_blocks() { return blocks_of(loops_.columns(), row_block); }
  V bytes_of(const Partials& partials);
  V partial_pointer(int reduction);
  V combine_partials(int reduction, V outer, const Columns& at, int level, V begin, V end);
  void combine_columns_of(V outer, V begin, V end);

  /// Inserts the result of `make` before `anchor`.
  template <class Make> V before(llvm::Instruction* anchor, Make make) {
    Builder::InsertPointGuard guard(b_);
    b_.SetInsertPoint(anchor);
    return make();
  }

  StepContext& context_;
  const Graph& graph_;
  const Step& step_;
  const Loops& loops_;
  llvm::Function* function_ = nullptr;
  Builder b_;
  llvm::Instruction* entry_end_ = nullptr;  // values of the whole call are made before it
  llvm::Instruction* row_start_ = nullptr;  // values of the current row are made before it
  V row_ = nullptr;
  int phase_ = 0;
  bool in_blocks_ = false;  // the reduction covers a part of a row
  std::map<int, V> arguments_, slots_, uniforms_, row_values_, column_values_;
  std::map<std::int64_t, V> dimensions_;
  std::map<std::pair<int, bool>, V> row_positions_, row_pointers_, row_scalars_;
  std::map<int, V> output_pointers_;
  std::map<int, std::int64_t> buffers_;  // per buffered member: its offset in the worker's scratch
  std::map<int, Walk> walks_;
  std::int64_t worker_scratch_ = 0;
  std::map<std::int64_t, V> blocks_;  // by length
  std::map<int, V> partial_pointers_;
  // For column reductions.
  V first_of_block_ = nullptr;            // true if this row begins a block
  std::map<int, V> partial_rows_;         // where this row's partial results lie
  std::map<int, V> column_accumulators_;  // where they stay in registers: the block's result so far
};

}  // namespace gradus::cpu_backend
