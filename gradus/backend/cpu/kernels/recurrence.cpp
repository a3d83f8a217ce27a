/// Linear recurrences along an axis: each element needs the one before, columns are independent.
#include <algorithm>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/ops/cumulative_ops.h"

namespace gradus::library {
namespace {

struct Recurrence {
  DType dtype;
  AroundAxis around;
  bool reverse;
  int factors, terms, target;
};

/// Half-precision carries its state in f32.
template <class T>
using Carried = std::conditional_t<std::is_integral_v<T>, std::uint64_t, std::conditional_t<sizeof(T) == 2, float, T>>;

/// Columns [first, last) of the inner dimensions under one outer index, a few at a time.
template <class T>
void run_columns(const Recurrence& op, const T* a, const T* b, T* y, std::int64_t first, std::int64_t last) {
  constexpr std::int64_t width = 64;
  Carried<T> state[width] = {};
  const std::int64_t n = op.around.n, inner = op.around.inner;
  for (; first < last; first += width) {
    const std::int64_t count = std::min(width, last - first);
    for (std::int64_t step = 0; step < n; ++step) {
      const std::int64_t at = (op.reverse ? n - 1 - step : step) * inner + first;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto term = static_cast<Carried<T>>(b[at + i]);
        state[i] = step == 0 ? term : static_cast<Carried<T>>(a[at + i]) * state[i] + term;
        y[at + i] = static_cast<T>(state[i]);
      }
    }
  }
}

}  // namespace

BoundThunk bind_linear_recurrence(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const LinearRecurrence& op = *v.op.as<LinearRecurrence>();
  const Shape shape = v.spec.shape.evaluated(symbols);
  auto recurrence =
      std::make_shared<Recurrence>(Recurrence{v.spec.dtype, AroundAxis(shape, op.axis), op.reverse,
                                              storage_of(graph, v.in[0]), storage_of(graph, v.in[1]), value});
  BoundThunk bound{.extent = shape.size() == 0 ? 0 : recurrence->around.outer * recurrence->around.inner,
                   .grain = 16,
                   .cut = Cut::nowhere};
  bound.bytes = 3 * shape.size() * size_of(v.spec.dtype);
  bound.flops = 8 * shape.size();
  bound.data = std::move(recurrence);
  bound.image = image_of<Recurrence>;
  return bound;
}

/// Over the columns.
void run_linear_recurrence(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& op = *static_cast<const Recurrence*>(arguments->data);
  const std::int64_t inner = op.around.inner;
  with_type(op.dtype, [&]<class T>(T) {
    while (begin < end) {
      const std::int64_t first = begin % inner, last = std::min(inner, first + end - begin);
      const std::int64_t offset = begin / inner * op.around.n * inner;
      run_columns(op, static_cast<const T*>(arguments->slots[op.factors]) + offset,
                  static_cast<const T*>(arguments->slots[op.terms]) + offset,
                  static_cast<T*>(arguments->slots[op.target]) + offset, first, last);
      begin += last - first;
    }
  });
}

}  // namespace gradus::library
