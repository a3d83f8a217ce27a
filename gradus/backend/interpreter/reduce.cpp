/// Reductions along rows and along columns, element by element in the order that the numeric contract fixes.
#include "gradus/backend/interpreter/reduce.h"
#include <algorithm>
#include <cstring>
#include "gradus/backend/interpreter/lower.h"

namespace gradus::interpreter {
namespace {

constexpr std::int64_t block = reference::Interpreter::block;
constexpr std::int64_t lanes = 16, longest_row = 32768, rows_together = 32;
constexpr int levels = 13;  // 32^13 > 2^63
constexpr std::int64_t level_bytes = block * 8;

struct Reduction {
  Source source;
  Combination combination;
  int target;
  std::int64_t length;     // of the reduced axis
  std::int64_t inner = 1;  // elements behind the axis
  // Of narrow floats: to the type that accumulates, and back.
  reference::Loop widen = nullptr, round = nullptr;

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

/// One row, fed from left to right. Rows of more than 32768 elements are rows of the results of their blocks.
class RowSum {
 public:
  RowSum(const Combination& combination, void* scratch) : combination_(combination), scratch_(scratch) {}
  void add(const void* x, std::int64_t count) {
    const auto* from = static_cast<const std::byte*>(x);
    while (count > 0) {
      Level& level = levels_[0];
      if (level.count == 0) combination_.reset(level.sums, lanes);
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
    if (levels_[0].count == 0) combination_.reset(levels_[0].sums, lanes);  // an empty row
    int level = 0;
    for (; level + 1 < row_levels && is_below_another(level); ++level)
      if (levels_[level].count > 0) carry(level);
    fold(levels_[level]);
    return levels_[level].sums;
  }

 private:
  static constexpr int row_levels = 5;  // 32768^5 > 2^63
  struct Level {
    alignas(64) std::byte sums[lanes * 8];
    std::int64_t count = 0;
  };

  bool is_below_another(int level) const {
    return std::any_of(levels_ + level + 1, levels_ + row_levels, [](const Level& l) { return l.count > 0; });
  }
  /// The halving tree; the result is in lane 0. Lanes that a short tail left alone meet the identity first.
  void fold(Level& level) {
    if (const std::int64_t rest = level.count % lanes; rest != 0 || level.count == 0) {
      alignas(64) std::byte nothing[lanes * 8];
      combination_.reset(nothing, lanes);
      combination_.into(level.sums + rest * combination_.size, nothing, lanes - rest, scratch_);
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
    if (next.count == 0) combination_.reset(next.sums, lanes);
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

BoundThunk bind(const Graph& graph, int value, std::span<const std::int64_t> symbols) {
  const Value& v = graph[value];
  const Shape in = graph[v.in[0]].spec.shape.evaluated(symbols), out = v.spec.shape.evaluated(symbols);
  const int axis = v.op.axis();
  auto work = std::make_shared<Reduction>(
      Reduction{Source(graph, v.in[0], symbols), Combination(v, symbols), value, in[axis], 1});
  for (int i = in.normalized(axis) + 1; i < in.rank(); ++i) work->inner *= in[i];
  if (const DType t = v.spec.dtype; is_narrow(t)) {
    work->widen = reference::loop_of(scalar::Opcode::convert, t, computed_in(t));
    work->round = reference::loop_of(scalar::Opcode::convert, computed_in(t), t);
  }
  BoundThunk bound{.extent = out.size()};
  bound.bytes = (in.size() + out.size()) * size_of(v.spec.dtype);
  bound.flops = in.size() * 4;
  bound.worker_scratch = work->scratch_bytes() + work->combination.formula.scratch_bytes();
  bound.data = std::move(work);
  return bound;
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

BoundThunk bind_row_reduction(const Graph& graph, int value, std::span<const std::int64_t> symbols) {
  return bind(graph, value, symbols);
}

void run_row_reduction(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& work = *static_cast<const Reduction*>(arguments->data);
  auto* scratch = static_cast<std::byte*>(arguments->scratch);
  auto* target = static_cast<std::byte*>(arguments->slots[work.target]);
  for (std::int64_t row = begin; row < end; ++row) {
    RowSum sum(work.combination, scratch + work.scratch_bytes());
    for (std::int64_t at = 0; at < work.length; at += block) {
      const std::int64_t count = std::min(block, work.length - at);
      sum.expect_more(at + count < work.length);
      sum.add(work.read(arguments->slots, row * work.length + at, count, scratch), count);
    }
    work.write(target, row, sum.finish(), 1);
  }
}

BoundThunk bind_column_reduction(const Graph& graph, int value, std::span<const std::int64_t> symbols) {
  BoundThunk bound = bind(graph, value, symbols);
  bound.grain = 64;
  bound.worker_scratch += levels * level_bytes;
  return bound;
}

void run_column_reduction(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& work = *static_cast<const Reduction*>(arguments->data);
  auto* sums = static_cast<std::byte*>(arguments->scratch);
  std::byte *scratch = sums + levels * level_bytes, *formula_scratch = scratch + work.scratch_bytes();
  auto* target = static_cast<std::byte*>(arguments->slots[work.target]);
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t outer = at / work.inner, column = at % work.inner;
    const std::int64_t count = std::min({block, end - at, work.inner - column});
    ColumnSum sum(work.combination, count, sums, formula_scratch);
    for (std::int64_t row = 0; row < work.length; ++row)
      sum.add(work.read(arguments->slots, (outer * work.length + row) * work.inner + column, count, scratch));
    work.write(target, at, sum.finish(), count);
    at += count;
  }
}

}  // namespace gradus::interpreter
