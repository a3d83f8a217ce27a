/// Decompositions as kernels: each thread has matrices of its own, or a team works on each together.
#include "gradus/backend/cpu/kernels/decompositions.h"
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"
#include "gradus/backend/cpu/tiles/used_tiles.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/decomposition_ops.h"

namespace gradus::library {

using namespace factors;

namespace {

/// One op on some matrices.
struct Decomposition {
  DType dtype;
  MatrixSize size;
  Wanted wanted;
  std::int64_t result;              // elements of one
  std::int64_t own_begin;           // as in Call
  int matrix, target, shared_slot;  // slots
};

using RoomOf = RoomBytes (*)(const MatrixSize&, const Wanted&);

/// The thunk of one decomposition a matrix, which costs about `work` times m n min(m, n) operations.
BoundThunk bind_each(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options,
                     const Wanted& wanted, RoomOf room_f32, RoomOf room_f64, std::int64_t work,
                     KernelFunction together) {
  const Value& v = graph[value];
  const Shape shape = graph[v.in[0]].spec.shape.evaluated(symbols), made = v.spec.shape.evaluated(symbols);
  const MatrixSize size{shape[-2], shape[-1]};
  const std::int64_t count = matrices_in(shape);
  const std::int64_t result = count == 0 ? 0 : made.size() / count;
  BoundThunk bound{.extent = result == 0 ? 0 : count};
  if (bound.extent > 0) bound.tiles = cpu_backend::tiles_for_any_size(v.spec.dtype);
  bound.bytes = count * (size.m * size.n + result) * size_of(v.spec.dtype);
  bound.flops = work * count * size.m * size.n * size.least();
  const RoomBytes room = bound.extent == 0 ? RoomBytes() : (v.spec.dtype == f64 ? room_f64 : room_f32)(size, wanted);
  bound.worker_scratch = room.shared + room.own;
  if (together && size.least() >= fewest_rows_of_teams && count <= most_matrices_of_teams) {
    bound.together = together;
    bound.shared_scratch = room.shared, bound.scratch_together = room.own;
    bound.nested_meetings = count * 2 * divide_up(size.least(), std::int64_t{32});
  }
  bound.data = std::make_shared<Decomposition>(Decomposition{v.spec.dtype, size, wanted, result, room.shared,
                                                             storage_of(graph, v.in[0]), value, options.shared_slot});
  bound.image = image_of<Decomposition>;
  return bound;
}

template <class Compute>
void run_matrices(const KernelArguments* arguments, std::int64_t begin, std::int64_t end, const Team& team,
                  Compute compute) {
  const auto& of = *static_cast<const Decomposition*>(arguments->data);
  auto* const scratch = static_cast<std::byte*>(arguments->scratch);
  const Room shared(team.member ? arguments->slots[of.shared_slot] : scratch),
      own(team.member ? scratch : scratch + of.own_begin);
  const auto run = [&]<class T>(T) {
    const auto* const a = static_cast<const T*>(arguments->slots[of.matrix]);
    auto* const y = static_cast<T*>(arguments->slots[of.target]);
    for (std::int64_t i = begin; i < end; ++i) {
      if (i > begin) team.meet();  // shared memory is free again
      compute(Decompositions<T>{}, of, a + i * of.size.m * of.size.n, y + i * of.result, shared, own, team);
    }
  };
  if (of.dtype == f64) run(double{});
  else run(float{});
}
template <auto compute> void run_in_team(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_matrices(arguments, begin, end, {arguments->member}, compute);
}

constexpr auto qr_of = [](auto ways, const Decomposition& of, auto... rest) { ways.qr(of.size, of.wanted, rest...); };
constexpr auto eigh_of = [](auto ways, const Decomposition& of, auto... rest) {
  ways.eigh(of.size, of.wanted, rest...);
};
constexpr auto svd_of = [](auto ways, const Decomposition& of, auto... rest) { ways.svd(of.size, of.wanted, rest...); };
constexpr auto pinv_of = [](auto ways, const Decomposition& of, auto... rest) {
  ways.pinv(of.size, of.wanted, rest...);
};
constexpr auto lu_of = [](auto ways, const Decomposition& of, auto... rest) { ways.lu(of.size, of.wanted, rest...); };
constexpr auto exp_of = [](auto ways, const Decomposition& of, auto... rest) {
  ways.matrix_exp(of.size, of.wanted, rest...);
};

}  // namespace

BoundThunk bind_qr(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  return bind_each(graph, value, symbols, options, {.full = graph[value].op.as<Qr>()->full},
                   Decompositions<float>::room_for_qr, Decompositions<double>::room_for_qr, 4, run_in_team<qr_of>);
}
void run_qr(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_matrices(arguments, begin, end, {}, qr_of);
}

BoundThunk bind_eigh(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  return bind_each(graph, value, symbols, options, {.vectors = graph[value].op.as<Eigh>()->vectors},
                   Decompositions<float>::room_for_eigh, Decompositions<double>::room_for_eigh, 12,
                   run_in_team<eigh_of>);
}
void run_eigh(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_matrices(arguments, begin, end, {}, eigh_of);
}

BoundThunk bind_svd(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  return bind_each(graph, value, symbols, options, {.vectors = graph[value].op.as<Svd>()->vectors},
                   Decompositions<float>::room_for_svd, Decompositions<double>::room_for_svd, 24, run_in_team<svd_of>);
}
void run_svd(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_matrices(arguments, begin, end, {}, svd_of);
}

BoundThunk bind_pinv(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  const Value& v = graph[value];
  const Pinv& op = *v.op.as<Pinv>();
  const Shape made = v.spec.shape.evaluated(symbols);
  const double by_sizes = 10 * epsilon_of(v.spec.dtype) * static_cast<double>(std::max(made[-1], made[-2]));
  return bind_each(graph, value, symbols, options,
                   {.symmetric = op.hermitian, .threshold = op.rcond == Pinv::by_sizes ? by_sizes : op.rcond},
                   Decompositions<float>::room_for_pinv, Decompositions<double>::room_for_pinv, 26,
                   run_in_team<pinv_of>);
}
void run_pinv(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_matrices(arguments, begin, end, {}, pinv_of);
}

BoundThunk bind_lu(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  return bind_each(graph, value, symbols, options, {}, Decompositions<float>::room_for_lu,
                   Decompositions<double>::room_for_lu, 1, run_in_team<lu_of>);
}
void run_lu(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_matrices(arguments, begin, end, {}, lu_of);
}

BoundThunk bind_matrix_exp(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  return bind_each(graph, value, symbols, options, {}, Decompositions<float>::room_for_matrix_exp,
                   Decompositions<double>::room_for_matrix_exp, 20, nullptr);
}
void run_matrix_exp(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_matrices(arguments, begin, end, {}, exp_of);
}

}  // namespace gradus::library
