/// Ways to solve systems, to factor and to invert matrices. Decision 388 has the reasons.
#include "gradus/backend/cpu/kernels/factorization.h"
#include <algorithm>
#include "gradus/backend/cpu/kernels/elimination.h"
#include "gradus/backend/cpu/kernels/factor_products.h"

namespace gradus::library::factors {
namespace {

constexpr std::int64_t strip_columns = 128;  // of an inverse, which a thread finds from first to last

// Solving.

template <class T> struct SolveRoom {
  SolveRoom(const Sizes& sizes, Room& shared, Room& own)
      : begin(padded(sizes.n)),
        columns(padded(sizes.columns)),
        elimination(shared, sizes.n, begin + columns),
        negated(shared.take<T>(sizes.n * columns)),
        multiply(own, sizes.n) {}
  std::int64_t begin, columns;  // of the right side
  Elimination<T> elimination;
  T* negated;
  Multiplier<T> multiply;
};
template <class T> struct SmallSolveRoom {
  SmallSolveRoom(const Sizes& sizes, Room& own) : elimination(own, sizes.n, sizes.n + sizes.columns, false) {}
  SmallElimination<T> elimination;
};

template <class T> void solve_small(const Sizes& sizes, const T* a, const T* b, T* y, Room own) {
  const SmallSolveRoom<T> room(sizes, own);
  const auto& e = room.elimination;
  const std::int64_t n = sizes.n, columns = sizes.columns;
  for (std::int64_t i = 0; i < n; ++i) {
    T* const end = std::copy_n(b + i * columns, columns, std::copy_n(a + i * n, n, e.row(i)));
    std::fill(end, e.row(i) + e.pitch(), T(0));
  }
  e.run();
  copy_rows(e.row(0) + n, n, columns, e.pitch(), y, columns);
  block_functions<T>().solve(e.upper(), y, columns, columns, nullptr, 0);
}

// An inverse: X = U^-1 L^-1, whose columns are then exchanged. L^-1 is lower triangular, so that a strip of its columns
// begins with its first row.

template <class T> struct InverseRoom {
  InverseRoom(const Sizes& sizes, Room& shared, Room& own)
      : elimination(shared, sizes.n, sizes.n),
        order(shared.take<std::int64_t>(sizes.n)),
        strip(own.take<T>(sizes.n * strip_columns)),
        negated(own.take<T>(sizes.n * strip_columns)),
        multiply(own, sizes.n) {}
  Elimination<T> elimination;
  std::int64_t* order;
  T *strip, *negated;
  Multiplier<T> multiply;
};
template <class T> struct SmallInverseRoom {
  SmallInverseRoom(const Sizes& sizes, Room& own)
      : elimination(own, sizes.n, sizes.n, true),
        columns(padded(sizes.n)),
        x(own.take<T>(sizes.n * columns)),
        order(own.take<std::int64_t>(sizes.n)) {}
  SmallElimination<T> elimination;
  std::int64_t columns;
  T* x;
  std::int64_t* order;
};

template <class T>
void write_columns(const T* x, std::int64_t pitch, std::int64_t n, std::int64_t count, const std::int64_t* order,
                   T* y) {
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < count; ++j) y[i * n + order[j]] = x[i * pitch + j];
}

template <class T> void invert_small(const Sizes& sizes, const T* a, T* y, Room own) {
  const SmallInverseRoom<T> room(sizes, own);
  const auto& e = room.elimination;
  const std::int64_t n = sizes.n;
  e.set(a);
  if (n <= few_rows) {
    e.run();
    block_functions<T>().invert_few(e.row(0), n, room.x);
    find_order(e.pivots(), n, n, room.order);
    return write_columns(room.x, n, n, n, room.order, y);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    std::fill_n(room.x + i * room.columns, room.columns, T(0));
    room.x[i * room.columns + i] = 1;
  }
  e.run();
  const auto& blocks = block_functions<T>();
  blocks.solve(e.lower(), room.x, room.columns, room.columns, nullptr, 0);
  blocks.solve(e.upper(), room.x, room.columns, room.columns, nullptr, 0);
  find_order(e.pivots(), n, n, room.order);
  write_columns(room.x, room.columns, n, n, room.order, y);
}

template <class T>
void invert_strip(const InverseRoom<T>& room, std::int64_t n, std::int64_t first, T* y, Multiplier<T>& multiply) {
  const std::int64_t count = std::min(strip_columns, n - first), columns = padded(count);
  clear(room.strip, n, columns, strip_columns);
  for (std::int64_t j = 0; j < count; ++j) room.strip[(first + j) * strip_columns + j] = 1;
  const Columns all{0, columns};
  solve_by_blocks(room.elimination.lower(), all, room.strip, strip_columns, room.negated, strip_columns, first,
                  multiply);
  solve_by_blocks(room.elimination.upper(), all, room.strip, strip_columns, room.negated, strip_columns, 0, multiply);
  write_columns(room.strip, strip_columns, n, count, room.order + first, y);
}

// Cholesky: U' U, whose transpose is L. Every block of rows is a product of those above it, a block on the diagonal and
// a triangular system.

template <class T> struct CholeskyRoom {
  CholeskyRoom(const Sizes& sizes, Room& shared, Room& own)
      : pitch(pitch_for<T>(padded(sizes.n))),
        upper(shared.take<T>(sizes.n * pitch)),
        negated(shared.take<T>(sizes.n * pitch)),
        multiply(own, sizes.n) {}
  std::int64_t pitch;
  T *upper, *negated;
  Multiplier<T> multiply;
};
template <class T> struct SmallCholeskyRoom {
  SmallCholeskyRoom(const Sizes& sizes, Room& own) : pitch(padded(sizes.n)), upper(own.take<T>(sizes.n * pitch)) {}
  std::int64_t pitch;
  T* upper;
};

/// Rows [begin, end) of the lower triangle from U.
template <class T>
void write_lower(const T* upper, std::int64_t pitch, std::int64_t n, std::int64_t begin, std::int64_t end, T* y) {
  transpose(upper + begin, end, end - begin, pitch, y + begin * n, n);
  for (std::int64_t i = begin; i < end; ++i) std::fill(y + i * n + i + 1, y + (i + 1) * n, T(0));
}

template <class T> void cholesky_small(const Sizes& sizes, const T* a, T* y, Room own) {
  if (sizes.n <= few_rows) return block_functions<T>().factor_few(a, y, sizes.n);
  const SmallCholeskyRoom<T> room(sizes, own);
  const std::int64_t n = sizes.n;
  transpose(a, n, n, n, room.upper, room.pitch);
  for (std::int64_t i = 0; i < n; ++i)
    std::fill(room.upper + i * room.pitch + n, room.upper + (i + 1) * room.pitch, T(0));
  block_functions<T>().factor_symmetric(room.upper, n, room.pitch);
  write_lower(room.upper, room.pitch, n, 0, n, y);
}

template <class T> class CholeskyByBlocks {
 public:
  CholeskyByBlocks(const Sizes& sizes, const T* a, T* y, Room& shared, Room& own, const Team& team)
      : n_(sizes.n), width_(padded(sizes.n)), a_(a), y_(y), team_(team), room_(sizes, shared, own) {}

  void run() {
    for (std::int64_t row = 0; row < n_; row += block_rows) {
      const std::int64_t rows = std::min(block_rows, n_ - row);
      const Columns own = own_part(row, rows);
      begin_block(row, rows, own);
      if (team_.worker() == 0) block_functions<T>().factor_symmetric(at(row, row), rows, room_.pitch);
      team_.meet();
      finish_block(row, rows, own);
      team_.meet();
    }
    const std::int64_t begin = first_row(team_.worker()), end = first_row(team_.worker() + 1);
    for (std::int64_t row = begin; row < end; row += block_rows)
      write_lower(room_.upper, room_.pitch, n_, row, std::min(row + block_rows, end), y_);
  }

 private:
  T* at(std::int64_t row, std::int64_t column) const { return room_.upper + row * room_.pitch + column; }
  std::int64_t first_row(int worker) const { return n_ * worker / team_.size(); }

  /// The columns from `row` on that are this member's; the block on the diagonal is worker 0's.
  Columns own_part(std::int64_t row, std::int64_t rows) const {
    Columns own = own_columns(team_, width_ - row);
    const std::int64_t diagonal = std::min(padded(rows), width_ - row);
    if (team_.worker() == 0) own.end = std::max(own.end, diagonal);
    else own.begin = std::max(own.begin, diagonal), own.end = std::max(own.end, own.begin);
    return {row + own.begin, row + own.end};
  }

  void begin_block(std::int64_t row, std::int64_t rows, Columns own) {
    if (own.count() <= 0) return;
    const std::int64_t end = std::min(own.end, n_);
    transpose(a_ + own.begin * n_ + row, end - own.begin, rows, n_, at(row, own.begin), room_.pitch);
    clear(at(row, end), rows, own.end - end, room_.pitch);
    room_.multiply.add(rows, own.count(), row, {room_.negated + row, 1, room_.pitch},
                       {at(0, own.begin), room_.pitch, 1}, at(row, own.begin), room_.pitch);
  }
  void finish_block(std::int64_t row, std::int64_t rows, Columns own) {
    own.begin = std::max(own.begin, row + rows);
    if (own.count() <= 0) return;
    const Triangle<T> diagonal{.a = at(row, row), .n = rows, .row = 1, .column = room_.pitch};
    block_functions<T>().solve(diagonal, at(row, own.begin), own.count(), room_.pitch,
                               room_.negated + row * room_.pitch + own.begin, room_.pitch);
  }

  const std::int64_t n_, width_;
  const T* const a_;
  T* const y_;
  const Team& team_;
  CholeskyRoom<T> room_;
};

template <class T> struct TriangularRoom {
  TriangularRoom(const Sizes& sizes, Room& shared, Room& own)
      : pitch(padded(sizes.columns)), negated(shared.take<T>(sizes.n * pitch)), multiply(own, sizes.n) {}
  std::int64_t pitch;
  T* negated;
  Multiplier<T> multiply;
};

}  // namespace

