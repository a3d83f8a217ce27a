/// Decompositions as kernels: each thread has matrices of its own.
#include "gradus/backend/cpu/kernels/decompositions.h"
#include <limits>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/ops/decomposition_ops.h"

namespace gradus::library {

using namespace factors;

namespace {

/// One op on some matrices.
struct Decomposition {
  DType dtype;
  MatrixSize size;
  Wanted wanted;
  std::int64_t result;  // elements of one
  int matrix, target;   // slots
};

using RoomOf = std::int64_t (*)(const MatrixSize&, const Wanted&);

/// The thunk of one decomposition a matrix, which costs about `work` times m n min(m, n) operations.
BoundThunk bind_each(const Graph& graph, int value, Symbols symbols, const Wanted& wanted, RoomOf room_f32,
                     RoomOf room_f64, std::int64_t work) {
  const Value& v = graph[value];
  const Shape shape = graph[v.in[0]].spec.shape.evaluated(symbols), made = v.spec.shape.evaluated(symbols);
  const MatrixSize size{shape[-2], shape[-1]};
  std::int64_t count = 1;
  for (int i = 0; i < shape.rank() - 2; ++i) count *= shape[i];
  const std::int64_t result = count == 0 ? 0 : made.size() / count;
  BoundThunk bound{.extent = result == 0 ? 0 : count};
  bound.bytes = count * (size.m * size.n + result) * size_of(v.spec.dtype);
  bound.flops = work * count * size.m * size.n * size.least();
  bound.worker_scratch = bound.extent == 0 ? 0 : (v.spec.dtype == f64 ? room_f64 : room_f32)(size, wanted);
  bound.data = std::make_shared<Decomposition>(
      Decomposition{v.spec.dtype, size, wanted, result, storage_of(graph, v.in[0]), value});
  bound.image = image_of<Decomposition>;
  return bound;
}

template <class Compute>
void run_matrices(const KernelArguments* arguments, std::int64_t begin, std::int64_t end, Compute compute) {
  const auto& of = *static_cast<const Decomposition*>(arguments->data);
  const auto run = [&]<class T>(T) {
    const auto* const a = static_cast<const T*>(arguments->slots[of.matrix]);
    auto* const y = static_cast<T*>(arguments->slots[of.target]);
    for (std::int64_t i = begin; i < end; ++i)
      compute(Decompositions<T>{}, of, a + i * of.size.m * of.size.n, y + i * of.result, Room(arguments->scratch));
  };
  if (of.dtype == f64) run(double{});
  else run(float{});
}

}  // namespace

BoundThunk bind_qr(const Graph& graph, int value, Symbols symbols) {
  return bind_each(graph, value, symbols, {.full = graph[value].op.as<Qr>()->full}, Decompositions<float>::room_for_qr,
                   Decompositions<double>::room_for_qr, 4);
}
void run_qr(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_matrices(arguments, begin, end, [](auto ways, const Decomposition& of, const auto* a, auto* y, Room own) {
    ways.qr(of.size, of.wanted, a, y, own);
  });
}

BoundThunk bind_eigh(const Graph& graph, int value, Symbols symbols) {
  return bind_each(graph, value, symbols, {.vectors = graph[value].op.as<Eigh>()->vectors},
                   Decompositions<float>::room_for_eigh, Decompositions<double>::room_for_eigh, 12);
}
void run_eigh(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_matrices(arguments, begin, end, [](auto ways, const Decomposition& of, const auto* a, auto* y, Room own) {
    ways.eigh(of.size, of.wanted, a, y, own);
  });
}

BoundThunk bind_svd(const Graph& graph, int value, Symbols symbols) {
  return bind_each(graph, value, symbols, {.vectors = graph[value].op.as<Svd>()->vectors},
                   Decompositions<float>::room_for_svd, Decompositions<double>::room_for_svd, 24);
}
void run_svd(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_matrices(arguments, begin, end, [](auto ways, const Decomposition& of, const auto* a, auto* y, Room own) {
    ways.svd(of.size, of.wanted, a, y, own);
  });
}

BoundThunk bind_pinv(const Graph& graph, int value, Symbols symbols) {
  const Value& v = graph[value];
  const Pinv& op = *v.op.as<Pinv>();
  const Shape made = v.spec.shape.evaluated(symbols);
  const double epsilon = v.spec.dtype == f64 ? std::numeric_limits<double>::epsilon()
                                             : static_cast<double>(std::numeric_limits<float>::epsilon());
  const double by_sizes = 10 * epsilon * static_cast<double>(std::max(made[-1], made[-2]));
  return bind_each(graph, value, symbols,
                   {.symmetric = op.hermitian, .threshold = op.rcond == Pinv::by_sizes ? by_sizes : op.rcond},
                   Decompositions<float>::room_for_pinv, Decompositions<double>::room_for_pinv, 26);
}
void run_pinv(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_matrices(arguments, begin, end, [](auto ways, const Decomposition& of, const auto* a, auto* y, Room own) {
    ways.pinv(of.size, of.wanted, a, y, own);
  });
}

BoundThunk bind_lu(const Graph& graph, int value, Symbols symbols) {
  return bind_each(graph, value, symbols, {}, Decompositions<float>::room_for_lu, Decompositions<double>::room_for_lu,
                   1);
}
void run_lu(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_matrices(arguments, begin, end, [](auto ways, const Decomposition& of, const auto* a, auto* y, Room own) {
    ways.lu(of.size, of.wanted, a, y, own);
  });
}

BoundThunk bind_matrix_exp(const Graph& graph, int value, Symbols symbols) {
  return bind_each(graph, value, symbols, {}, Decompositions<float>::room_for_matrix_exp,
                   Decompositions<double>::room_for_matrix_exp, 20);
}
void run_matrix_exp(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_matrices(arguments, begin, end, [](auto ways, const Decomposition& of, const auto* a, auto* y, Room own) {
    ways.matrix_exp(of.size, of.wanted, a, y, own);
  });
}

}  // namespace gradus::library
