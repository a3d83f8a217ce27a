/// Incomplete gamma and beta functions and Hurwitz's zeta: an element's time depends on its value.
#include <array>
#include "gradus/backend/cpu/kernels/incomplete_functions.h"
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/ops/incomplete_ops.h"

namespace gradus::library {
namespace {

struct Elements {
  AnyOp op;
  DType dtype;
  std::array<int, 3> operands;
  int target;
};

/// y[i] = f(operand 0 [i], operand 1 [i], ...) in double, over [begin, end).
template <std::size_t n, class Function>
void run_elements(const Elements& work, const KernelArguments* arguments, std::int64_t begin, std::int64_t end,
                  Function f) {
  with_type(work.dtype, [&]<class T>(T) {
    std::array<const T*, n> x;
    for (std::size_t k = 0; k < n; ++k) x[k] = static_cast<const T*>(arguments->slots[work.operands[k]]);
    T* y = static_cast<T*>(arguments->slots[work.target]);
    for (std::int64_t i = begin; i < end; ++i) {
      std::array<double, n> at;
      for (std::size_t k = 0; k < n; ++k) at[k] = static_cast<double>(x[k][i]);
      y[i] = static_cast<T>(f(at));
    }
  });
}

const Elements& work_of(const KernelArguments* arguments) { return *static_cast<const Elements*>(arguments->data); }

}  // namespace

BoundThunk bind_incomplete(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  auto work = std::make_shared<Elements>(Elements{v.op, v.spec.dtype, {-1, -1, -1}, value});
  for (std::size_t k = 0; k < v.in.size(); ++k) work->operands.at(k) = storage_of(graph, v.in[k]);
  const std::int64_t size = v.spec.shape.evaluated(symbols).size();
  BoundThunk bound{.extent = size, .grain = 16};
  bound.bytes = static_cast<std::int64_t>(v.in.size() + 1) * size * size_of(v.spec.dtype);
  bound.flops = 2000 * size;
  bound.data = std::move(work);
  return bound;
}

void run_igamma(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const Elements& work = work_of(arguments);
  run_elements<2>(work, arguments, begin, end, [op = *work.op.as<Igamma>()](const auto& x) {
    return incomplete_gamma(x[0], x[1], op.order, op.upper);
  });
}
void run_betainc(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const Elements& work = work_of(arguments);
  run_elements<3>(work, arguments, begin, end, [op = *work.op.as<Betainc>()](const auto& x) {
    return incomplete_beta(x[0], x[1], x[2], op.order_a, op.order_b);
  });
}
void run_zeta(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const Elements& work = work_of(arguments);
  run_elements<2>(work, arguments, begin, end,
                  [op = *work.op.as<Zeta>()](const auto& x) { return hurwitz_zeta(x[0], x[1], op.order); });
}

}  // namespace gradus::library
