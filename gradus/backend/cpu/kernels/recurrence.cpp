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

/// At most `width` columns of the inner dimensions that advance together, from `column` on. With 1,024 of them their
/// state stays in the first cache, and parts of rows are long enough to be fetched ahead: 4,096 rows of 1,000 take half
/// of the time that they take with 64.
template <class T, std::int64_t width>
void run_columns(const Recurrence& op, const T* factors, const T* terms, T* result, std::int64_t column,
                 std::int64_t given) {
  const std::int64_t count = width == 1 ? 1 : given, n = op.around.n, inner = op.around.inner;
  Carried<T> states[std::size_t{width}];
  Carried<T>* __restrict const state = states;
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t at = (op.reverse ? n - 1 - step : step) * inner + column;
    const T* __restrict const a = factors + at;
    const T* __restrict const b = terms + at;
    T* __restrict const y = result + at;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto term = static_cast<Carried<T>>(b[i]);
      state[i] = step == 0 ? term : static_cast<Carried<T>>(a[i]) * state[i] + term;
      y[i] = static_cast<T>(state[i]);
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
      const T* const a = static_cast<const T*>(arguments->slots[op.factors]) + offset;
      const T* const b = static_cast<const T*>(arguments->slots[op.terms]) + offset;
      T* const y = static_cast<T*>(arguments->slots[op.target]) + offset;
      constexpr std::int64_t width = 1024;
      for (std::int64_t column = first; column < last; column += width) {
        const std::int64_t count = std::min(width, last - column);
        if (count == 1) run_columns<T, 1>(op, a, b, y, column, 1);
        else run_columns<T, width>(op, a, b, y, column, count);
      }
      begin += last - first;
    }
  });
}

}  // namespace gradus::library
