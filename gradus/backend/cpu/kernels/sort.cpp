/// Orders of rows: argsort.
#include <algorithm>
#include <numeric>
#include <type_traits>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/sort_ops.h"

namespace gradus::library {
namespace {

struct Order {
  DType dtype;
  bool descending;
  std::int64_t n, count;
  int source, target;  // slots
};

template <class T> bool is_nan(T x) {
  if constexpr (std::is_integral_v<T>) return false;
  else return !(x == x);
}

/// Whether row[a] stands before row[b]: a total order, so any algorithm finds the stable one.
template <class T, bool descending> struct Before {
  const T* row;
  bool operator()(std::int32_t a, std::int32_t b) const {
    const T x = row[a], y = row[b];
    if (descending ? y < x : x < y) return true;
    if (descending ? x < y : y < x) return false;
    const bool x_last = is_nan(x), y_last = is_nan(y);
    return x_last == y_last ? a < b : y_last;
  }
};

template <class T, bool descending>
void order_row(const T* row, std::int64_t n, std::int64_t count, std::int32_t* all, std::int32_t* out) {
  const Before<T, descending> before{row};
  std::iota(all, all + n, 0);
  if (count == n) {
    std::sort(all, all + n, before);
    return;
  }
  std::partial_sort(all, all + count, all + n, before);
  std::copy(all, all + count, out);
}

}  // namespace

BoundThunk bind_argsort(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const ArgSort& op = *v.op.as<ArgSort>();
  const Shape shape = graph[v.in[0]].spec.shape.evaluated(symbols);
  const std::int64_t n = shape.back(), count = dimension::evaluate(op.count, symbols);
  const std::int64_t rows = v.spec.shape.evaluated(symbols).size() == 0 ? 0 : shape.size() / n;
  BoundThunk bound{.extent = rows};
  bound.bytes = rows * (n * size_of(graph[v.in[0]].spec.dtype) + 4 * count);
  bound.flops = 64 * rows * n;  // comparisons that predictors miss
  bound.worker_scratch = count == n ? 0 : 4 * n;
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
      std::int32_t* const out = target + row * order.count;
      auto* const all = order.count == order.n ? out : static_cast<std::int32_t*>(arguments->scratch);
      if (order.descending) order_row<T, true>(x + row * order.n, order.n, order.count, all, out);
      else order_row<T, false>(x + row * order.n, order.n, order.count, all, out);
    }
  });
}

}  // namespace gradus::library