template <class T> RoomBytes Ways<T>::room_for_solve(const Sizes& sizes) {
  return bytes_taken([&](Room& shared, Room& own) {
    if (sizes.is_block()) SmallSolveRoom<T>(sizes, own);
    else SolveRoom<T>(sizes, shared, own);
  });
}
template <class T>
void Ways<T>::solve(const Sizes& sizes, const T* a, const T* b, T* y, Room shared, Room own, const Team& team) {
  if (sizes.is_block()) return solve_small(sizes, a, b, y, own);
  SolveRoom<T> room(sizes, shared, own);
  const auto& e = room.elimination;
  const std::int64_t n = sizes.n;
  e.set(a, team);
  for (std::int64_t i = n * team.worker() / team.size(); i < n * (team.worker() + 1) / team.size(); ++i)
    std::copy_n(b + i * sizes.columns, sizes.columns, e.row(i) + room.begin);
  e.run(false, room.multiply, team);
  const Columns columns = own_columns(team, room.columns);
  T* const x = e.row(0) + room.begin;
  solve_by_blocks(e.upper(), columns, x, e.pitch(), room.negated, room.columns, 0, room.multiply);
  const std::int64_t end = std::min(columns.end, sizes.columns);
  if (end > columns.begin)
    copy_rows(x + columns.begin, n, end - columns.begin, e.pitch(), y + columns.begin, sizes.columns);
}

