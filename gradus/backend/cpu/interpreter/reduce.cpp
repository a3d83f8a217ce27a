/// Reductions along rows and along columns, element by element in the order that the numeric contract fixes.
#include "gradus/backend/cpu/interpreter/reduce.h"
#include <algorithm>
#include <cstring>
#include "gradus/backend/cpu/interpreter/lower.h"
#include "gradus/base/divide.h"

namespace gradus::interpreter {
namespace {

constexpr std::int64_t lanes = 16, longest_run = 512, longest_row = 32768, rows_together = 32;
/// For columns: this many rows are divided where the result has too few elements to divide these.
constexpr std::int64_t many_rows = 256, few_columns = 4096;
constexpr int levels = 13;  // 32^13 > 2^63
constexpr std::int64_t level_bytes = block * 8;

/// Seen as [outer, length, inner]. Where few elements come of many, the blocks of the order are divided among workers:
/// their results, [outer, blocks, inner], are reduced afterwards.
struct Reduction {
  Source source;
  Combination combination;
  int target, partials;    // slots
  std::int64_t length;     // of the reduced axis
  std::int64_t inner = 1;  // elements behind the axis
  std::int64_t outer = 1;
  std::int64_t blocks = 0;  // of the axis; 0: they are not divided
  // For narrow floats: to the type that accumulates, and back.
  scalar::Loop widen = nullptr, round = nullptr;

  std::int64_t scratch_bytes() const { return source.scratch_bytes() + (widen ? block * 4 : 0); }
  /// As Source::read, in the type that accumulates.
  const void* read(void* const* slots, std::int64_t begin, std::int64_t count, std::byte* scratch) const {
    const void* elements = source.read(slots, begin, count, scratch);
    if (!widen) return elements;
    std::byte* wide = scratch + source.scratch_bytes();
    widen(wide, elements, nullptr, nullptr, count);
    return wide;
  }
  void write(std::byte* target, std::int64_t element, const void* results, std::int64_t count) const {
    const std::int64_t size = size_of(source.dtype());
    if (round) round(target + element * size, results, nullptr, nullptr, count);
    else std::memcpy(target + element * size, results, static_cast<std::size_t>(count * size));
  }
};

/// One row, fed from left to right. Rows of more than 32768 elements are rows of the results of their blocks. Within a
/// block the sums of runs of 512 elements are added up.
class RowSum {
 public:
  RowSum(const Combination& combination, void* scratch) : combination_(combination), scratch_(scratch) {}
  void add(const void* x, std::int64_t count) {
    const auto* from = static_cast<const std::byte*>(x);
    while (count > 0) {
      Level& level = levels_[0];
      begin_runs(level);
      const std::int64_t lane = level.count % lanes;
      const std::int64_t stretch = std::min(count, lanes - lane);
      combination_.into(level.sums + lane * combination_.size, from, stretch, scratch_);
      level.count += stretch;
      count -= stretch;
      from += stretch * combination_.size;
      if (level.count == longest_row && (count > 0 || pending_)) carry(0);
    }
  }
  /// More elements follow after those of the add() that comes next.
  void expect_more(bool more) { pending_ = more; }
  const void* finish() {
    if (levels_[0].count == 0) begin_runs(levels_[0]);  // an empty row
    int level = 0;
    for (; level + 1 < row_levels && is_below_another(level); ++level)
      if (levels_[level].count > 0) carry(level);
    fold(levels_[level]);
    return levels_[level].sums;
  }

 private:
  static constexpr int row_levels = 5;  // 32768^5 > 2^63
  struct Level {
    alignas(64) std::byte sums[lanes * 8], totals[lanes * 8];  // of this run, and of all runs before it
    std::int64_t count = 0;
  };

