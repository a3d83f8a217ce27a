/// Reductions: the lanes of a row and their tree, blocks of long rows, blocks of rows for columns. The order of every
/// combination is the numeric contract's. Partial results are of the type in which the reduction computes; the result
/// is rounded to its type once, at the end.
#include <algorithm>
#include "gradus/backend/cpu/codegen/loop_emitter.h"
#include "gradus/backend/cpu/codegen/lower_scalar.h"
#include "gradus/base/divide.h"

namespace gradus::cpu_backend {
namespace {

constexpr std::int64_t column_chunk = 2048;  // columns of one worker's part of a column reduction
// For column reductions: vectors of sums that stay in registers, and vectors of columns that are walked at once.
constexpr std::int64_t most_sums = 8, most_vectors = 4;
constexpr std::size_t large_step = 24;  // members, past which rows are walked one by one

}  // namespace

V LoopEmitter::identity(const AnyOp& op, DType t, int n) {
  return constant(b_, computed_in(t), op->identity(t).bits_as(computed_in(t)), n);
}

V LoopEmitter::rounded(int reduction, V result) {
  const DType t = graph_[reduction].spec.dtype;
  return is_narrow(t) ? rounded_to(b_, t, result) : result;
}

V LoopEmitter::combine(const AnyOp& op, DType t, V accumulated, V x) {
  const V inputs[] = {accumulated, x};
  int n = 1;
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType()))
    n = static_cast<int>(vector->getNumElements());
  return lower(b_, op.combination(t), inputs, n, [&](std::int64_t d) { return dimension(d); });
}

/// Lane i with lane i + 8, then with i + 4, i + 2, i + 1.
V LoopEmitter::combine_lanes(const AnyOp& op, DType t, V vector) {
  for (int n = lanes / 2; n >= 1; n /= 2) {
    std::vector<int> low, high;
    for (int i = 0; i < n; ++i) {
      low.push_back(i);
      high.push_back(i + n);
    }
    V a = n > 1 ? b_.CreateShuffleVector(vector, low) : b_.CreateExtractElement(vector, std::uint64_t{0});
    V x = n > 1 ? b_.CreateShuffleVector(vector, high) : b_.CreateExtractElement(vector, std::uint64_t{1});
    vector = combine(op, t, a, x);
  }
  return vector;
}

Carried LoopEmitter::identities(const std::vector<int>& reductions) {
  Carried initial;
  for (int r : reductions) initial.push_back(identity(graph_[r].op, graph_[r].spec.dtype, lanes));
  return initial;
}

// ---------------------------------------------------------------- rows

/// Combines each of `totals` with its element of `sums`.
Carried LoopEmitter::added(const std::vector<int>& reductions, const Carried& totals, std::span<const V> sums) {
  Carried all;
  for (std::size_t k = 0; k < reductions.size(); ++k) {
    const Value& v = graph_[reductions[k]];
    all.push_back(combine(v.op, v.spec.dtype, totals[k], sums[k]));
  }
  return all;
}

Carried LoopEmitter::combined_lanes(const std::vector<int>& reductions, const Carried& vectors) {
  Carried scalars;
  for (std::size_t k = 0; k < reductions.size(); ++k) {
    const Value& v = graph_[reductions[k]];
    scalars.push_back(combine_lanes(v.op, v.spec.dtype, vectors[k]));
  }
  return scalars;
}

/// Reduces columns [begin, end) of a row, or of one of its blocks, to a scalar for each reduction. `body` adds sixteen
/// columns to the carried values. `is_whole`: no partial vector remains at the end. `chains`: the number of runs that
/// advance together.
Carried LoopEmitter::reduce_row(const std::vector<int>& reductions, V begin, V end, const ColumnBody& body,
                                bool is_whole, int chains) {
  const auto *first = llvm::dyn_cast<llvm::ConstantInt>(begin), *last = llvm::dyn_cast<llvm::ConstantInt>(end);
  const std::int64_t known = first && last ? last->getSExtValue() - first->getSExtValue() : -1;
  Carried totals = identities(reductions);
  if (known >= 0 && known <= row_run)  // one run is the row itself
    return combined_lanes(reductions, walk_vectors(begin, end, totals, body, is_whole));
  while (known >= 0 && chains * row_run > known) chains /= 2;
  if (chains > 1) {
    V together = b_.getInt64(static_cast<std::uint64_t>(chains * row_run));
    V until = b_.CreateAdd(begin, b_.CreateMul(b_.CreateUDiv(b_.CreateSub(end, begin), together), together));
    totals = reduce_runs_together(reductions, begin, until, body, chains);
    begin = until;
  }
  if (known < 0 || chains <= 1 || known % (chains * row_run) != 0)
    totals = reduce_runs(reductions, begin, end, body, is_whole, totals);
  return combined_lanes(reductions, totals);
}

