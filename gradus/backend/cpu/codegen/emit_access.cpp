/// Where operands lie, and how they are read: arguments of the kernel, rows of a walk, vectors of columns.
#include <algorithm>
#include "gradus/backend/cpu/codegen/loop_emitter.h"
#include "gradus/backend/cpu/codegen/lower_scalar.h"

namespace gradus::cpu_backend {

/// A field of KernelArguments.
V LoopEmitter::argument(int field) {
  V& known = arguments_[field];
  if (!known)
    known = before(entry_end_, [&] {
      llvm::Type* pointer = b_.getPtrTy();
      return b_.CreateLoad(pointer, b_.CreateConstGEP1_64(pointer, function_->getArg(0), static_cast<unsigned>(field)));
    });
  return known;
}

/// The thunk's data name slots and dimensions of the program, so that steps of one structure share a kernel.
V LoopEmitter::from_data(std::size_t place) {
  return b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_64(b_.getInt64Ty(), argument(3), place));
}

V LoopEmitter::dimension(std::int64_t d) {
  if (d >= 0) return b_.getInt64(static_cast<std::uint64_t>(d));
  V& known = dimensions_[d];
  if (!known)
    known = before(entry_end_, [&] {
      std::vector<std::int64_t>& all = context_.dimensions;
      const auto found = std::ranges::find(all, d);
      const auto place = static_cast<std::size_t>(found - all.begin());
      if (found == all.end()) all.push_back(d);
      V position = from_data(context_.slots.size() + place);
      return b_.CreateLoad(b_.getInt64Ty(), b_.CreateGEP(b_.getInt64Ty(), argument(1), position));
    });
  return known;
}

V LoopEmitter::slot(int index) {
  V& known = slots_[index];
  if (!known)
    known = before(entry_end_, [&] {
      const auto local = std::ranges::find(context_.slots, index) - context_.slots.begin();
      internal_check(local < std::ssize(context_.slots), "a kernel touches memory that its step does not name");
      V number = from_data(static_cast<std::size_t>(local));
      return b_.CreateLoad(b_.getPtrTy(), b_.CreateGEP(b_.getPtrTy(), argument(0), number));
    });
  return known;
}

const Walk& LoopEmitter::walk(int operand) {
  const auto it = walks_.find(operand);
  return it != walks_.end() ? it->second : walks_.emplace(operand, walk_of(graph_, operand)).first->second;
}

V LoopEmitter::looked_up(int table, V place) {
  const DType t = graph_[table].spec.dtype;
  return b_.CreateSExt(load(b_, t, element_address(b_, t, slot(table), place), 1), b_.getInt64Ty());
}

/// The element before which the current row's part of a walk begins, in the strides of it that pass rows.
V LoopEmitter::position_in(const Walk& walk, const std::vector<Stride>& rows) {
  V position = dimension(walk.offset);
  V index = row_;
  for (std::size_t i = rows.size(); i-- > 0;) {
    const Stride& s = rows[i];
    V here = index;
    if (i > 0) {
      V extent = dimension(s.extent);
      index = b_.CreateUDiv(index, extent);
      here = b_.CreateSub(here, b_.CreateMul(index, extent));
    }
    if (i == 0 && walk.table >= 0) here = looked_up(walk.table, here);
    if (s.step == 0) continue;
    V distance = b_.CreateMul(here, dimension(s.step));
    position = s.backwards ? b_.CreateSub(position, distance) : b_.CreateAdd(position, distance);
  }
  return position;
}

V LoopEmitter::row_position(int operand, const Walk& walk, bool columns) {
  V& known = row_positions_[{operand, columns}];
  if (!known)
    known = before(row_start_, [&] {
      if (!columns) return position_in(walk, walk.strides);
      const auto parts = split(walk, loops_.columns());
      internal_check(parts.has_value(), "a row of %", operand, " is not walked in one stride");
      return position_in(walk, parts->rows);
    });
  return known;
}

V LoopEmitter::row_pointer(int operand, const Walk& walk, DType t, bool columns) {
  V& known = row_pointers_[{operand, columns}];
  if (!known) {
    V base = slot(walk.source);
    V position = row_position(operand, walk, columns);
    known = before(row_start_, [&] {
      if (columns && walk.table >= 0 && !loops_.flat()) ask_for_rows_ahead(walk, t, base);
      return element_address(b_, t, base, position);
    });
  }
  return known;
}

