/// Matrix products from the tiles of the CPU backend.
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/library/kernels.h"
#include "gradus/ops/matmul.h"

namespace gradus::library {
namespace {

struct Call {
  cpu_backend::Product product;
  int a, b, c;  // slots
};

}  // namespace

BoundThunk bind_matmul(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const Matmul& op = *v.op.as<Matmul>();
  const Shape a = graph[v.in[0]].spec.shape.evaluated(symbols), b = graph[v.in[1]].spec.shape.evaluated(symbols);
  const Shape c = v.spec.shape.evaluated(symbols);
  auto call = std::make_shared<Call>();
  cpu_backend::Product& p = call->product;
  p.dtype = v.spec.dtype;
  p.m = c[-2];
  p.n = c[-1];
  p.k = op.transpose_a ? a[-2] : a[-1];
  p.batch = 1;
  for (int i = 0; i < c.rank() - 2; ++i) p.batch *= c[i];
  p.a_row = op.transpose_a ? 1 : a[-1];
  p.a_column = op.transpose_a ? a[-1] : 1;
  p.a_batch = a.rank() == 2 ? 0 : a[-1] * a[-2];
  p.b_row = op.transpose_b ? 1 : b[-1];
  p.b_column = op.transpose_b ? b[-1] : 1;
  p.b_batch = b.rank() == 2 ? 0 : b[-1] * b[-2];
  p.c_row = c[-1];
  p.c_batch = c[-1] * c[-2];
  call->a = storage_of(graph, v.in[0]);
  call->b = storage_of(graph, v.in[1]);
  call->c = value;
  BoundThunk bound{.extent = c.size() == 0 ? 0 : cpu_backend::units(p)};
  bound.bytes = (a.size() + b.size() + c.size()) * size_of(p.dtype);
  bound.flops = 2 * c.size() * p.k;
  bound.worker_scratch = static_cast<std::int64_t>(cpu_backend::scratch_bytes(p));
  bound.data = std::move(call);
  return bound;
}

void run_matmul(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  void* const* slots = arguments->slots;
  cpu_backend::run_units(call.product, slots[call.a], slots[call.b], slots[call.c], begin, end, arguments->scratch);
}

}  // namespace gradus::library
