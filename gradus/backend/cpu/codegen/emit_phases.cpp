/// Rows, phases and columns.
#include <algorithm>
#include "gradus/backend/cpu/codegen/loop_emitter.h"
#include "gradus/backend/cpu/codegen/lower_scalar.h"
#include "gradus/base/divide.h"
#include "gradus/scalar/rare_parts.h"

namespace gradus::cpu_backend {
namespace {
constexpr int cheap = 3;  // instructions: computing again is no dearer than storing and loading
}

LoopEmitter::LoopEmitter(llvm::Module& module, const std::string& name, StepContext& context)
    : context_(context), graph_(context.graph), step_(context.step), loops_(context.loops), b_(module.getContext()) {
  begin_kernel(module, name);
}

void LoopEmitter::begin_kernel(llvm::Module& module, const std::string& name) {
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getInt64Ty(), b_.getInt64Ty()}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  auto* entry = llvm::BasicBlock::Create(b_.getContext(), "entry", function_);
  auto* start = llvm::BasicBlock::Create(b_.getContext(), "start", function_);
  b_.SetInsertPoint(entry);
  entry_end_ = row_start_ = b_.CreateBr(start);
  b_.SetInsertPoint(start);
}

void LoopEmitter::begin_row(V row) {
  row_ = row;
  row_positions_.clear();
  row_pointers_.clear();
  row_scalars_.clear();
  output_pointers_.clear();
  row_values_.clear();
  column_values_.clear();
  auto* work = llvm::BasicBlock::Create(b_.getContext(), "row", function_);
  row_start_ = b_.CreateBr(work);
  b_.SetInsertPoint(work);
}

void LoopEmitter::emit_rows() {
  plan_buffers();
  V begin = function_->getArg(1), end = function_->getArg(2);
  if (loops_.column_reduction()) {
    emit_column_blocks();
  } else if (loops_.flat()) {
    row_ = b_.getInt64(0);
    if (is_one_vector()) emit_row(row_, dimension(loops_.columns()));
    else emit_row(begin, end);
  } else if (step_.in_pieces) {
    emit_pieces(begin, end);
  } else if (walks_in_tiles(context_)) {
    emit_tiles(begin, end);
  } else {
    emit_loop(b_, begin, end, 1, {}, [&](V row, const Carried&) {
      begin_row(row);
      emit_row(b_.getInt64(0), dimension(loops_.columns()));
      return Carried{};
    });
  }
  b_.CreateRetVoid();
}

bool walks_in_tiles(const StepContext& context) {
  if (context.loops.phases() > 1 || context.loops.columns() < tile_rows) return false;
  bool across = false;
  for (int member : context.step.members) {
    const Value& v = context.graph[member];
    if (v.op.is_reduction() || context.loops.is_row_value(member)) return false;
    for (const Read& read : reads_of(context.graph, {.members = {member}})) {
      const auto parts = split(walk_of(context.graph, read.operand), context.loops.columns());
      across |= parts && parts->column.step != 0 && parts->column.step != 1;
    }
  }
  return across;
}

void LoopEmitter::emit_tiles(V begin, V end) {
  emit_loop(b_, begin, end, tile_rows, {}, [&](V first, const Carried&) {
    V last = b_.CreateAdd(first, b_.getInt64(tile_rows));
    last = b_.CreateSelect(b_.CreateICmpSLT(last, end), last, end);
    return walk_columns(b_.getInt64(0), dimension(loops_.columns()), {}, [&](const Columns& at, const Carried&) {
      return emit_loop(b_, first, last, 1, {}, [&](V row, const Carried&) {
        begin_row(row);
        return emit_column_body(0, at, {});
      });
    });
  });
}

/// Any elements that follow each other, row after row: parts of the first and of the last one.
void LoopEmitter::emit_pieces(V begin, V end) {
  V columns = dimension(loops_.columns()), zero = b_.getInt64(0);
  V first = b_.CreateSDiv(begin, columns);
  V past = b_.CreateSDiv(b_.CreateAdd(end, b_.CreateSub(columns, b_.getInt64(1))), columns);
  emit_loop(b_, first, past, 1, {}, [&](V row, const Carried&) {
    V start = b_.CreateMul(row, columns);
    V from = b_.CreateSub(begin, start), until = b_.CreateSub(end, start);
    from = b_.CreateSelect(b_.CreateICmpSGT(from, zero), from, zero);
    until = b_.CreateSelect(b_.CreateICmpSLT(until, columns), until, columns);
    begin_row(row);
    emit_row(from, until);
    return Carried{};
  });
}

