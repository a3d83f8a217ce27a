/// Joining and running along an axis: concat, cumsum.
#include <algorithm>
#include <cstring>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/backend/cpu/kernels/running.h"
#include "gradus/ops/concat.h"
#include "gradus/ops/cumulative_ops.h"

namespace gradus::library {
namespace {

struct Join {
  struct Part {
    int slot;
    std::int64_t begin, bytes;  // within one outer row of the result, and of the part
  };
  std::vector<Part> parts;  // those that have elements
  std::int64_t row_bytes = 0;
  int target;
};
void for_each_vector(const Join& join, const auto& visit) { visit(join.parts); }

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

/// Over the bytes of the result.
void run_concat(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& join = *static_cast<const Join*>(arguments->data);
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

namespace {

struct Running {
  DType dtype;
  AroundAxis around;
  bool exclusive, reverse;
  int source, target;
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
      run_in_blocks<RunningSum, T>({.x = x,
                                    .first_row = x,
                                    .y = static_cast<T*>(arguments->slots[running.target]) + offset,
                                    .around = around,
                                    .exclusive = running.exclusive,
                                    .reverse = running.reverse},
                                   first, last);
      begin += last - first;
    }
  });
}

}  // namespace gradus::library
