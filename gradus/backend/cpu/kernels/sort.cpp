/// Orders of rows: argsort.
#include <algorithm>
#include <span>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/sort_ops.h"
#include "gradus/tensor/element_order.h"

namespace gradus::library {
namespace {

struct Order {
  DType dtype;
  bool descending;
  std::int64_t n, count;
  int source, target;  // slots
};

/// True if the first `count` of n elements are selected before they are sorted.
bool selects(std::int64_t n, std::int64_t count) { return 4 * count + 1024 < n; }

/// Entries that a worker needs for a row: to select the first ones, or all and as many to sort them.
std::int64_t room_for(std::int64_t n, std::int64_t count) {
  if (!selects(n, count)) return 2 * n;
  return static_cast<std::int64_t>(element_order::room_to_select(static_cast<std::size_t>(count)));
}

template <bool descending, class T> void order_row(const T* row, const Order& order, void* scratch, std::int32_t* out) {
  using Key = element_order::KeyOf<T>;
  using Entries = std::span<element_order::Entry<Key>>;
  const auto n = static_cast<std::size_t>(order.n), count = static_cast<std::size_t>(order.count);
  const auto key_at = [row](std::size_t i) { return element_order::key_of<descending>(row[i]); };
  const Entries room(static_cast<Entries::pointer>(scratch), static_cast<std::size_t>(room_for(order.n, order.count)));
  Entries entries;
  if (selects(order.n, order.count)) {  // these do not stand by place, as a sort by digits needs it
    entries = element_order::select_first<Key>(n, count, room, key_at);
    std::sort(entries.begin(), entries.end());
  } else {
    entries = room.first(n);
    for (std::size_t i = 0; i < n; ++i) entries[i] = {key_at(i), static_cast<std::uint32_t>(i)};
    element_order::sort_entries<Key>(entries, room.subspan(n));
  }
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::int32_t>(entries[i].place);
}

}  // namespace

BoundThunk bind_argsort(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const ArgSort& op = *v.op.as<ArgSort>();
  const Shape shape = graph[v.in[0]].spec.shape.evaluated(symbols);
  const std::int64_t n = shape.back(), count = dimension::evaluate(op.count, symbols);
  require(count <= n, ArgSort::name, ": the first ", count, " of ", n, " elements are asked for");
  const std::int64_t rows = v.spec.shape.evaluated(symbols).size() == 0 ? 0 : shape.size() / n;
  const std::int64_t entry = size_of(graph[v.in[0]].spec.dtype) > 4 ? sizeof(element_order::Entry<std::uint64_t>)
                                                                    : sizeof(element_order::Entry<std::uint32_t>);
  BoundThunk bound{.extent = rows};
  bound.bytes = rows * (n * size_of(graph[v.in[0]].spec.dtype) + 4 * count);
  bound.flops = (selects(n, count) ? 64 : 1024) * rows * n;  // that take as long as an element
  bound.worker_scratch = rows == 0 ? 0 : entry * room_for(n, count);
  bound.image = image_of<Order>;
  bound.data = std::make_shared<Order>(
      Order{graph[v.in[0]].spec.dtype, op.descending, n, count, storage_of(graph, v.in[0]), value});
  return bound;
}

void run_argsort(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& order = *static_cast<const Order*>(arguments->data);
  auto* const target = static_cast<std::int32_t*>(arguments->slots[order.target]);
  with_type(order.dtype, [&]<class T>(T) {
    const T* const x = static_cast<const T*>(arguments->slots[order.source]);
    for (std::int64_t row = begin; row < end; ++row) {
      const T* const from = x + row * order.n;
      std::int32_t* const out = target + row * order.count;
      if (order.descending) order_row<true>(from, order, arguments->scratch, out);
      else order_row<false>(from, order, arguments->scratch, out);
    }
  });
}

}  // namespace gradus::library
