/// Writing by data: scatter.
#include <algorithm>
#include <type_traits>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/ops/scatter.h"
#include "gradus/ops/scatter_ops.h"

namespace gradus::library {
namespace {

struct Call {
  DType dtype;
  bool wide_indices;
  Reduction kind;
  std::int64_t outer, n, places, inner;  // x [outer, n, inner], indices [places], updates [outer, places, inner]
  int x, indices, updates, target;       // slots
};

template <class T> T combined(Reduction kind, T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return b;
  } else if constexpr (std::is_integral_v<T>) {
    using Bits = std::make_unsigned_t<T>;
    const auto wide_a = static_cast<std::uint64_t>(a), wide_b = static_cast<std::uint64_t>(b);
    if (kind == Reduction::add) return static_cast<T>(static_cast<Bits>(wide_a + wide_b));
    if (kind == Reduction::mul) return static_cast<T>(static_cast<Bits>(wide_a * wide_b));
    return kind == Reduction::min ? std::min(a, b) : std::max(a, b);
  } else {
    using Wide = std::conditional_t<std::is_floating_point_v<T>, T, float>;
    const auto wide_a = static_cast<Wide>(a), wide_b = static_cast<Wide>(b);
    if (kind == Reduction::add) return static_cast<T>(wide_a + wide_b);
    if (kind == Reduction::mul) return static_cast<T>(wide_a * wide_b);
    if (wide_a != wide_a) return a;  // NaN wins, as in reduce_min
    if (wide_b != wide_b) return b;
    return (kind == Reduction::min ? wide_b < wide_a : wide_a < wide_b) ? b : a;
  }
}

/// Columns [first, last) of the inner dimensions under one outer index.
template <class T, class Index>
void scatter_columns(const KernelArguments* arguments, const Call& call, std::int64_t outer, std::int64_t first,
                     std::int64_t last) {
  const auto* indices = static_cast<const Index*>(arguments->slots[call.indices]);
  const T* x = static_cast<const T*>(arguments->slots[call.x]) + outer * call.n * call.inner;
  const T* updates = static_cast<const T*>(arguments->slots[call.updates]) + outer * call.places * call.inner;
  T* target = static_cast<T*>(arguments->slots[call.target]) + outer * call.n * call.inner;
  for (std::int64_t row = 0; row < call.n * call.inner; row += call.inner)
    std::copy(x + row + first, x + row + last, target + row + first);
  for (std::int64_t p = 0; p < call.places; ++p) {
    const auto index = static_cast<std::int64_t>(indices[p]);
    if (index < 0 || index >= call.n) {
      report_failure(arguments, p, index);
      continue;
    }
    T* to = target + index * call.inner;
    const T* from = updates + p * call.inner;
    if (call.kind == Reduction::none) std::copy(from + first, from + last, to + first);
    else
      for (std::int64_t i = first; i < last; ++i) to[i] = combined(call.kind, to[i], from[i]);
  }
}

}  // namespace

BoundThunk bind_scatter(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const Scatter& op = *v.op.as<Scatter>();
  const AroundAxis around(v.spec.shape.evaluated(symbols), op.axis);
  auto call = std::make_shared<Call>();
  *call = {v.spec.dtype,
           graph[v.in[1]].spec.dtype == i64,
           static_cast<Reduction>(op.kind),
           around.outer,
           around.n,
           graph[v.in[1]].spec.shape.evaluated(symbols).size(),
           around.inner,
           storage_of(graph, v.in[0]),
           storage_of(graph, v.in[1]),
           storage_of(graph, v.in[2]),
           value};
  BoundThunk bound{.extent = call->outer * call->inner, .grain = 16, .cut = Cut::nowhere};
  bound.failure = text("index {value} at position {index} of the indices is outside [0, ", call->n, ")");
  bound.bytes = call->outer * call->inner * (2 * call->n + 3 * call->places) * size_of(call->dtype);
  bound.flops = 16 * call->outer * call->places;
  bound.data = std::move(call);
  bound.image = image_of<Call>;
  return bound;
}

void run_scatter(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  with_type(call.dtype, [&]<class T>(T) {
    while (begin < end) {
      const std::int64_t outer = begin / call.inner, first = begin % call.inner;
      const std::int64_t last = std::min(call.inner, first + end - begin);
      if (call.wide_indices) scatter_columns<T, std::int64_t>(arguments, call, outer, first, last);
      else scatter_columns<T, std::int32_t>(arguments, call, outer, first, last);
      begin += last - first;
    }
  });
}

}  // namespace gradus::library