/// Reduces runs of columns in order, the last one short. Each begins with the identity.
Carried LoopEmitter::reduce_runs(const std::vector<int>& reductions, V begin, V end, const ColumnBody& body,
                                 bool is_whole, const Carried& totals) {
  return emit_loop(b_, begin, end, row_run, totals, [&](V first, const Carried& before) {
    V last = b_.CreateAdd(first, b_.getInt64(row_run));
    last = b_.CreateSelect(b_.CreateICmpSLT(last, end), last, end);
    return added(reductions, before, walk_vectors(first, last, identities(reductions), body, is_whole));
  });
}

/// Reduces `chains` whole runs at a time: their chains of additions are independent, so that none waits for another.
Carried LoopEmitter::reduce_runs_together(const std::vector<int>& reductions, V begin, V end, const ColumnBody& body,
                                          int chains) {
  const std::size_t count = reductions.size();
  Carried nothing;
  for (int chain = 0; chain < chains; ++chain) nothing.append(identities(reductions));
  return emit_loop(b_, begin, end, chains * row_run, identities(reductions), [&](V first, const Carried& before) {
    V last = b_.CreateAdd(first, b_.getInt64(row_run));
    const Carried sums = emit_loop(b_, first, last, lanes, nothing, [&](V i, const Carried& carried) {
      Carried next;
      for (std::size_t chain = 0; chain * count < carried.size(); ++chain) {
        V at = b_.CreateAdd(i, b_.getInt64(chain * row_run));
        const auto* own = carried.begin() + chain * count;
        next.append(body({at, end, nullptr}, Carried(own, own + count)));
      }
      return next;
    });
    Carried totals = before;
    for (std::size_t at = 0; at < sums.size(); at += count)
      totals = added(reductions, totals, std::span(sums.data() + at, count));
    return totals;
  });
}

/// The number of runs that advance together. Several advance if an element costs little more than its addition, whose
/// latency would otherwise be the time of a row (4,096 floats: 0.6 of the time). Blocks of longer rows come from
/// farther away in memory, where four places at a time are prefetched worse than two. Sums stay in registers.
int LoopEmitter::chains(int phase, const std::vector<int>& reductions) const {
  for (const auto writes : {&LoopEmitter::is_stored_column, &LoopEmitter::is_buffered, &LoopEmitter::is_column_reduced})
    if (!members_of(phase, writes).empty()) return 1;
  int work = 0;
  std::int64_t registers = 0;  // each of sixteen floats
  for (int r : reductions) {
    const int source = loops_.register_source(graph_[r].in[0]);
    work += 1 + (source >= 0 ? cost(source) : 0);
    registers += std::max<std::int64_t>(1, size_of(computed_in(graph_[r].spec.dtype)) / 4);
  }
  const std::int64_t most = work <= 3 ? (in_blocks_ ? 2 : 4) : work <= 6 && !in_blocks_ ? 2 : 1;
  return static_cast<int>(std::max<std::int64_t>(1, most / registers));
}

