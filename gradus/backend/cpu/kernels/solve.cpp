/// Solutions of linear systems, Cholesky's factor, determinants and inverses. Decision 388 has the reasons.
#include "gradus/ops/solve.h"
#include <algorithm>
#include "gradus/backend/cpu/kernels/factor_calls.h"
#include "gradus/backend/cpu/tiles/used_tiles.h"
#include "gradus/ops/solve_ops.h"

namespace gradus::library {

using namespace factors;

BoundThunk factors::bind_call(Call call, std::int64_t count, const Operations& operations,
                              RoomBytes (*room_f32)(const Sizes&), RoomBytes (*room_f64)(const Sizes&),
                              KernelFunction together) {
  const RoomBytes room = (call.dtype == f64 ? room_f64 : room_f32)(call.sizes);
  const std::int64_t n = call.sizes.n, elements = count * (n * n + 2 * n * call.sizes.columns);
  BoundThunk bound{.extent = call.result == 0 ? 0 : count};
  if (bound.extent > 0) bound.tiles = cpu_backend::tiles_for_any_size(call.dtype);
  bound.bytes = elements * size_of(call.dtype);
  // Small ones take longer than their operations.
  bound.flops = call.sizes.is_block()
                    ? 2 * count * n * n * (n + call.sizes.columns)
                    : count * n * n * (operations.thirds * n / 3 + operations.of_column * call.sizes.columns);
  bound.worker_scratch = room.shared + room.own;
  call.own_begin = room.shared;
  if (n >= fewest_rows_of_teams && count <= most_matrices_of_teams) {
    bound.together = together;
    bound.shared_scratch = room.shared, bound.scratch_together = room.own;
    bound.nested_meetings = count * 2 * divide_up(n, block_rows);
  }
  bound.data = std::make_shared<Call>(call);
  bound.image = image_of<Call>;
  return bound;
}

namespace {

/// [..., n, n] and [..., n, columns].
Call systems(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options, bool lower) {
  const Value& v = graph[value];
  const Shape matrix = graph[v.in[0]].spec.shape.evaluated(symbols), result = v.spec.shape.evaluated(symbols);
  return {.dtype = v.spec.dtype,
          .sizes = {matrix.back(), result.back()},
          .result = matrix.back() * result.back(),
          .own_begin = 0,
          .lower = lower,
          .matrix = storage_of(graph, v.in[0]),
          .rhs = storage_of(graph, v.in.back()),
          .target = value,
          .shared_slot = options.shared_slot};
}
std::int64_t count_of(const Graph& graph, int value, Symbols symbols) {
  return matrices_in(graph[graph[value].in[0]].spec.shape.evaluated(symbols));
}

template <class T>
void solve_one(const Call& call, const T* a, const T* b, T* y, Room shared, Room own, const Team& team) {
  Ways<T>::solve(call.sizes, a, b, y, shared, own, team);
}
template <class T>
void solve_triangle(const Call& call, const T* a, const T* b, T* y, Room shared, Room own, const Team& team) {
  Ways<T>::triangular_solve(call.sizes, call.lower, a, b, y, shared, own, team);
}
template <class T> void factor(const Call& call, const T* a, const T*, T* y, Room shared, Room own, const Team& team) {
  Ways<T>::cholesky(call.sizes, a, y, shared, own, team);
}
template <class T>
void find_determinant(const Call& call, const T* a, const T*, T* y, Room shared, Room own, const Team& team) {
  Ways<T>::determinant(call.sizes, call.result == 2, a, y, shared, own, team);
}
template <class T> void invert(const Call& call, const T* a, const T*, T* y, Room shared, Room own, const Team& team) {
  Ways<T>::inverse(call.sizes, a, y, shared, own, team);
}
constexpr auto solve_each = [](auto&&... of) { solve_one(of...); };
constexpr auto solve_triangles = [](auto&&... of) { solve_triangle(of...); };
constexpr auto factor_each = [](auto&&... of) { factor(of...); };
constexpr auto find_determinants = [](auto&&... of) { find_determinant(of...); };
constexpr auto invert_each = [](auto&&... of) { invert(of...); };

template <auto compute> void run_together(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_each(arguments, begin, end, {arguments->member}, compute);
}

}  // namespace

BoundThunk bind_solve(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  return bind_call(systems(graph, value, symbols, options, false), count_of(graph, value, symbols), {2, 2},
                   Ways<float>::room_for_solve, Ways<double>::room_for_solve, run_together<solve_each>);
}
void run_solve(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_each(arguments, begin, end, {}, solve_each);
}

BoundThunk bind_triangular_solve(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  const bool lower = graph[value].op.as<TriangularSolve>()->lower;
  return bind_call(systems(graph, value, symbols, options, lower), count_of(graph, value, symbols), {0, 1},
                   Ways<float>::room_for_triangular_solve, Ways<double>::room_for_triangular_solve,
                   run_together<solve_triangles>);
}
void run_triangular_solve(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_each(arguments, begin, end, {}, solve_triangles);
}

BoundThunk bind_cholesky(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  return bind_call(systems(graph, value, symbols, options, true), count_of(graph, value, symbols), {1, 0},
                   Ways<float>::room_for_cholesky, Ways<double>::room_for_cholesky, run_together<factor_each>);
}
void run_cholesky(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_each(arguments, begin, end, {}, factor_each);
}

namespace {
/// For `result` numbers of each matrix.
BoundThunk bind_determinants(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options,
                             std::int64_t result) {
  const Value& v = graph[value];
  const Call call{.dtype = v.spec.dtype,
                  .sizes = {graph[v.in[0]].spec.shape.evaluated(symbols).back(), 0},
                  .result = result,
                  .own_begin = 0,
                  .lower = false,
                  .matrix = storage_of(graph, v.in[0]),
                  .rhs = storage_of(graph, v.in[0]),
                  .target = value,
                  .shared_slot = options.shared_slot};
  return bind_call(call, count_of(graph, value, symbols), {2, 0}, Ways<float>::room_for_determinant,
                   Ways<double>::room_for_determinant, run_together<find_determinants>);
}
}  // namespace

BoundThunk bind_det(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  return bind_determinants(graph, value, symbols, options, 1);
}
BoundThunk bind_scaled_det(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  return bind_determinants(graph, value, symbols, options, 2);
}
void run_det(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_each(arguments, begin, end, {}, find_determinants);
}

BoundThunk bind_inverse(const Graph& graph, int value, Symbols symbols, const LibraryOptions& options) {
  return bind_call(systems(graph, value, symbols, options, false), count_of(graph, value, symbols), {6, 0},
                   Ways<float>::room_for_inverse, Ways<double>::room_for_inverse, run_together<invert_each>);
}
void run_inverse(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  run_each(arguments, begin, end, {}, invert_each);
}

}  // namespace gradus::library
