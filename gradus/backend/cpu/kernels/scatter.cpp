/// Writing by data: scatter. Decision 306 has the reasons.
#include <algorithm>
#include <type_traits>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/kernels/scatter_parts.h"
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/base/wide_vectors.h"
#include "gradus/ops/scatter.h"
#include "gradus/ops/scatter_ops.h"

namespace gradus::library {
namespace {

struct Call {
  DType dtype;
  bool wide_indices;
  Reduction kind;
  ScatterParts parts;               // of x [outer, n, inner]
  std::int64_t places;              // indices [places], updates [outer, places, inner]
  int x, indices, updates, target;  // slots
};

template <class T> T sum_or_product(Reduction kind, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto wide_a = static_cast<std::uint64_t>(a), wide_b = static_cast<std::uint64_t>(b);
    return static_cast<T>(kind == Reduction::add ? wide_a + wide_b : wide_a * wide_b);
  } else {
    using Wide = std::conditional_t<std::is_floating_point_v<T>, T, float>;
    const auto wide_a = static_cast<Wide>(a), wide_b = static_cast<Wide>(b);
    return static_cast<T>(kind == Reduction::add ? wide_a + wide_b : wide_a * wide_b);
  }
}

/// NaN wins, as in reduce_min.
template <class T> T least_or_largest(Reduction kind, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return kind == Reduction::min ? std::min(a, b) : std::max(a, b);
  } else {
    using Wide = std::conditional_t<std::is_floating_point_v<T>, T, float>;
    const auto wide_a = static_cast<Wide>(a), wide_b = static_cast<Wide>(b);
    if (wide_a != wide_a) return a;
    if (wide_b != wide_b) return b;
    return (kind == Reduction::min ? wide_b < wide_a : wide_a < wide_b) ? b : a;
  }
}

template <Reduction kind, class T> T combined(T a, T b) {
  if constexpr (kind == Reduction::none || std::is_same_v<T, bool>) return b;
  else if constexpr (kind == Reduction::add || kind == Reduction::mul) return sum_or_product(kind, a, b);
  else return least_or_largest(kind, a, b);
}

/// The same without branches, for vectors. One element alone takes twice as long so.
template <Reduction kind, class T> T blended(T a, T b) {
  if constexpr (std::is_floating_point_v<T> && (kind == Reduction::min || kind == Reduction::max)) {
    const bool is_better = kind == Reduction::min ? b < a : a < b;
    return ((a == a) & ((b != b) | is_better)) != 0 ? b : a;
  } else {
    return combined<kind>(a, b);
  }
}

template <Reduction kind, class T>
GRADUS_WIDE_VECTORS void update_row(T* __restrict to, const T* __restrict from, std::int64_t columns) {
  for (std::int64_t i = 0; i < columns; ++i) to[i] = blended<kind>(to[i], from[i]);
}

template <Reduction kind, class T, class Index>
void update_part(const KernelArguments* arguments, const Call& call, const ScatterPart& part, T* target) {
  const std::int64_t inner = call.parts.inner, first = part.first_column, columns = part.columns();
  const T* updates = static_cast<const T*>(arguments->slots[call.updates]) + part.outer * call.places * inner + first;
  const auto* indices = static_cast<const Index*>(arguments->slots[call.indices]);
  const auto each = [&](const auto& update) {
    for_each_update(arguments, indices, call.places, call.parts.n, part, update);
  };
  if (inner == 1)
    each([&](std::int64_t p, std::int64_t row) { target[row] = combined<kind>(target[row], updates[p]); });
  else
    each([&](std::int64_t p, std::int64_t row) {
      update_row<kind>(target + row * inner + first, updates + p * inner, columns);
    });
}

/// Rows and columns of the part of x.
template <class T> void copy_part(const ScatterPart& part, std::int64_t inner, const T* x, T* target) {
  if (part.columns() == inner) {
    std::copy(x + part.first_row * inner, x + part.last_row * inner, target + part.first_row * inner);
    return;
  }
  for (std::int64_t at = part.first_row * inner; at < part.last_row * inner; at += inner)
    std::copy(x + at + part.first_column, x + at + part.last_column, target + at + part.first_column);
}

template <class T, class Index>
void scatter_part(const KernelArguments* arguments, const Call& call, const ScatterPart& part) {
  const std::int64_t behind = part.outer * call.parts.n * call.parts.inner;
  T* const target = static_cast<T*>(arguments->slots[call.target]) + behind;
  copy_part(part, call.parts.inner, static_cast<const T*>(arguments->slots[call.x]) + behind, target);
  const auto update = [&]<Reduction kind>() { update_part<kind, T, Index>(arguments, call, part, target); };
  switch (call.kind) {
    case Reduction::none: return update.template operator()<Reduction::none>();
    case Reduction::add: return update.template operator()<Reduction::add>();
    case Reduction::mul: return update.template operator()<Reduction::mul>();
    case Reduction::min: return update.template operator()<Reduction::min>();
    case Reduction::max: return update.template operator()<Reduction::max>();
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
           {around.outer, around.n, around.inner},
           graph[v.in[1]].spec.shape.evaluated(symbols).size(),
           storage_of(graph, v.in[0]),
           storage_of(graph, v.in[1]),
           storage_of(graph, v.in[2]),
           value};
  BoundThunk bound{.extent = call->parts.extent(), .grain = call->parts.grain(), .cut = Cut::nowhere};
  bound.failure = text("index {value} at position {index} of the indices is outside [0, ", around.n, ")");
  bound.bytes = around.outer * around.inner * (2 * around.n + 3 * call->places) * size_of(call->dtype);
  bound.flops = 16 * around.outer * call->places;
  bound.data = std::move(call);
  bound.image = image_of<Call>;
  return bound;
}

void run_scatter(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  with_type(call.dtype, [&]<class T>(T) {
    call.parts.visit(begin, end, [&](const ScatterPart& part) {
      if (call.wide_indices) scatter_part<T, std::int64_t>(arguments, call, part);
      else scatter_part<T, std::int32_t>(arguments, call, part);
    });
  });
}

}  // namespace gradus::library
