/// Reading operands block by block.
#include "gradus/backend/cpu/interpreter/source.h"
#include <algorithm>
#include <cstring>

namespace gradus::interpreter {
namespace {

/// Calls run(position, stride, count) for the stretches along the last dimension that make up [begin, begin + count).
template <class Run>
void walk(std::int64_t offset, int rank, const std::int64_t* dims, const std::int64_t* strides, std::int64_t begin,
          std::int64_t count, Run run) {
  std::array<std::int64_t, Shape::max_rank> at{};
  std::int64_t position = offset, rest = begin;
  for (int i = rank - 1; i >= 0; --i) {
    at[static_cast<std::size_t>(i)] = rest % dims[i];
    rest /= dims[i];
    position += at[static_cast<std::size_t>(i)] * strides[i];
  }
  const int last = rank - 1;
  while (count > 0) {
    const std::int64_t stretch = std::min(count, dims[last] - at[static_cast<std::size_t>(last)]);
    run(position, strides[last], stretch);
    count -= stretch;
    at[static_cast<std::size_t>(last)] += stretch;
    position += stretch * strides[last];
    for (int i = last; i > 0 && at[static_cast<std::size_t>(i)] == dims[i]; --i) {
      position += strides[i - 1] - dims[i] * strides[i];
      at[static_cast<std::size_t>(i)] = 0;
      ++at[static_cast<std::size_t>(i - 1)];
    }
  }
}

template <class T> void copy_stretch(const T* from, std::int64_t stride, std::int64_t count, T* to) {
  if (stride == 0) std::fill_n(to, count, *from);
  else if (stride == 1) std::copy_n(from, count, to);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
}

}  // namespace

Source::Source(const Graph& graph, int operand, std::span<const std::int64_t> symbols)
    : dtype_(graph[operand].spec.dtype), storage_(source_of(graph, operand)) {
  const Value &read = graph[operand], &stored = graph[storage_];
  if (stored.is_constant) {
    kind_ = Kind::constant;
    const auto size = static_cast<std::size_t>(size_of(dtype_));
    constant_.resize(static_cast<std::size_t>(block) * size / 8);
    auto* bytes = reinterpret_cast<std::byte*>(constant_.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(block); ++i)
      std::memcpy(bytes + i * size, &stored.constant, size);
    return;
  }
  if (stored.op.is_index()) {
    kind_ = Kind::index;
    formula_ = scalar::Interpreter(stored.op.index_formula(), symbols);
  }
  if (!read.op.is_view()) return;
  if (is_by_table(read)) {
    strided_ = true;
    table_ = storage_of(graph, read.in[1]);
    has_wide_indices_ = graph[table_].spec.dtype == i64;
    row_ = dimension::evaluate(row_elements(graph[read.in[0]].spec.shape), symbols);
    return;
  }
  walk_through(read.op->view(read.op.attributes(), graph[read.in[0]].spec.shape, read.spec.shape), read.spec.shape,
               symbols);
}

void Source::walk_through(const View& view, const Shape& shape, std::span<const std::int64_t> symbols) {
  strided_ = true;
  offset_ = dimension::evaluate(view.offset, symbols);
  for (int i = 0; i < shape.rank(); ++i) {
    const std::int64_t dim = dimension::evaluate(shape[i], symbols);
    const std::int64_t length = dimension::evaluate(view.strides[i], symbols);
    const std::int64_t stride = (view.backwards >> i & 1) != 0 ? -length : length;
    if (dim == 1) continue;
    if (rank_ > 0 && strides_[static_cast<std::size_t>(rank_ - 1)] == dim * stride) {
      dims_[static_cast<std::size_t>(rank_ - 1)] *= dim;
      strides_[static_cast<std::size_t>(rank_ - 1)] = stride;
      continue;
    }
    dims_[static_cast<std::size_t>(rank_)] = dim;
    strides_[static_cast<std::size_t>(rank_++)] = stride;
  }
  if (rank_ == 0) dims_[static_cast<std::size_t>(rank_++)] = 1;
}

std::int64_t Source::scratch_bytes() const {
  if (kind_ == Kind::constant || (kind_ == Kind::memory && !strided_)) return 0;
  return kind_ == Kind::memory ? block * 8 : 2 * block * 8 + formula_.scratch_bytes();
}

std::int64_t Source::looked_up(void* const* slots, std::int64_t place) const {
  const void* table = slots[table_];
  return has_wide_indices_ ? static_cast<const std::int64_t*>(table)[place]
                           : static_cast<const std::int32_t*>(table)[place];
}

/// As walk() does.
template <class Run>
void Source::for_each_stretch(void* const* slots, std::int64_t begin, std::int64_t count, Run run) const {
  if (table_ < 0) return walk(offset_, rank_, dims_.data(), strides_.data(), begin, count, run);
  for (const std::int64_t end = begin + count; begin < end;) {
    const std::int64_t column = begin % row_, stretch = std::min(row_ - column, end - begin);
    run(looked_up(slots, begin / row_) * row_ + column, std::int64_t{1}, stretch);
    begin += stretch;
  }
}

const void* Source::read(void* const* slots, std::int64_t begin, std::int64_t count, void* scratch) const {
  if (kind_ == Kind::constant) return constant_.data();
  if (kind_ == Kind::memory) {
    if (strided_) return gather(slots, begin, count, scratch);
    return static_cast<const std::byte*>(slots[storage_]) + begin * size_of(dtype_);
  }
  auto* index = static_cast<std::int64_t*>(scratch);
  positions(slots, begin, count, index);
  const void* inputs[] = {index};
  formula_.run(inputs, index + block, count, index + 2 * block);
  return index + block;
}

const void* Source::gather(void* const* slots, std::int64_t begin, std::int64_t count, void* scratch) const {
  const auto copy = [&]<class T>(T) {
    auto* to = static_cast<T*>(scratch);
    for_each_stretch(slots, begin, count, [&](std::int64_t position, std::int64_t stride, std::int64_t stretch) {
      copy_stretch(static_cast<const T*>(slots[storage_]) + position, stride, stretch, to);
      to += stretch;
    });
  };
  switch (size_of(dtype_)) {
    case 8: copy(std::uint64_t{}); break;
    case 4: copy(std::uint32_t{}); break;
    case 2: copy(std::uint16_t{}); break;
    default: copy(std::uint8_t{});
  }
  return scratch;
}

void Source::positions(void* const* slots, std::int64_t begin, std::int64_t count, std::int64_t* into) const {
  const auto count_up = [&](std::int64_t position, std::int64_t stride, std::int64_t stretch) {
    for (std::int64_t i = 0; i < stretch; ++i) *into++ = position + i * stride;
  };
  if (strided_) for_each_stretch(slots, begin, count, count_up);
  else count_up(begin, 1, count);
}

}  // namespace gradus::interpreter