/// Cuts [begin, end) into blocks of `size` columns, and reduces their results as a row: block k joins lane k mod 16 of
/// run k / 512. A single block is the result itself. `block(first, last)` gives a block's results, a scalar for each
/// reduction.
Carried LoopEmitter::join_blocks(const std::vector<int>& reductions, V begin, V end, std::int64_t size,
                                 const std::function<Carried(V first, V last)>& block) {
  const std::size_t count = reductions.size();
  const Carried nothing = identities(reductions);
  Carried initial = nothing;  // this run, all runs before it, the last block
  initial.append(nothing);
  initial.append(combined_lanes(reductions, nothing));
  V extent = b_.getInt64(static_cast<std::uint64_t>(size));
  const Carried results = emit_loop(b_, begin, end, size, initial, [&](V first, const Carried& before) {
    V last = b_.CreateAdd(first, extent);
    last = b_.CreateSelect(b_.CreateICmpSLT(last, end), last, end);
    const Carried own = block(first, last);
    V number = b_.CreateUDiv(b_.CreateSub(first, begin), extent);
    V lane = b_.CreateAnd(number, b_.getInt64(lanes - 1));
    V begins_run = b_.CreateICmpEQ(b_.CreateURem(number, b_.getInt64(row_run)), b_.getInt64(0));
    Carried next(before);
    for (std::size_t k = 0; k < count; ++k) {
      const Value& v = graph_[reductions[k]];
      V total = combine(v.op, v.spec.dtype, before[count + k], before[k]);
      V run = b_.CreateSelect(begins_run, nothing[k], before[k]);
      V joined = combine(v.op, v.spec.dtype, b_.CreateExtractElement(run, lane), own[k]);
      next[k] = b_.CreateInsertElement(run, joined, lane);
      next[count + k] = b_.CreateSelect(begins_run, total, before[count + k]);
      next[2 * count + k] = own[k];
    }
    return next;
  });
  V is_one_block = b_.CreateICmpSLE(b_.CreateSub(end, begin), extent);
  const Carried totals(results.begin() + count, results.begin() + 2 * count);
  Carried joined = combined_lanes(reductions, added(reductions, totals, std::span(results.data(), count)));
  for (std::size_t k = 0; k < count; ++k) joined[k] = b_.CreateSelect(is_one_block, results[2 * count + k], joined[k]);
  return joined;
}

/// Rows beside column reductions, of a length that is known only at run time and may be more than a block, and more
/// than a block of blocks.
void LoopEmitter::reduce_in_blocks(int phase, const std::vector<int>& reductions, V end) {
  const auto block = [&](V first, V last) {
    const auto body = [&](const Columns& at, const Carried& sums) { return emit_column_body(phase, at, sums); };
    return reduce_row(reductions, first, last, body, are_whole_vectors(), 1);
  };
  const auto blocks = [&](V first, V last) { return join_blocks(reductions, first, last, row_block, block); };
  const Carried results = join_blocks(reductions, b_.getInt64(0), end, row_block * row_block, blocks);
  for (std::size_t k = 0; k < reductions.size(); ++k) row_values_[reductions[k]] = rounded(reductions[k], results[k]);
}

/// The results of the blocks of the current row, reduced as a row: in blocks, too, if they are that many.
V LoopEmitter::reduce_partials(int reduction) {
  const Value& v = graph_[reduction];
  const DType t = computed_in(v.spec.dtype);
  V count = row_blocks();
  V row = element_address(b_, t, partial_pointer(reduction), b_.CreateMul(row_, count));
  V nothing = identity(v.op, t, lanes);
  const auto add = [&](const Columns& at, const Carried& so_far) {
    V x = load(b_, t, element_address(b_, t, row, at.first), lanes, at.mask);
    if (at.mask) x = b_.CreateSelect(at.mask, x, nothing);
    return Carried{combine(v.op, t, so_far[0], x)};
  };
  const auto block = [&](V first, V last) { return reduce_row({reduction}, first, last, add, false, 1); };
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(count);
  V begin = b_.getInt64(0);
  V sum = (known && known->getSExtValue() <= row_block ? block(begin, count)
                                                       : join_blocks({reduction}, begin, count, row_block, block))[0];
  if (loops_.columns() < 0)  // one block is the row itself
    sum = b_.CreateSelect(b_.CreateICmpEQ(count, b_.getInt64(1)), load(b_, t, row, 1), sum);
  return rounded(reduction, sum);
}

void LoopEmitter::emit_blocks(int phase) {
  in_blocks_ = true;
  V count = row_blocks();
  emit_loop(b_, function_->getArg(1), function_->getArg(2), 1, {}, [&](V item, const Carried&) {
    V row = b_.CreateUDiv(item, count);
    V block = b_.CreateSub(item, b_.CreateMul(row, count));
    begin_row(row);
    for (phase_ = 0; phase_ <= phase; ++phase_) {
      emit_row_values(phase_);
      if (phase_ < phase)
        for (int r : members_of(phase_, &LoopEmitter::is_row_reduced)) row_values_[r] = reduce_partials(r);
    }
    phase_ = phase;
    V begin = b_.CreateMul(block, b_.getInt64(row_block)), end = b_.CreateAdd(begin, b_.getInt64(row_block));
    V columns = dimension(loops_.columns());
    end = b_.CreateSelect(b_.CreateICmpSLT(end, columns), end, columns);
    emit_columns(phase, begin, end);
    for (int r : members_of(phase, &LoopEmitter::is_row_reduced)) {
      const DType t = computed_in(graph_[r].spec.dtype);
      store(b_, t, row_values_.at(r), element_address(b_, t, partial_pointer(r), item));
    }
    return Carried{};
  });
  b_.CreateRetVoid();
}

