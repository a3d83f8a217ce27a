/// Writing rows: update_rows. Where the result lies in the memory of x, nothing else moves. Decision 86 has the
/// reasons.
#include <cstring>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"

namespace gradus::library {
namespace {

struct Call {
  bool wide_indices;
  std::int64_t n, places, inner, element;  // x [n, inner], indices [places], rows [places, inner]; bytes of an element
  int x, indices, rows, target;            // slots
};

/// Columns [first, last).
template <class Index>
void update_columns(const KernelArguments* arguments, const Call& call, std::int64_t first, std::int64_t last) {
  const auto* indices = static_cast<const Index*>(arguments->slots[call.indices]);
  const auto* x = static_cast<const std::byte*>(arguments->slots[call.x]) + first * call.element;
  const auto* rows = static_cast<const std::byte*>(arguments->slots[call.rows]) + first * call.element;
  auto* target = static_cast<std::byte*>(arguments->slots[call.target]) + first * call.element;
  const std::int64_t row = call.inner * call.element;
  const auto bytes = static_cast<std::size_t>((last - first) * call.element);
  if (x != target)
    for (std::int64_t i = 0; i < call.n; ++i) std::memcpy(target + i * row, x + i * row, bytes);
  for (std::int64_t p = 0; p < call.places; ++p)
    if (const auto index = static_cast<std::int64_t>(indices[p]); index >= 0 && index < call.n)
      std::memcpy(target + index * row, rows + p * row, bytes);
}

}  // namespace

BoundThunk bind_update_rows(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const AroundAxis around(v.spec.shape.evaluated(symbols), -v.spec.shape.rank());
  auto call = std::make_shared<Call>();
  *call = {graph[v.in[1]].spec.dtype == i64,
           around.n,
           graph[v.in[1]].spec.shape.evaluated(symbols).size(),
           around.inner,
           size_of(v.spec.dtype),
           storage_of(graph, v.in[0]),
           storage_of(graph, v.in[1]),
           storage_of(graph, v.in[2]),
           value};
  BoundThunk bound{.extent = call->inner, .grain = 16, .cut = Cut::nowhere};
  bound.bytes = 2 * call->places * call->inner * call->element;  // in place; a copy of x is not counted
  bound.flops = 32 * call->places;
  bound.data = std::move(call);
  bound.image = image_of<Call>;
  return bound;
}

void run_update_rows(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  if (call.wide_indices) update_columns<std::int64_t>(arguments, call, begin, end);
  else update_columns<std::int32_t>(arguments, call, begin, end);
}

}  // namespace gradus::library