void LoopEmitter::emit_row(V begin, V end) {
  for (phase_ = 0; phase_ < loops_.phases(); ++phase_) {
    emit_row_values(phase_);
    emit_columns(phase_, begin, end);
  }
  store_row_outputs();
}

/// Values per row that are computed from the reductions of earlier phases.
void LoopEmitter::emit_row_values(int phase) {
  for (int member : step_.members)
    if (loops_.phase(member) == phase && loops_.is_row_value(member) && !is_row_reduced(member))
      row_values_[member] = formula(member, nullptr);
}

void LoopEmitter::store_row_outputs() {
  for (int member : step_.outputs)
    if (loops_.is_row_value(member)) store_row(member);
}

// ---------------------------------------------------------------- columns

bool LoopEmitter::is_one_vector() const {
  return !step_.in_pieces && loops_.columns() >= 0 && loops_.columns() <= lanes;
}

bool LoopEmitter::is_stored_column(int member) const {
  return loops_.is_output(member) && !loops_.is_row_value(member) && !is_column_reduction(graph_[member]);
}

std::vector<int> LoopEmitter::members_of(int phase, bool (LoopEmitter::*belongs)(int) const) const {
  std::vector<int> found;
  for (int member : step_.members)
    if (loops_.phase(member) == phase && (this->*belongs)(member)) found.push_back(member);
  return found;
}

void LoopEmitter::emit_columns(int phase, V begin, V end) {
  const std::vector<int> reductions = members_of(phase, &LoopEmitter::is_row_reduced);
  const bool walks = !reductions.empty() || !members_of(phase, &LoopEmitter::is_stored_column).empty() ||
                     !members_of(phase, &LoopEmitter::is_buffered).empty() ||
                     !members_of(phase, &LoopEmitter::is_column_reduced).empty();
  if (!walks) return;
  if (loops_.columns() < 0 && loops_.column_reduction() && !reductions.empty())
    return reduce_in_blocks(phase, reductions, end);
  const auto body = [&](const Columns& at, const Carried& sums) { return emit_column_body(phase, at, sums); };
  if (reductions.empty()) {
    walk_columns(begin, end, {}, body);
    return;
  }
  const Carried results = reduce_row(reductions, begin, end, body, are_whole_vectors(), chains(phase, reductions));
  for (std::size_t k = 0; k < reductions.size(); ++k)
    row_values_[reductions[k]] = in_blocks_ ? results[k] : rounded(reductions[k], results[k]);
}

/// True if no part of the columns ends within a vector: they are divided at multiples of lanes.
bool LoopEmitter::are_whole_vectors() const {
  return loops_.columns() >= 0 && loops_.columns() % lanes == 0 && !step_.in_pieces;
}

/// A part of the columns.
Carried LoopEmitter::walk_columns(V begin, V end, const Carried& initial, const ColumnBody& body) {
  return walk_vectors(begin, end, initial, body, are_whole_vectors());
}

/// Whole vectors, then the rest behind a mask. `is_whole`: there is none.
Carried LoopEmitter::walk_vectors(V begin, V end, const Carried& initial, const ColumnBody& body, bool is_whole) {
  const auto* known_begin = llvm::dyn_cast<llvm::ConstantInt>(begin);
  const auto* known_end = llvm::dyn_cast<llvm::ConstantInt>(end);
  const auto loop = [&](V until) {
    return emit_loop(b_, begin, until, lanes, initial,
                     [&](V i, const Carried& carried) { return body({i, end, nullptr}, carried); });
  };
  const auto rest = [&](V at, const Carried& carried) {
    return body({at, end, lanes_below(b_, b_.CreateSub(end, at))}, carried);
  };
  if (known_begin && known_end) {
    const std::int64_t first = known_begin->getSExtValue(), n = known_end->getSExtValue() - first;
    const std::int64_t whole = n / lanes * lanes;
    V middle = b_.getInt64(static_cast<std::uint64_t>(first + whole));
    const Carried carried = whole == 0 ? initial : whole == lanes ? body({begin, end, nullptr}, initial) : loop(middle);
    return whole == n ? carried : rest(middle, carried);
  }
  if (is_whole) return loop(end);
  V whole = b_.CreateAnd(b_.CreateSub(end, begin), b_.getInt64(~static_cast<std::uint64_t>(lanes - 1)));
  V middle = b_.CreateAdd(begin, whole);
  const Carried carried = loop(middle);
  return emit_if(b_, b_.CreateICmpSLT(middle, end), carried, [&] { return rest(middle, carried); });
}