  bool is_below_another(int level) const {
    return std::any_of(levels_ + level + 1, levels_ + row_levels, [](const Level& l) { return l.count > 0; });
  }
  /// Begins a row or a run if the next element is its first one.
  void begin_runs(Level& level) {
    if (level.count % longest_run != 0) return;
    if (level.count == 0) combination_.reset(level.totals, lanes);
    else combination_.into(level.totals, level.sums, lanes, scratch_);
    combination_.reset(level.sums, lanes);
  }
  /// The last run, then the halving tree; the result is in lane 0 of the sums. Lanes that a short tail left alone meet
  /// the identity first.
  void fold(Level& level) {
    if (const std::int64_t rest = level.count % lanes; rest != 0 || level.count == 0) {
      alignas(64) std::byte nothing[lanes * 8];
      combination_.reset(nothing, lanes);
      combination_.into(level.sums + rest * combination_.size, nothing, lanes - rest, scratch_);
    }
    if (level.count > longest_run) {
      combination_.into(level.totals, level.sums, lanes, scratch_);
      std::memcpy(level.sums, level.totals, sizeof level.sums);
    }
    for (std::int64_t half = lanes / 2; half > 0; half /= 2)
      combination_.into(level.sums, level.sums + half * combination_.size, half, scratch_);
  }
  /// The result of a block becomes an element of the row above; full rows above make room first.
  void carry(int from) {
    int level = from;
    while (level + 2 < row_levels && levels_[level + 1].count == longest_row) ++level;
    for (; level >= from; --level) carry(levels_[level], levels_[level + 1]);
  }
  void carry(Level& level, Level& next) {
    begin_runs(next);
    fold(level);
    combination_.into(next.sums + next.count % lanes * combination_.size, level.sums, 1, scratch_);
    ++next.count;
    level.count = 0;
  }

  const Combination& combination_;
  void* scratch_;
  bool pending_ = false;
  Level levels_[row_levels];
};

/// `count` columns side by side, fed row by row. A block is closed when the next row comes.
class ColumnSum {
 public:
  ColumnSum(const Combination& combination, std::int64_t columns, void* sums, void* scratch)
      : combination_(combination), columns_(columns), sums_(static_cast<std::byte*>(sums)), scratch_(scratch) {
    combination_.reset(sums_, columns_);
  }
  void add(const void* row) { add(0, row); }
  const void* finish() {
    for (int level = 0; level < top_; ++level)
      if (counts_[level] > 0) add(level + 1, sum(level));
    return sum(top_);
  }

 private:
  std::byte* sum(int level) const { return sums_ + level * level_bytes; }
  void add(int level, const void* row) {
    if (counts_[level] == rows_together) {
      if (level == top_) combination_.reset(sum(++top_), columns_);
      add(level + 1, sum(level));
      combination_.reset(sum(level), columns_);
      counts_[level] = 0;
    }
    combination_.into(sum(level), row, columns_, scratch_);
    ++counts_[level];
  }