void LoopEmitter::emit_row_outputs() {
  emit_loop(b_, function_->getArg(1), function_->getArg(2), 1, {}, [&](V row, const Carried&) {
    begin_row(row);
    for (phase_ = 0; phase_ < loops_.phases(); ++phase_) {
      emit_row_values(phase_);
      for (int r : members_of(phase_, &LoopEmitter::is_row_reduced)) row_values_[r] = reduce_partials(r);
    }
    store_row_outputs();
    return Carried{};
  });
  b_.CreateRetVoid();
}

// ---------------------------------------------------------------- columns

/// ceil(length / block)
V LoopEmitter::blocks_of(std::int64_t length, std::int64_t block) {
  if (length >= 0) return dimension(divide_up(length, block));
  V& known = blocks_[length];
  if (!known) {
    V n = dimension(length);
    known = before(entry_end_, [&] {
      const auto size = static_cast<std::uint64_t>(block);
      return b_.CreateUDiv(b_.CreateAdd(n, b_.getInt64(size - 1)), b_.getInt64(size));
    });
  }
  return known;
}

/// As the function of that name counts them.
V LoopEmitter::bytes_of(const Partials& p) {
  V blocks = blocks_of(p.length, p.block), lines = dimension(p.lines), width = dimension(p.width);
  return before(entry_end_, [&] {
    V own = b_.CreateMul(b_.CreateMul(lines, blocks), b_.CreateMul(width, dimension(p.size)));
    V whole = b_.CreateAnd(b_.CreateAdd(own, b_.getInt64(63)), b_.getInt64(~std::uint64_t{63}));
    return b_.CreateAdd(whole, b_.getInt64(partial_padding));
  });
}

/// Where partial results lie: [outer, blocks, inner], or [rows, blocks] of rows that workers share.
V LoopEmitter::partial_pointer(int reduction) {
  const auto own = std::ranges::find(context_.partials, reduction, &Partials::reduction);
  if (own == context_.partials.end()) return slot(reduction);
  V& known = partial_pointers_[reduction];
  if (known) return known;
  V pointer = slot(context_.shared_slot);
  for (auto p = context_.partials.begin(); p != own; ++p) {
    V bytes = bytes_of(*p);
    pointer = before(entry_end_, [&] { return b_.CreateGEP(b_.getInt8Ty(), pointer, bytes); });
  }
  return known = pointer;
}

std::int64_t column_chunks(const StepContext& context) {
  const Loops& loops = context.loops;
  if (loops.phases() > 1) return 1;
  for (int member : context.step.members)
    if (loops.is_row_value(member)) return 1;  // would be computed once a chunk
  return std::max<std::int64_t>(1, loops.columns() / column_chunk);
}

void LoopEmitter::emit_column_blocks() {
  const Reduced& view = *loops_.column_reduction();
  V zero = b_.getInt64(0), columns = dimension(loops_.columns());
  V begin = function_->getArg(1), end = function_->getArg(2);
  emit_loop(b_, begin, end, 1, {}, [&](V item, const Carried&) {
    V of_block = item, first = zero, last = columns;
    if (const std::int64_t count = column_chunks(context_); count > 1) {
      V chunks = dimension(count);
      of_block = b_.CreateUDiv(item, chunks);
      V chunk = b_.CreateSub(item, b_.CreateMul(of_block, chunks)), next = b_.CreateAdd(chunk, b_.getInt64(1));
      first = b_.CreateMul(chunk, b_.getInt64(column_chunk));
      last = b_.CreateMul(next, b_.getInt64(column_chunk));
      last = b_.CreateSelect(b_.CreateICmpSLT(next, chunks), last, columns);  // the last chunk takes the rest
    }
    V outer = view.outer == 1 ? zero : b_.CreateUDiv(of_block, column_blocks());
    emit_column_block(outer, b_.CreateSub(of_block, b_.CreateMul(outer, column_blocks())), first, last);
    return Carried{};
  });
}