template <class T> RoomBytes Ways<T>::room_for_triangular_solve(const Sizes& sizes) {
  return bytes_taken([&](Room& shared, Room& own) {
    if (!sizes.is_block()) TriangularRoom<T>(sizes, shared, own);
  });
}
template <class T>
void Ways<T>::triangular_solve(const Sizes& sizes, bool lower, const T* a, const T* b, T* y, Room shared, Room own,
                               const Team& team) {
  const std::int64_t n = sizes.n, columns = sizes.columns;
  const Triangle<T> triangle{.a = a, .n = n, .row = n, .column = 1, .lower = lower};
  const Columns mine = sizes.is_block() ? Columns{0, columns} : own_columns(team, columns);
  if (y != b && mine.count() > 0) copy_rows(b + mine.begin, n, mine.count(), columns, y + mine.begin, columns);
  if (sizes.is_block()) return block_functions<T>().solve(triangle, y, columns, columns, nullptr, 0);
  TriangularRoom<T> room(sizes, shared, own);
  solve_by_blocks(triangle, mine, y, columns, room.negated, room.pitch, 0, room.multiply);
}

template <class T> RoomBytes Ways<T>::room_for_cholesky(const Sizes& sizes) {
  return bytes_taken([&](Room& shared, Room& own) {
    if (!sizes.is_block()) CholeskyRoom<T>(sizes, shared, own);
    else if (sizes.n > few_rows) SmallCholeskyRoom<T>(sizes, own);
  });
}
template <class T>
void Ways<T>::cholesky(const Sizes& sizes, const T* a, T* y, Room shared, Room own, const Team& team) {
  if (sizes.is_block()) return cholesky_small(sizes, a, y, own);
  CholeskyByBlocks<T>(sizes, a, y, shared, own, team).run();
}