/// Rows that a table chooses lie anywhere: the processor does not foresee them. 1.3x on shuffled rows of 784 bytes, by
/// whole rows 1.05x over their first 512 bytes (bench: pipeline).
void LoopEmitter::ask_for_rows_ahead(const Walk& walk, DType t, V base) {
  constexpr std::int64_t rows_ahead = 2, line_bytes = 64, most_bytes = 1024;
  const std::int64_t row = walk.strides[0].step;
  if (row != loops_.columns()) return;  // several rows of the loop read one
  V last = b_.CreateSub(dimension(walk.strides[0].extent), b_.getInt64(1));
  V place = b_.CreateAdd(row_, b_.getInt64(rows_ahead));
  place = b_.CreateSelect(b_.CreateICmpSLT(place, last), place, last);
  V next = element_address(b_, t, base, b_.CreateMul(looked_up(walk.table, place), dimension(row)));
  const std::int64_t bytes = row < 0 ? most_bytes : std::min(row * size_of(t), most_bytes);
  for (std::int64_t at = 0; at < bytes; at += line_bytes)
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                       {b_.CreateConstGEP1_64(b_.getInt8Ty(), next, static_cast<std::uint64_t>(at)), b_.getInt32(0),
                        b_.getInt32(3), b_.getInt32(1)});
}

V LoopEmitter::read(int operand, const Columns* at) {
  const Walk& w = walk(operand);
  const Value& source = graph_[w.source];
  const DType t = graph_[operand].spec.dtype;
  if (source.is_constant) return constant(b_, t, source.constant, at ? lanes : 1);
  if (source.op.is_index()) return read_index(w, operand, at);
  return read_memory(w, t, operand, at);
}

V LoopEmitter::read_memory(const Walk& walk, DType t, int operand, const Columns* at) {
  if (walk.is_uniform()) {
    V& known = uniforms_[operand];
    if (!known) {
      V base = slot(walk.source), offset = dimension(walk.offset);
      known = before(entry_end_, [&] { return load(b_, t, element_address(b_, t, base, offset), 1); });
    }
    return splat(b_, known, at ? lanes : 1);
  }
  const Stride stride = at ? split(walk, loops_.columns())->column : Stride{};
  if (!at || stride.step == 0) {
    V& known = row_scalars_[{operand, at != nullptr}];
    if (!known) {
      V pointer = row_pointer(operand, walk, t, at != nullptr);
      known = before(row_start_, [&] { return load(b_, t, pointer, 1); });
    }
    return splat(b_, known, at ? lanes : 1);
  }
  V pointer = row_pointer(operand, walk, t, true);
  if (stride.step != 1 || stride.backwards) return gather_columns(t, pointer, stride, *at);
  // Sixteen elements of up to four bytes reach no further behind the array than its padding does.
  return load(b_, t, element_address(b_, t, pointer, at->first), lanes, size_of(t) > 4 ? at->mask : nullptr);
}

V LoopEmitter::gather_columns(DType t, V pointer, const Stride& stride, const Columns& at) {
  V columns = sequence(b_, at.first, b_.getInt64(1));
  if (at.mask) {  // lanes past the end read the last element
    V last = splat(b_, b_.CreateSub(at.end, b_.getInt64(1)), lanes);
    columns = b_.CreateSelect(b_.CreateICmpSLT(columns, last), columns, last);
  }
  V step = dimension(stride.step);
  V distances = b_.CreateMul(columns, splat(b_, stride.backwards ? b_.CreateNeg(step) : step, lanes));
  return gather(b_, t, b_.CreateGEP(memory_type(b_, t), pointer, distances));
}

V LoopEmitter::read_index(const Walk& walk, int operand, const Columns* at) {
  V position = row_position(operand, walk, at != nullptr);
  if (at) {
    const Stride stride = split(walk, loops_.columns())->column;
    V step = dimension(stride.step);
    if (stride.backwards) step = b_.CreateNeg(step);
    position = sequence(b_, b_.CreateAdd(position, b_.CreateMul(at->first, step)), step);
  }
  const V inputs[] = {position};
  return lower(b_, graph_[walk.source].op.index_formula(), inputs, at ? lanes : 1,
               [&](std::int64_t d) { return dimension(d); });
}

V LoopEmitter::output_row_pointer(int member) {
  V& known = output_pointers_[member];
  if (!known) {
    V base = slot(member);
    V columns = dimension(loops_.columns());
    const DType t = graph_[member].spec.dtype;
    known = loops_.flat()
                ? base
                : before(row_start_, [&] { return element_address(b_, t, base, b_.CreateMul(row_, columns)); });
  }
  return known;
}

void LoopEmitter::store_row(int member) {
  const DType t = graph_[member].spec.dtype;
  store(b_, t, row_values_.at(member), element_address(b_, t, slot(member), row_));
}

}  // namespace gradus::cpu_backend