void LoopEmitter::emit_column_block(V outer, V block, V begin, V end) {
  const Reduced& view = *loops_.column_reduction();
  V n = dimension(view.n), columns = dimension(loops_.columns());
  V rows_inside = dimension(loops_.columns() == 0 ? 0 : *dimension::divide(view.inner, loops_.columns()));
  V first = b_.CreateMul(block, b_.getInt64(column_block)), last = b_.CreateAdd(first, b_.getInt64(column_block));
  last = b_.CreateSelect(b_.CreateICmpSLT(last, n), last, n);
  V partial_block = b_.CreateMul(b_.CreateAdd(b_.CreateMul(outer, column_blocks()), block), rows_inside);
  V first_row = b_.CreateMul(outer, n);
  const auto point_at = [&](V inside) {
    for (int r : column_reductions()) {
      V element = b_.CreateMul(b_.CreateAdd(partial_block, inside), columns);
      partial_rows_[r] = element_address(b_, computed_in(graph_[r].spec.dtype), partial_pointer(r), element);
    }
  };
  if (keeps_sums() && view.inner == loops_.columns()) {
    point_at(b_.getInt64(0));
    emit_column_strips(b_.CreateAdd(first_row, first), b_.CreateAdd(first_row, last), begin, end);
    return;
  }
  emit_loop(b_, first, last, 1, {}, [&](V i, const Carried&) {
    return emit_loop(b_, b_.getInt64(0), rows_inside, 1, {}, [&](V inside, const Carried&) {
      begin_row(b_.CreateAdd(b_.CreateMul(b_.CreateAdd(first_row, i), rows_inside), inside));
      first_of_block_ = b_.CreateICmpEQ(i, first);
      point_at(inside);
      emit_row(begin, end);
      return Carried{};
    });
  });
}

/// True if all rows of a block are walked for a few vectors of columns before the next ones, so that their sums stay in
/// registers: nothing is computed per row then, or a row is one vector. In large steps that would be one vector at a
/// time, a line of each row: they are walked row by row, as hardware fetches ahead; their sums are little of the work.
bool LoopEmitter::keeps_sums() const {
  if (is_one_vector()) return true;
  return loops_.phases() == 1 && step_.members.size() <= large_step &&
         std::ranges::none_of(step_.members, [&](int member) { return loops_.is_row_value(member); });
}

/// Rows [first, last) of one block, columns [begin, end).
void LoopEmitter::emit_column_strips(V first, V last, V begin, V end) {
  if (is_one_vector()) {
    V columns = dimension(loops_.columns());
    return emit_column_strip(first, last, {begin, columns, nullptr}, 1);
  }
  std::int64_t vectors = most_sums / std::max<std::int64_t>(1, std::ssize(column_reductions()));
  for (int r : column_reductions())
    if (size_of(computed_in(graph_[r].spec.dtype)) > 4) vectors = vectors / 2;
  if (loops_.columns() >= 0) vectors = std::min(vectors, loops_.columns() / lanes);
  const std::int64_t wide = std::clamp<std::int64_t>(vectors, 1, most_vectors) * lanes;
  V at = begin;
  if (wide > lanes) {
    const auto size = static_cast<std::uint64_t>(wide);
    V count = b_.CreateUDiv(b_.CreateSub(end, begin), b_.getInt64(size));
    at = b_.CreateAdd(begin, b_.CreateMul(count, b_.getInt64(size)));
    emit_loop(b_, begin, at, wide, {}, [&](V column, const Carried&) {
      emit_column_strip(first, last, {column, end, nullptr}, static_cast<int>(wide / lanes));
      return Carried{};
    });
    if (loops_.columns() >= 0 && loops_.columns() % wide == 0 && column_chunk % wide == 0) return;
  }
  walk_columns(at, end, {}, [&](const Columns& rest, const Carried&) {
    emit_column_strip(first, last, rest, 1);
    return Carried{};
  });
}

/// The sums of `vectors` of columns from `at` on, over rows [first, last).
void LoopEmitter::emit_column_strip(V first, V last, const Columns& at, int vectors) {
  const std::vector<int> reductions = column_reductions();
  const auto columns_of = [&](int vector) {
    return Columns{b_.CreateAdd(at.first, b_.getInt64(static_cast<std::uint64_t>(vector) * lanes)), at.end, at.mask};
  };
  Carried initial;
  for (int vector = 0; vector < vectors; ++vector) initial.append(identities(reductions));
  const Carried sums = emit_loop(b_, first, last, 1, initial, [&](V row, const Carried& carried) {
    begin_row(row);
    Carried next;
    for (int vector = 0; vector < vectors; ++vector) {
      column_values_.clear();
      for (std::size_t k = 0; k < reductions.size(); ++k)
        column_accumulators_[reductions[k]] = carried[static_cast<std::size_t>(vector) * reductions.size() + k];
      if (is_one_vector()) emit_row(at.first, at.end);
      else emit_column_body(0, columns_of(vector), {});
      for (int r : reductions) next.push_back(column_accumulators_.at(r));
    }
    return next;
  });
  column_accumulators_.clear();
  V mask = is_one_vector() && loops_.columns() != lanes ? lanes_below(b_, dimension(loops_.columns())) : at.mask;
  for (int vector = 0; vector < vectors; ++vector)
    for (std::size_t k = 0; k < reductions.size(); ++k) {
      const DType t = computed_in(graph_[reductions[k]].spec.dtype);
      store(b_, t, sums[static_cast<std::size_t>(vector) * reductions.size() + k],
            element_address(b_, t, partial_rows_.at(reductions[k]), columns_of(vector).first), mask);
    }
}

