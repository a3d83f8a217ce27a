/// Calls of factorizations as thunks: matrices are divided among threads, or a team works on each together.
#pragma once
#include "gradus/backend/cpu/kernels/factorization.h"
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/run/data_image.h"

namespace gradus::library::factors {

/// One op on some matrices.
struct Call {
  DType dtype;
  Sizes sizes;
  std::int64_t result;      // elements of one
  std::int64_t own_begin;   // of a worker's own memory in its scratch, behind the part that a team would share
  bool lower;               // of triangular ones
  int matrix, rhs, target;  // slots; without a right side rhs is the matrix
  int shared_slot;
};

/// Calls compute(call, matrix, right side, target, room that is shared, own room, team) for matrices [begin, end).
template <class Compute>
void run_each(const KernelArguments* arguments, std::int64_t begin, std::int64_t end, const Team& team,
              Compute compute) {
  const auto& call = *static_cast<const Call*>(arguments->data);
  auto* const scratch = static_cast<std::byte*>(arguments->scratch);
  void* const shared = team.member ? arguments->slots[call.shared_slot] : scratch;
  const auto run = [&]<class T>(T) {
    const std::int64_t matrix = call.sizes.n * call.sizes.n, rhs = call.sizes.n * call.sizes.columns;
    for (std::int64_t i = begin; i < end; ++i) {
      if (i > begin) team.meet();  // shared memory is free again
      compute(call, static_cast<const T*>(arguments->slots[call.matrix]) + i * matrix,
              static_cast<const T*>(arguments->slots[call.rhs]) + i * rhs,
              static_cast<T*>(arguments->slots[call.target]) + i * call.result, Room(shared),
              Room(team.member ? scratch : scratch + call.own_begin), team);
    }
  };
  if (call.dtype == f64) run(double{});
  else run(float{});
}

/// The operations of one matrix: `thirds` n^3 / 3, and `of_column` n^2 for each column beside it.
struct Operations {
  std::int64_t thirds = 0, of_column = 0;
};

/// The thunk of a call for `count` matrices, with the rooms that each type needs. From some size on a team works on a
/// matrix `together`.
BoundThunk bind_call(Call call, std::int64_t count, const Operations& operations, RoomBytes (*room_f32)(const Sizes&),
                     RoomBytes (*room_f64)(const Sizes&), KernelFunction together);

}  // namespace gradus::library::factors