  const Combination& combination_;
  std::int64_t columns_;
  std::byte* sums_;
  void* scratch_;
  int counts_[levels] = {}, top_ = 0;
};

std::shared_ptr<Reduction> reduction_of(const Graph& graph, int value, int partials, Symbols symbols) {
  const Value& v = graph[value];
  const Shape in = graph[v.in[0]].spec.shape.evaluated(symbols);
  const int axis = in.normalized(v.op.axis());
  auto work = std::make_shared<Reduction>(
      Reduction{Source(graph, v.in[0], symbols), Combination(v, symbols), value, partials, in[axis]});
  for (int i = 0; i < axis; ++i) work->outer *= in[i];
  for (int i = axis + 1; i < in.rank(); ++i) work->inner *= in[i];
  if (axis + 1 == in.rank()) {
    if (work->length > longest_row) work->blocks = divide_up(work->length, longest_row);
  } else if (work->length >= many_rows && work->outer * work->inner < few_columns) {
    work->blocks = divide_up(work->length, rows_together);
  }
  if (const DType t = v.spec.dtype; is_narrow(t)) {
    work->widen = scalar::loop_of(scalar::Opcode::convert, t, computed_in(t));
    work->round = scalar::loop_of(scalar::Opcode::convert, computed_in(t), t);
  }
  return work;
}

/// `elements`: that it reduces.
BoundThunk bound(std::shared_ptr<Reduction> work, std::int64_t extent, std::int64_t grain, std::int64_t elements) {
  BoundThunk bound{.extent = extent, .grain = grain};
  bound.bytes = (elements + work->outer * work->inner) * size_of(work->source.dtype());
  bound.flops = elements * 4;
  bound.worker_scratch = work->scratch_bytes() + work->combination.formula.scratch_bytes() + levels * level_bytes;
  bound.shared_scratch = work->outer * work->blocks * work->inner * work->combination.size;
  bound.data = std::move(work);
  return bound;
}

/// One worker's own memory.
struct Scratch {
  Scratch(const KernelArguments* arguments, const Reduction& work)
      : sums(static_cast<std::byte*>(arguments->scratch)),
        elements(sums + levels * level_bytes),
        formula(elements + work.scratch_bytes()) {}
  std::byte *sums, *elements, *formula;
};

/// Elements [begin, begin + length) as a row.
void reduce_row(RowSum& sum, const Reduction& work, void* const* slots, std::int64_t begin, std::int64_t length,
                std::byte* scratch) {
  for (std::int64_t at = 0; at < length; at += block) {
    const std::int64_t count = std::min(block, length - at);
    sum.expect_more(at + count < length);
    sum.add(work.read(slots, begin + at, count, scratch), count);
  }
}

/// `count` columns of the rows [first, last) from `element` on.
const void* reduce_columns(const Reduction& work, void* const* slots, std::int64_t element, std::int64_t first,
                           std::int64_t last, std::int64_t count, const Scratch& scratch) {
  ColumnSum sum(work.combination, count, scratch.sums, scratch.formula);
  for (std::int64_t row = first; row < last; ++row)
    sum.add(work.read(slots, element + row * work.inner, count, scratch.elements));
  return sum.finish();
}

/// Calls visit(outer, column, count) for elements [begin, end) of [outer, inner], a block of one line at a time.
template <class Visit> void for_each_line(std::int64_t begin, std::int64_t end, std::int64_t inner, Visit visit) {
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t outer = at / inner, column = at % inner;
    const std::int64_t count = std::min({block, end - at, inner - column});
    visit(outer, column, count);
    at += count;
  }
}

}  // namespace

Combination::Combination(const Value& reduction, std::span<const std::int64_t> symbols)
    : formula(reduction.op.combination(reduction.spec.dtype), symbols),
      size(size_of(computed_in(reduction.spec.dtype))),
      identity(reduction.op->identity(reduction.spec.dtype).bits_as(computed_in(reduction.spec.dtype))) {}

void Combination::into(void* acc, const void* x, std::int64_t count, void* scratch) const {
  const void* inputs[] = {acc, x};
  formula.run(inputs, acc, count, scratch);
}

void Combination::reset(void* acc, std::int64_t count) const {
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(static_cast<std::byte*>(acc) + i * size, &identity, static_cast<std::size_t>(size));
}

BoundThunk bind_row_reduction(const Graph& graph, int value, int partials, Symbols symbols) {
  auto work = reduction_of(graph, value, partials, symbols);
  const std::int64_t rows = work->outer, elements = rows * work->length;
  const std::int64_t items = rows * std::max<std::int64_t>(1, work->blocks);
  return bound(std::move(work), items, 1, elements);
}

void run_row_reduction(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& work = *static_cast<const Reduction*>(arguments->data);
  const Scratch scratch(arguments, work);
  auto* target = static_cast<std::byte*>(arguments->slots[work.blocks > 0 ? work.partials : work.target]);
  for (std::int64_t item = begin; item < end; ++item) {
    RowSum sum(work.combination, scratch.formula);
    if (work.blocks == 0) {
      reduce_row(sum, work, arguments->slots, item * work.length, work.length, scratch.elements);
      work.write(target, item, sum.finish(), 1);
    } else {
      const std::int64_t row = item / work.blocks, first = item % work.blocks * longest_row;
      reduce_row(sum, work, arguments->slots, row * work.length + first, std::min(longest_row, work.length - first),
                 scratch.elements);
      std::memcpy(target + item * work.combination.size, sum.finish(), static_cast<std::size_t>(work.combination.size));
    }
  }
}