std::vector<int> LoopEmitter::column_reductions() const {
  std::vector<int> found;
  for (int member : step_.members)
    if (is_column_reduced(member)) found.push_back(member);
  return found;
}

void LoopEmitter::accumulate_columns(int reduction, const Columns& at) {
  const Value& v = graph_[reduction];
  const DType t = computed_in(v.spec.dtype);
  V x = value(v.in[0], &at);
  if (const auto it = column_accumulators_.find(reduction); it != column_accumulators_.end()) {
    it->second = combine(v.op, t, it->second, x);
    return;
  }
  V address = element_address(b_, t, partial_rows_.at(reduction), at.first);
  V so_far = load(b_, t, address, lanes, size_of(t) > 4 ? at.mask : nullptr);
  so_far = b_.CreateSelect(first_of_block_, identity(v.op, t, lanes), so_far);
  store(b_, t, combine(v.op, t, so_far, x), address, at.mask);
}

void LoopEmitter::emit_column_combination() {
  const Reduced& view = *loops_.column_reduction();
  V begin = function_->getArg(1), end = function_->getArg(2);
  row_ = b_.getInt64(0);
  if (view.outer == 1) combine_columns_of(b_.getInt64(0), begin, end);
  else
    emit_loop(b_, begin, end, 1, {}, [&](V outer, const Carried&) {
      combine_columns_of(outer, b_.getInt64(0), dimension(view.inner));
      return Carried{};
    });
  b_.CreateRetVoid();
}

void LoopEmitter::combine_columns_of(V outer, V begin, V end) {
  const Reduced& view = *loops_.column_reduction();
  int levels = 1;
  for (std::int64_t reach = column_block; view.n < 0 ? levels < 5 : reach * column_block < view.n;
       reach *= column_block)
    ++levels;
  walk_columns(begin, end, {}, [&](const Columns& at, const Carried&) {
    for (int r : column_reductions()) {
      const DType t = graph_[r].spec.dtype;
      V result = rounded(r, combine_partials(r, outer, at, levels, b_.getInt64(0), column_blocks()));
      V element = b_.CreateAdd(b_.CreateMul(outer, dimension(view.inner)), at.first);
      store(b_, t, result, element_address(b_, t, slot(r), element), at.mask);
    }
    return Carried{};
  });
}

/// Blocks [begin, end) in order; more than 32 of them again in blocks of 32.
V LoopEmitter::combine_partials(int reduction, V outer, const Columns& at, int level, V begin, V end) {
  const Value& v = graph_[reduction];
  const DType t = computed_in(v.spec.dtype);
  std::int64_t reach = 1;  // blocks that one round combines
  for (int i = 1; i < level; ++i) reach *= column_block;
  return emit_loop(b_, begin, end, reach, {identity(v.op, t, lanes)}, [&](V k, const Carried& carried) {
    V x = nullptr;
    if (level == 1) {
      V row = b_.CreateMul(b_.CreateAdd(b_.CreateMul(outer, column_blocks()), k),
                           dimension(loops_.column_reduction()->inner));
      V address = element_address(b_, t, partial_pointer(reduction), b_.CreateAdd(row, at.first));
      x = load(b_, t, address, lanes, size_of(t) > 4 ? at.mask : nullptr);
    } else {
      V last = b_.CreateAdd(k, b_.getInt64(static_cast<std::uint64_t>(reach)));
      last = b_.CreateSelect(b_.CreateICmpSLT(last, end), last, end);
      x = combine_partials(reduction, outer, at, level - 1, k, last);
    }
    return Carried{combine(v.op, t, carried[0], x)};
  })[0];
}

}  // namespace gradus::cpu_backend
