/// Factorizations of dense matrices by blocks: panels by functions of blocks (factor_blocks.h), everything else by the
/// tiles of matrix products. Small matrices are one block. A matrix is one thread's, or that of a team, whose members
/// have columns of their own and meet after each panel.
///
/// Every element of L, U and Cholesky's factor, and of a solution, is one chain of fused steps: its first value, minus
/// products in the order of k, at last divided by the diagonal. Rows of an upper triangular system take the k behind
/// their block of block_rows in ascending order, then those of the block in descending order.
#pragma once
#include "gradus/backend/cpu/kernels/factor_blocks.h"
#include "gradus/backend/cpu/run/thunk.h"
#include "gradus/base/divide.h"

namespace gradus::library::factors {

/// The threads that work on one matrix, as one of them sees it.
struct Team {
  const TeamMember* member = nullptr;  // null: one thread
  int worker() const { return member ? member->worker : 0; }
  int size() const { return member ? member->team : 1; }
  void meet() const {
    if (member) member->meet();
  }
};

/// Memory that is handed out from the front, by cache lines. Without memory it counts.
class Room {
 public:
  explicit Room(void* begin = nullptr) : begin_(round_up(reinterpret_cast<std::intptr_t>(begin), line)), now_(begin_) {}
  template <class T> T* take(std::int64_t count) {
    T* const taken = reinterpret_cast<T*>(now_);
    now_ += round_up(count * static_cast<std::int64_t>(sizeof(T)), line);
    return taken;
  }
  std::int64_t bytes() const { return now_ - begin_ + line; }

 private:
  static constexpr std::int64_t line = 64;
  std::intptr_t begin_, now_;
};

/// Memory that a factorization needs beside its operands: shared by the team, and of each member.
struct RoomBytes {
  std::int64_t shared = 0, own = 0;
};

/// The bytes that take(shared, own) takes.
template <class Take> RoomBytes bytes_taken(const Take& take) {
  Room shared, own;
  take(shared, own);
  return {shared.bytes(), own.bytes()};
}

/// The number of matrices in [..., m, n].
inline std::int64_t matrices_in(const Shape& shape) {
  std::int64_t count = 1;
  for (int i = 0; i < shape.rank() - 2; ++i) count *= shape[i];
  return count;
}

/// From so many rows on a team works on a matrix, if there are at most so many of them.
constexpr std::int64_t fewest_rows_of_teams = 192, most_matrices_of_teams = 8;

/// Matrices of `n` rows, and right sides of `columns`.
struct Sizes {
  std::int64_t n = 0, columns = 0;
  bool is_block() const { return n <= block_rows; }
};

/// Ways of one type; each for one matrix, row by row. Operands may not overlap, but for triangular_solve y may be b.
template <class T> struct Ways {
  static RoomBytes room_for_solve(const Sizes&);
  static void solve(const Sizes&, const T* a, const T* b, T* y, Room shared, Room own, const Team&);
  static RoomBytes room_for_triangular_solve(const Sizes&);
  static void triangular_solve(const Sizes&, bool lower, const T* a, const T* b, T* y, Room shared, Room own,
                               const Team&);
  static RoomBytes room_for_cholesky(const Sizes&);
  static void cholesky(const Sizes&, const T* a, T* y, Room shared, Room own, const Team&);
  static RoomBytes room_for_inverse(const Sizes&);
  static void inverse(const Sizes&, const T* a, T* y, Room shared, Room own, const Team&);
  static RoomBytes room_for_determinant(const Sizes&);
  /// y: one number; 0 if a pivot is. Scaled: two, y[0] * 2^y[1], the first from 3/4 to 3/2 unless it is 0, infinite or
  /// NaN.
  static void determinant(const Sizes&, bool scaled, const T* a, T* y, Room shared, Room own, const Team&);
};
extern template struct Ways<float>;
extern template struct Ways<double>;

}  // namespace gradus::library::factors