/// All loads of an iteration come before its stores: an output may lie in the memory of an input.
Carried LoopEmitter::emit_column_body(int phase, const Columns& at, const Carried& sums) {
  if (!is_one_vector()) column_values_.clear();
  Carried next;
  for (int r : members_of(phase, &LoopEmitter::is_row_reduced)) {
    const Value& v = graph_[r];
    V x = value(v.in[0], &at);
    if (at.mask) x = b_.CreateSelect(at.mask, x, identity(v.op, v.spec.dtype, lanes));
    next.push_back(combine(v.op, v.spec.dtype, sums[next.size()], x));
  }
  const std::vector<int> stored = members_of(phase, &LoopEmitter::is_stored_column);
  for (int member : stored) member_value(member, &at);
  for (int member : members_of(phase, &LoopEmitter::is_column_reduced)) accumulate_columns(member, at);
  for (int member : members_of(phase, &LoopEmitter::is_buffered))
    store(b_, graph_[member].spec.dtype, member_value(member, &at), buffer_address(member, at.first));
  for (int member : stored) {
    const DType t = graph_[member].spec.dtype;
    store(b_, t, column_values_.at(member), element_address(b_, t, output_row_pointer(member), at.first), at.mask);
  }
  return next;
}

// ---------------------------------------------------------------- values

/// The operand's value in the current row, and in these columns unless `at` is null.
V LoopEmitter::value(int operand, const Columns* at) {
  const int source = loops_.register_source(operand);
  return source >= 0 ? member_value(source, at) : read(operand, at);
}

V LoopEmitter::member_value(int member, const Columns* at) {
  if (loops_.is_row_value(member)) return splat(b_, row_values_.at(member), at ? lanes : 1);
  if (const auto it = column_values_.find(member); it != column_values_.end()) return it->second;
  const DType t = graph_[member].spec.dtype;
  V v = is_buffered(member) && loops_.phase(member) < phase_ ? load(b_, t, buffer_address(member, at->first), lanes)
                                                             : formula(member, at);
  return column_values_[member] = v;
}

V LoopEmitter::formula(int member, const Columns* at) {
  const Value& v = graph_[member];
  if (!v.op.is_elementwise()) return read(member, at);
  std::vector<V> inputs;
  std::vector<DType> types;
  for (int operand : v.in) {
    inputs.push_back(value(operand, at));
    types.push_back(graph_[operand].spec.dtype);
  }
  return lower(b_, v.op.formula(types), inputs, at ? lanes : 1, [&](std::int64_t d) { return dimension(d); });
}

// ---------------------------------------------------------------- values kept for later phases

/// Instructions that computing `member` again takes; counting ends once that is not cheap.
int LoopEmitter::cost(int member) const {
  const Value& v = graph_[member];
  if (!v.op.is_elementwise() || loops_.is_row_value(member)) return 0;
  std::vector<DType> types;
  for (int operand : v.in) types.push_back(graph_[operand].spec.dtype);
  int sum = static_cast<int>(scalar::usual_instructions(v.op.formula(types)) - std::ssize(v.in));
  for (int operand : v.in)
    if (const int source = loops_.register_source(operand); source >= 0 && sum <= cheap) sum += cost(source);
  return sum;
}

void LoopEmitter::plan_buffers() {
  if (loops_.phases() == 1 || is_one_vector()) return;
  std::set<std::pair<int, int>> seen;
  for (int member : step_.members)
    if (is_row_reduced(member) || is_column_reduced(member) || is_stored_column(member))
      keep_for(member, loops_.phase(member), seen);
}

/// `member` is wanted in `phase`: marks the values that have to be kept so that it can be computed there.
void LoopEmitter::keep_for(int member, int phase, std::set<std::pair<int, int>>& seen) {
  if (!seen.insert({member, phase}).second) return;
  const bool reduction = graph_[member].op.is_reduction();
  if (!reduction && loops_.phase(member) < phase && cost(member) > cheap) {
    if (is_buffered(member)) return;
    buffers_[member] = worker_scratch_;
    const std::int64_t row = dimension::add(loops_.columns(), lanes);
    const std::int64_t bytes = dimension::multiply(row, size_of(graph_[member].spec.dtype));
    // Symbolic sizes cannot be rounded up: buffers behind them may begin anywhere, and are read unaligned.
    worker_scratch_ = dimension::add(worker_scratch_, bytes < 0 ? bytes : round_up(bytes, 64));
    return;
  }
  for (int operand : graph_[member].in)
    if (const int source = loops_.register_source(operand); source >= 0 && !loops_.is_row_value(source))
      keep_for(source, phase, seen);
}

V LoopEmitter::buffer_address(int member, V column) {
  V base = b_.CreateGEP(b_.getInt8Ty(), argument(2), dimension(buffers_.at(member)));
  return element_address(b_, graph_[member].spec.dtype, base, column);
}

}  // namespace gradus::cpu_backend