BoundThunk bind_row_combination(const Graph& graph, int value, int partials, Symbols symbols) {
  auto work = reduction_of(graph, value, partials, symbols);
  const std::int64_t rows = work->blocks > 0 ? work->outer : 0, elements = rows * work->blocks;
  return bound(std::move(work), rows, 1, elements);
}

void run_row_combination(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& work = *static_cast<const Reduction*>(arguments->data);
  const auto* partials = static_cast<const std::byte*>(arguments->slots[work.partials]);
  auto* target = static_cast<std::byte*>(arguments->slots[work.target]);
  for (std::int64_t row = begin; row < end; ++row) {
    RowSum sum(work.combination, Scratch(arguments, work).formula);
    sum.add(partials + row * work.blocks * work.combination.size, work.blocks);
    work.write(target, row, sum.finish(), 1);
  }
}

BoundThunk bind_column_reduction(const Graph& graph, int value, int partials, Symbols symbols) {
  auto work = reduction_of(graph, value, partials, symbols);
  const std::int64_t columns = work->outer * work->inner, elements = columns * work->length;
  if (work->blocks == 0) return bound(std::move(work), columns, 64, elements);
  const std::int64_t items = work->outer * work->blocks;
  return bound(std::move(work), items, 1, elements);
}

void run_column_reduction(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& work = *static_cast<const Reduction*>(arguments->data);
  const Scratch scratch(arguments, work);
  if (work.blocks == 0) {
    auto* target = static_cast<std::byte*>(arguments->slots[work.target]);
    for_each_line(begin, end, work.inner, [&](std::int64_t outer, std::int64_t column, std::int64_t count) {
      const void* sums = reduce_columns(work, arguments->slots, outer * work.length * work.inner + column, 0,
                                        work.length, count, scratch);
      work.write(target, outer * work.inner + column, sums, count);
    });
    return;
  }
  auto* target = static_cast<std::byte*>(arguments->slots[work.partials]);
  const std::int64_t inner = work.inner, size = work.combination.size;
  for_each_line(begin * inner, end * inner, inner, [&](std::int64_t item, std::int64_t column, std::int64_t count) {
    const std::int64_t outer = item / work.blocks, first = item % work.blocks * rows_together;
    const void* sums = reduce_columns(work, arguments->slots, outer * work.length * inner + column, first,
                                      std::min(first + rows_together, work.length), count, scratch);
    std::memcpy(target + (item * inner + column) * size, sums, static_cast<std::size_t>(count * size));
  });
}

BoundThunk bind_column_combination(const Graph& graph, int value, int partials, Symbols symbols) {
  auto work = reduction_of(graph, value, partials, symbols);
  const std::int64_t columns = work->blocks > 0 ? work->outer * work->inner : 0, elements = columns * work->blocks;
  return bound(std::move(work), columns, 64, elements);
}

void run_column_combination(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& work = *static_cast<const Reduction*>(arguments->data);
  const Scratch scratch(arguments, work);
  const auto* partials = static_cast<const std::byte*>(arguments->slots[work.partials]);
  auto* target = static_cast<std::byte*>(arguments->slots[work.target]);
  for_each_line(begin, end, work.inner, [&](std::int64_t outer, std::int64_t column, std::int64_t count) {
    ColumnSum sum(work.combination, count, scratch.sums, scratch.formula);
    for (std::int64_t k = 0; k < work.blocks; ++k)
      sum.add(partials + ((outer * work.blocks + k) * work.inner + column) * work.combination.size);
    work.write(target, outer * work.inner + column, sum.finish(), count);
  });
}

}  // namespace gradus::interpreter
