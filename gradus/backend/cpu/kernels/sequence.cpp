/// Joining and running along an axis: concat, cumsum.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/backend/cpu/kernels/sum_of.h"
#include "gradus/base/divide.h"
#include "gradus/base/wide_vectors.h"
#include "gradus/ops/concat.h"
#include "gradus/ops/cumulative_ops.h"

namespace gradus::library {
namespace {

struct Join {
  struct Part {
    int slot;
    std::int64_t begin, bytes;  // within one outer row of the result, and of the part
  };
  std::vector<Part> parts;  // parts that have elements
  std::int64_t row_bytes = 0;
  int target;
};
void for_each_vector(const Join& join, const auto& visit) { visit(join.parts); }

/// Rows of fewer bytes are made column by column: a call for each few bytes took 15 ns.
constexpr std::int64_t short_row = 128;

/// `bytes` at a time, which is a constant where it is one number.
template <std::int64_t known>
void copy_column(const std::byte* from, std::byte* to, std::int64_t bytes, std::int64_t step, std::int64_t rows) {
  const std::int64_t each = known > 0 ? known : bytes;
  for (std::int64_t row = 0; row < rows; ++row)
    std::memcpy(to + row * step, from + row * each, static_cast<std::size_t>(each));
}

/// Rows of `parts` elements, one of each source.
template <class T, std::size_t parts, std::size_t... k>
GRADUS_WIDE_VECTORS void interleave(const std::array<const void*, parts>& sources, std::byte* target, std::int64_t rows,
                                    std::index_sequence<k...>) {
  T* __restrict const to = reinterpret_cast<T*>(target);
  const std::array<const T*, parts> from{static_cast<const T*>(sources[k])...};
  for (std::int64_t row = 0; row < rows; ++row)
    ((to[row * static_cast<std::int64_t>(parts) + static_cast<std::int64_t>(k)] = from[k][row]), ...);
}

/// Rows of few elements, one of each part: vectors of them, where columns would be written element by element. False
/// for others.
bool interleave_rows(const KernelArguments* arguments, const Join& join, std::int64_t first, std::int64_t last) {
  const std::int64_t bytes = join.parts[0].bytes;
  if (!std::ranges::all_of(join.parts, [&](const Join::Part& part) { return part.bytes == bytes; })) return false;
  auto* const target = static_cast<std::byte*>(arguments->slots[join.target]) + first * join.row_bytes;
  const auto of_parts = [&]<class T, std::size_t parts>(T, std::integral_constant<std::size_t, parts>) {
    std::array<const void*, parts> sources;
    for (std::size_t k = 0; k < parts; ++k)
      sources[k] = static_cast<const std::byte*>(arguments->slots[join.parts[k].slot]) + first * bytes;
    interleave<T>(sources, target, last - first, std::make_index_sequence<parts>());
    return true;
  };
  const auto of_elements = [&]<class T>(T element) {
    switch (join.parts.size()) {
      case 2: return of_parts(element, std::integral_constant<std::size_t, 2>());
      case 3: return of_parts(element, std::integral_constant<std::size_t, 3>());
      case 4: return of_parts(element, std::integral_constant<std::size_t, 4>());
      default: return false;
    }
  };
  switch (bytes) {
    case 1: return of_elements(std::uint8_t());
    case 2: return of_elements(std::uint16_t());
    case 4: return of_elements(std::uint32_t());
    case 8: return of_elements(std::uint64_t());
    default: return false;
  }
}

/// Whole rows of the result, some at a time, so that they stay in the first cache from column to column.
void join_rows(const KernelArguments* arguments, const Join& join, std::int64_t first, std::int64_t last) {
  if (interleave_rows(arguments, join, first, last)) return;
  const std::int64_t together = std::max<std::int64_t>(1, 16384 / join.row_bytes);
  for (std::int64_t row = first; row < last; row += together) {
    auto* const target = static_cast<std::byte*>(arguments->slots[join.target]) + row * join.row_bytes;
    for (const Join::Part& part : join.parts) {
      const auto* const from = static_cast<const std::byte*>(arguments->slots[part.slot]) + row * part.bytes;
      const auto copy = part.bytes == 4    ? copy_column<4>
                        : part.bytes == 8  ? copy_column<8>
                        : part.bytes == 2  ? copy_column<2>
                        : part.bytes == 16 ? copy_column<16>
                                           : copy_column<0>;
      copy(from, target + part.begin, part.bytes, join.row_bytes, std::min(together, last - row));
    }
  }
}

}  // namespace

BoundThunk bind_concat(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const int axis = v.op.as<Concat>()->axis;
  const std::int64_t size = size_of(v.spec.dtype);
  auto join = std::make_shared<Join>();
  join->target = value;
  for (int operand : v.in) {
    const AroundAxis part(graph[operand].spec.shape.evaluated(symbols), axis);
    const std::int64_t bytes = part.n * part.inner * size;
    if (bytes > 0) join->parts.push_back({storage_of(graph, operand), join->row_bytes, bytes});
    join->row_bytes += bytes;
  }
  BoundThunk bound{.extent = v.spec.shape.evaluated(symbols).size() * size, .grain = 4096};
  bound.bytes = 2 * bound.extent;
  bound.flops = join->row_bytes == 0 ? 0 : 64 * bound.extent / join->row_bytes;
  bound.data = std::move(join);
  bound.image = image_of<Join>;
  return bound;
}

namespace {

/// Bytes [begin, end) of the result, which may be parts of rows.
void join_bytes(const KernelArguments* arguments, const Join& join, std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  auto* target = static_cast<std::byte*>(arguments->slots[join.target]);
  std::int64_t row = begin / join.row_bytes, column = begin % join.row_bytes;
  auto part = std::ranges::upper_bound(join.parts, column, {}, &Join::Part::begin) - 1;
  while (begin < end) {
    const std::int64_t within = column - part->begin, count = std::min(end - begin, part->bytes - within);
    const auto* from = static_cast<const std::byte*>(arguments->slots[part->slot]);
    std::memcpy(target + begin, from + row * part->bytes + within, static_cast<std::size_t>(count));
    begin += count;
    column += count;
    if (++part != join.parts.end()) continue;
    part = join.parts.begin();
    column = 0;
    ++row;
  }
}

}  // namespace

/// Over the bytes of the result.
void run_concat(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& join = *static_cast<const Join*>(arguments->data);
  const std::int64_t first = divide_up(begin, join.row_bytes), last = end / join.row_bytes;
  if (join.row_bytes > short_row || first >= last) return join_bytes(arguments, join, begin, end);
  join_bytes(arguments, join, begin, first * join.row_bytes);
  join_rows(arguments, join, first, last);
  join_bytes(arguments, join, last * join.row_bytes, end);
}

namespace {

struct Running {
  DType dtype;
  AroundAxis around;
  bool exclusive, reverse;
  int source, target;
};

constexpr std::int64_t running_block = 2048;
/// Columns that advance together. Their sums stay in the first cache, and parts of rows are long enough to be fetched
/// ahead: with 256, 1,000 rows of 1,000 took 1.6 times as long as a copy.
constexpr std::int64_t running_width = 1024;

/// At most `width` columns of one outer index, starting at `column`, in the order of the numeric contract.
template <class T, std::int64_t width> class RunningColumns {
 public:
  RunningColumns(const Running& running, const T* x, T* y, std::int64_t column, std::int64_t count)
      : running_(running), x_(x + column), y_(y + column), count_(count) {
    std::fill_n(before_, count, running.exclusive ? C(0) : nothing);
  }
  void run() {
    const std::int64_t n = running_.around.n;
    std::int64_t begin = 0;
    if constexpr (width > 1 && !NarrowElement<T>)
      if (!running_.exclusive) run_first_block(begin = std::min(n, running_block));
    for (; begin < n; begin += running_block) {
      const std::int64_t end = std::min(n, begin + running_block);
      if (running_.exclusive) run_block<true>(begin, end);
      else run_block<false>(begin, end);
    }
  }

 private:
  using C = ComputedIn<T>;
  static constexpr C nothing = std::is_floating_point_v<C> ? C(-0.0) : C(0);  // added to -0 it is -0

  std::int64_t count() const { return width == 1 ? 1 : count_; }
  std::int64_t at(std::int64_t step) const {
    return (running_.reverse ? running_.around.n - 1 - step : step) * running_.around.inner;
  }

  /// The first block, without a sum before it, for elements that can hold the running sum: it is read back from where
  /// it was written.
  void run_first_block(std::int64_t end) {
    T* const first = y_ + at(0);
    for (std::int64_t i = 0; i < count(); ++i) first[i] = sum_of(before_[i], x_[at(0) + i]);  // flushes, as sums do
    for (std::int64_t step = 1; step < end; ++step) {
      const T* __restrict const x = x_ + at(step);
      const T* __restrict const last = y_ + at(step - 1);
      T* __restrict const y = y_ + at(step);
      const std::int64_t columns = count();
      for (std::int64_t i = 0; i < columns; ++i) y[i] = sum_of(last[i], x[i]);
    }
    std::copy_n(y_ + at(end - 1), count(), before_);
  }

  /// Later blocks: each element is the sum before the block plus the block's sum so far.
  template <bool exclusive> void run_block(std::int64_t begin, std::int64_t end) {
    std::fill_n(own_, count(), nothing);
    std::int64_t step = begin;
    if constexpr (width > 1 && sizeof(T) >= 4)
      for (; step + 2 <= end; step += 2) advance<exclusive, 2>(step);
    for (; step < end; ++step) advance<exclusive, 1>(step);
    for (std::int64_t i = 0; i < count(); ++i)
      if (is_finite(own_[i])) before_[i] = sum_of(before_[i], own_[i]);
      else run_chain<exclusive>(i, begin, end);
  }

  /// `rows` rows from `step` on. The block's sums are read and written once for all of them.
  template <bool exclusive, int rows> void advance(std::int64_t step) {
    const C* __restrict const before = before_;
    C* __restrict const own = own_;
    const T* __restrict const x = x_ + at(step);
    T* __restrict const y = y_ + at(step);
    const std::int64_t next = rows > 1 ? at(step + 1) - at(step) : 0;
    const std::int64_t columns = count();
    for (std::int64_t i = 0; i < columns; ++i) {
      C sum = own[i];
      for (int row = 0; row < rows; ++row) {
        if constexpr (exclusive) y[row * next + i] = static_cast<T>(sum_of(before[i], sum));
        sum = sum_of(sum, static_cast<C>(x[row * next + i]));
        if constexpr (!exclusive) y[row * next + i] = static_cast<T>(sum_of(before[i], sum));
      }
      own[i] = sum;
    }
  }

  /// A sum that has overflowed, or has met infinity or NaN, is no longer finite.
  static bool is_finite(C sum) {
    if constexpr (std::is_floating_point_v<C>) return std::abs(sum) <= std::numeric_limits<C>::max();
    else return true;
  }

  /// A block whose own sums overflow continues from the last element of the block before, where they may stay finite.
  template <bool exclusive> void run_chain(std::int64_t i, std::int64_t begin, std::int64_t end) {
    C& sum = before_[i];
    for (std::int64_t step = begin; step < end; ++step) {
      const std::int64_t place = at(step) + i;
      if constexpr (exclusive) y_[place] = static_cast<T>(sum);
      sum = sum_of(sum, static_cast<C>(x_[place]));
      if constexpr (!exclusive) y_[place] = static_cast<T>(sum);
    }
  }

  const Running& running_;
  const T* const x_;
  T* const y_;
  const std::int64_t count_;
  C before_[std::size_t{width}], own_[std::size_t{width}];
};

}  // namespace

BoundThunk bind_cumsum(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const Cumsum& op = *v.op.as<Cumsum>();
  const Shape shape = v.spec.shape.evaluated(symbols);
  auto running = std::make_shared<Running>(
      Running{v.spec.dtype, AroundAxis(shape, op.axis), op.exclusive, op.reverse, storage_of(graph, v.in[0]), value});
  BoundThunk bound{.extent = shape.size() == 0 ? 0 : running->around.outer * running->around.inner,
                   .grain = 16,
                   .cut = Cut::nowhere};
  bound.bytes = 3 * shape.size() * size_of(v.spec.dtype);
  bound.flops = 4 * shape.size();
  bound.data = std::move(running);
  bound.image = image_of<Running>;
  return bound;
}

void run_cumsum(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& running = *static_cast<const Running*>(arguments->data);
  const AroundAxis& around = running.around;
  with_type(running.dtype, [&]<class T>(T) {
    while (begin < end) {
      const std::int64_t first = begin % around.inner, last = std::min(around.inner, first + end - begin);
      const std::int64_t offset = begin / around.inner * around.n * around.inner;
      const T* const x = static_cast<const T*>(arguments->slots[running.source]) + offset;
      T* const y = static_cast<T*>(arguments->slots[running.target]) + offset;
      for (std::int64_t column = first; column < last; column += running_width) {
        const std::int64_t count = std::min(running_width, last - column);
        if (count == 1) RunningColumns<T, 1>(running, x, y, column, 1).run();
        else RunningColumns<T, running_width>(running, x, y, column, count).run();
      }
      begin += last - first;
    }
  });
}

}  // namespace gradus::library