template <class T> RoomBytes Ways<T>::room_for_inverse(const Sizes& sizes) {
  return bytes_taken([&](Room& shared, Room& own) {
    if (sizes.is_block()) SmallInverseRoom<T>(sizes, own);
    else InverseRoom<T>(sizes, shared, own);
  });
}
template <class T>
void Ways<T>::inverse(const Sizes& sizes, const T* a, T* y, Room shared, Room own, const Team& team) {
  if (sizes.is_block()) return invert_small(sizes, a, y, own);
  InverseRoom<T> room(sizes, shared, own);
  const std::int64_t n = sizes.n;
  room.elimination.set(a, team);
  room.elimination.run(true, room.multiply, team);
  if (team.worker() == 0) find_order(room.elimination.pivots(), n, panel_columns(n), room.order);
  team.meet();
  // The first strips take longest: members take strips in turn, and turn back at each end.
  const std::int64_t period = 2 * team.size(), own_first = team.worker(), own_second = period - 1 - team.worker();
  for (std::int64_t strip = 0; strip * strip_columns < n; ++strip)
    if (strip % period == own_first || strip % period == own_second)
      invert_strip(room, n, strip * strip_columns, y, room.multiply);
}

template <class T> RoomBytes Ways<T>::room_for_determinant(const Sizes& sizes) {
  return bytes_taken([&](Room& shared, Room& own) {
    if (sizes.is_block()) {
      SmallElimination<T>(own, sizes.n, sizes.n, false);
    } else {
      Elimination<T>(shared, sizes.n, sizes.n);
      Multiplier<T>(own, sizes.n);
    }
  });
}
template <class T>
void Ways<T>::determinant(const Sizes& sizes, bool scaled, const T* a, T* y, Room shared, Room own, const Team& team) {
  const std::int64_t n = sizes.n;
  const auto write = [&](const auto& e, std::int64_t panel) {
    const Pivots<T> pivots{e.row(0), e.pitch() + 1, e.pivots(), n, panel};
    if (scaled) write_scaled_product(pivots, y);
    else *y = product_of(pivots);
  };
  if (sizes.is_block()) {
    const SmallElimination<T> e(own, n, n, false);
    e.set(a);
    e.run();
    return write(e, n);
  }
  const Elimination<T> e(shared, n, n);
  Multiplier<T> multiply(own, n);
  e.set(a, team);
  e.run(false, multiply, team);
  if (team.worker() == 0) write(e, panel_columns(n));
}

template struct Ways<float>;
template struct Ways<double>;

}  // namespace gradus::library::factors
