/// Blocked LU with exchanges of rows, Cholesky's factor, triangular systems, inverses.
#include "gradus/backend/cpu/kernels/factorization.h"
#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/cpu/tiles/table.h"

namespace gradus::library::factors {
namespace {

using cpu_backend::Product;

/// Columns of a panel of LU. More of them mean fewer passes over the rest of the matrix and longer chains.
constexpr std::int64_t panel_columns(std::int64_t n) { return n <= 768 ? 64 : 128; }
constexpr std::int64_t strip_columns = 128;      // of an inverse, which a thread finds from first to last
constexpr std::int64_t packing_bytes = 1 << 20;  // the most that products have for packing

std::int64_t padded(std::int64_t columns) { return round_up(columns, vector_elements); }
/// From a row to the next: an odd number of cache lines, so that rows fall into different sets of the cache.
template <class T> std::int64_t pitch_for(std::int64_t columns) {
  constexpr std::int64_t line = 64 / sizeof(T);
  return (divide_up(columns, line) | 1) * line;
}

template <class T> constexpr DType dtype_of() { return sizeof(T) == 8 ? f64 : f32; }

/// [begin, end) of this member's, of `columns`, by whole vectors.
struct Columns {
  std::int64_t begin, end;
  std::int64_t count() const { return end - begin; }
};
Columns own_columns(const Team& team, std::int64_t columns) {
  const std::int64_t vectors = divide_up(columns, vector_elements);
  const auto first_of = [&](std::int64_t worker) {
    return std::min(columns, vectors * worker / team.size() * vector_elements);
  };
  return {first_of(team.worker()), first_of(team.worker() + 1)};
}

/// Products with what they need for packing.
template <class T> class Multiplier {
 public:
  explicit Multiplier(Room& own) : room_(own.take<std::byte>(packing_bytes)) { product_.dtype = dtype_of<T>(); }

  struct Matrix {
    const T* begin;
    std::int64_t row, column;
  };
  /// c: [m, n] += a b. Of a and b either rows or columns are adjacent.
  void add(std::int64_t m, std::int64_t n, std::int64_t k, Matrix a, Matrix b, T* c, std::int64_t c_row) {
    if (m <= 0 || n <= 0 || k <= 0) return;
    Product& p = product_;
    p.m = m, p.n = n, p.k = k;
    p.a_row = a.row, p.a_column = a.column, p.b_row = b.row, p.b_column = b.column, p.c_row = c_row;
    p.resume = true;
    if (static_cast<std::int64_t>(cpu_backend::scratch_bytes(p)) <= packing_bytes)
      return cpu_backend::run_units(p, a.begin, b.begin, c, 0, cpu_backend::units(p), room_);
    if (n > block_rows) {
      const std::int64_t half = round_up(n / 2, block_rows);
      add(m, half, k, a, b, c, c_row);
      return add(m, n - half, k, a, {b.begin + half * b.column, b.row, b.column}, c + half, c_row);
    }
    const std::int64_t half = m / 2;  // a few rows are not packed
    add(half, n, k, a, b, c, c_row);
    add(m - half, n, k, {a.begin + half * a.row, a.row, a.column}, b, c + half * c_row, c_row);
  }

 private:
  std::byte* room_;
  Product product_;
};

/// to[j][i] = from[i][j], exactly rows x columns of them.
template <class T>
void transpose(const T* from, std::int64_t rows, std::int64_t columns, std::int64_t from_pitch, T* to,
               std::int64_t to_pitch) {
  const bool avx512 = cpu_backend::isa() == cpu_backend::Isa::avx512;
  constexpr std::int64_t size = sizeof(T);
  const std::int64_t lanes = (avx512 ? 64 : 32) / size;
  const std::int64_t i_end = rows / lanes * lanes, j_end = columns / lanes * lanes;  // in whole squares
  if (i_end > 0 && j_end > 0) {
    const auto& table = avx512 ? cpu_backend::gradus_tiles_avx512 : cpu_backend::gradus_tiles_avx2;
    const cpu_backend::PackShape shape{.rows = j_end,
                                       .columns = i_end,
                                       .source_row = from_pitch * size,
                                       .target_row = to_pitch * size,
                                       .panel = lanes * size};
    table.transpose[size / 8][0](from, to, &shape);
  }
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = i < i_end ? j_end : 0; j < columns; ++j) to[j * to_pitch + i] = from[i * from_pitch + j];
}

template <class T>
void copy_rows(const T* from, std::int64_t rows, std::int64_t columns, std::int64_t from_pitch, T* to,
               std::int64_t to_pitch) {
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(from + i * from_pitch, columns, to + i * to_pitch);
}
template <class T> void clear(T* x, std::int64_t rows, std::int64_t columns, std::int64_t pitch) {
  for (std::int64_t i = 0; i < rows; ++i) std::fill_n(x + i * pitch, columns, T(0));
}

/// Columns `columns` of y become those of triangle^-1 y, block by block. negated: as y, receives -y.
template <class T>
void solve_by_blocks(const Triangle<T>& t, Columns columns, T* y, std::int64_t pitch, T* negated,
                     std::int64_t negated_pitch, std::int64_t first, Multiplier<T>& multiply) {
  if (columns.count() <= 0) return;
  const auto& blocks = block_functions<T>();
  const std::int64_t count = divide_up(t.n, block_rows);
  for (std::int64_t step = first / block_rows; step < count; ++step) {
    const std::int64_t row = (t.lower ? step : count - 1 - step) * block_rows, rows = std::min(block_rows, t.n - row);
    const std::int64_t known = t.lower ? first : row + rows, past = t.lower ? row : t.n;
    T* const target = y + row * pitch + columns.begin;
    multiply.add(rows, columns.count(), past - known, {t.a + row * t.row + known * t.column, t.row, t.column},
                 {negated + known * negated_pitch + columns.begin, negated_pitch, 1}, target, pitch);
    Triangle<T> diagonal = t;
    diagonal.a += row * (t.row + t.column), diagonal.n = rows;
    blocks.solve(diagonal, target, columns.count(), pitch, negated + row * negated_pitch + columns.begin,
                 negated_pitch);
  }
}

/// LU = P a in place, with what stands beside a: L and U are where a was.
template <class T> class Elimination {
 public:
  /// `width`: columns of a and of what stands beside it, from padded(n) on.
  Elimination(Room& shared, std::int64_t n, std::int64_t width)
      : n_(n),
        width_(padded(width)),
        pitch_(pitch_for<T>(width_)),
        panel_pitch_(pitch_for<T>(n + 2 * vector_elements)),
        a_(shared.take<T>(n * pitch_)),
        panel_(shared.take<T>(panel_columns(n) * panel_pitch_)),
        upper_(shared.take<T>(2 * panel_columns(n) * narrow_columns)),
        pivots_(shared.take<std::int64_t>(n)) {}

  T* row(std::int64_t i) const { return a_ + i * pitch_; }
  std::int64_t pitch() const { return pitch_; }
  Triangle<T> upper() const { return {.a = a_, .n = n_, .row = pitch_, .column = 1, .lower = false}; }
  Triangle<T> lower() const { return {.a = a_, .n = n_, .row = pitch_, .column = 1, .unit = true}; }
  const std::int64_t* pivots() const { return pivots_; }

  /// Rows [begin, end) of the matrix, and zeros beside them.
  void set(const T* a, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = begin; i < end; ++i) {
      std::copy_n(a + i * n_, n_, row(i));
      std::fill(row(i) + n_, row(i) + width_, T(0));
    }
  }
  /// The members' own rows.
  void set(const T* a, const Team& team) const {
    set(a, n_ * team.worker() / team.size(), n_ * (team.worker() + 1) / team.size());
  }

  /// Without `keep_lower` L is not kept.
  void run(bool keep_lower, Multiplier<T>& multiply, const Team& team) const {
    team.meet();
    for (std::int64_t column = 0; column < n_; column += panel_columns(n_)) {
      const std::int64_t columns = std::min(panel_columns(n_), n_ - column);
      if (team.worker() == 0) factor_panel(column, columns, keep_lower, multiply);
      team.meet();
      if (keep_lower) exchange(column, columns, own_columns(team, column));
      const std::int64_t behind = column + columns;
      Columns own = own_columns(team, width_ - behind);
      own.begin += behind, own.end += behind;
      exchange(column, columns, own);
      eliminate(column, columns, own, multiply);
      team.meet();
    }
  }

 private:
  void factor_panel(std::int64_t column, std::int64_t columns, bool keep_lower, Multiplier<T>& multiply) const {
    const std::int64_t m = n_ - column;
    transpose(row(column) + column, m, columns, pitch_, panel_, panel_pitch_);
    for (std::int64_t first = 0; first < columns; first += narrow_columns) {
      const std::int64_t count = std::min(narrow_columns, columns - first);
      if (first > 0) apply_before(first, count, m, multiply);
      block_functions<T>().factor_columns(panel_, m, columns, panel_pitch_, first, count, pivots_ + column);
    }
    transpose(panel_, columns, keep_lower ? m : columns, panel_pitch_, row(column) + column, pitch_);
    for (std::int64_t k = 0; k < columns; ++k)
      for (std::int64_t i = columns; i < m; ++i) panel_[k * panel_pitch_ + i] = -panel_[k * panel_pitch_ + i];
  }

  /// Applies the columns of the panel before `first` to the next ones: L^-1 of their upper part, and a product.
  void apply_before(std::int64_t first, std::int64_t count, std::int64_t m, Multiplier<T>& multiply) const {
    T* const u = upper_;
    T* const negated = upper_ + panel_columns(n_) * narrow_columns;
    T* const next = panel_ + first * panel_pitch_;
    for (std::int64_t k = 0; k < first; ++k)
      for (std::int64_t j = 0; j < narrow_columns; ++j)
        u[k * narrow_columns + j] = j < count ? next[j * panel_pitch_ + k] : T(0);
    block_functions<T>().solve(panel_lower(first), u, narrow_columns, narrow_columns, negated, narrow_columns);
    for (std::int64_t j = 0; j < count; ++j)
      for (std::int64_t k = 0; k < first; ++k) next[j * panel_pitch_ + k] = u[k * narrow_columns + j];
    multiply.add(count, m - first, first, {negated, 1, narrow_columns}, {panel_ + first, panel_pitch_, 1}, next + first,
                 panel_pitch_);
  }
  /// The upper left part of the panel's L.
  Triangle<T> panel_lower(std::int64_t n) const {
    return {.a = panel_, .n = n, .row = 1, .column = panel_pitch_, .unit = true};
  }

  void exchange(std::int64_t column, std::int64_t count, Columns own) const {
    for (std::int64_t k = column; k < column + count; ++k)
      if (const std::int64_t pivot = column + pivots_[k]; pivot != k)
        std::swap_ranges(row(k) + own.begin, row(k) + own.end, row(pivot) + own.begin);
  }
  void eliminate(std::int64_t column, std::int64_t count, Columns own, Multiplier<T>& multiply) const {
    if (own.count() <= 0) return;
    T* const upper = row(column) + own.begin;
    const auto& blocks = block_functions<T>();
    blocks.solve(panel_lower(count), upper, own.count(), pitch_, nullptr, 0);
    multiply.add(n_ - column - count, own.count(), count, {panel_ + count, 1, panel_pitch_}, {upper, pitch_, 1},
                 row(column + count) + own.begin, pitch_);
  }

  std::int64_t n_, width_, pitch_, panel_pitch_;
  T *a_, *panel_, *upper_;
  std::int64_t* pivots_;  // counted from the first row of their panel
};

/// A matrix of one block.
template <class T> class SmallElimination {
 public:
  SmallElimination(Room& room, std::int64_t n, std::int64_t width, bool keep_lower)
      : n_(n),
        width_(n <= few_rows ? width : padded(width)),
        a_(room.take<T>(n * width_)),
        lower_(keep_lower && n > few_rows ? room.take<T>(n * n) : nullptr),
        pivots_(room.take<std::int64_t>(n)) {}
  T* row(std::int64_t i) const { return a_ + i * width_; }
  std::int64_t pitch() const { return width_; }
  const std::int64_t* pivots() const { return pivots_; }
  Triangle<T> upper() const { return {.a = a_, .n = n_, .row = width_, .column = 1, .lower = false}; }
  Triangle<T> lower() const { return {.a = lower_, .n = n_, .row = 1, .column = n_, .unit = true}; }
  /// The matrix, and zeros beside it.
  void set(const T* a) const {
    if (width_ == n_) return static_cast<void>(std::copy_n(a, n_ * n_, a_));
    for (std::int64_t i = 0; i < n_; ++i) std::fill(std::copy_n(a + i * n_, n_, row(i)), row(i) + width_, T(0));
  }
  void run() const {
    if (n_ <= few_rows) block_functions<T>().eliminate_few(a_, n_, width_, pivots_);
    else block_functions<T>().eliminate(a_, n_, width_, width_, lower_, pivots_);
  }

 private:
  std::int64_t n_, width_;
  T *a_, *lower_;
  std::int64_t* pivots_;
};

/// Where row i of P a stood in a.
void find_order(const std::int64_t* pivots, std::int64_t n, std::int64_t panel, std::int64_t* order) {
  std::iota(order, order + n, 0);
  for (std::int64_t k = 0; k < n; ++k) std::swap(order[k], order[k / panel * panel + pivots[k]]);
}

/// U's diagonal, elements `step` apart, with the sign of the exchanges.
template <class T> struct Pivots {
  const T* u;
  std::int64_t step;
  const std::int64_t* places;
  std::int64_t n, panel;
  T operator[](std::int64_t k) const { return places[k] == k % panel ? u[k * step] : -u[k * step]; }
  bool has_zero() const {
    for (std::int64_t k = 0; k < n; ++k)
      if (u[k * step] == 0) return true;
    return false;
  }
};

/// 0 if one is, whatever the others are.
template <class T> T product_of(const Pivots<T>& pivots) {
  if (pivots.has_zero()) return 0;
  T product = 1;
  for (std::int64_t k = 0; k < pivots.n; ++k) product *= pivots[k];
  return product;
}

/// x, a normal number, without its power of two: from 3/4 to 3/2; the power is added to `exponent`. Infinity and NaN
/// stay.
template <class T> T without_power(T x, std::int64_t& exponent) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  constexpr int digits = std::numeric_limits<T>::digits - 1;
  constexpr Bits mask = (Bits{1} << (8 * sizeof(T) - 1 - digits)) - 1, bias = mask / 2;
  const Bits bits = std::bit_cast<Bits>(x), power = bits >> digits & mask;
  if (power == mask) return x;
  const bool is_upper = (bits >> (digits - 1) & 1) != 0;  // from 3/2 on
  const Bits kept = is_upper ? bias - 1 : bias;
  exponent += static_cast<std::int64_t>(power) - static_cast<std::int64_t>(kept);
  return std::bit_cast<T>((bits & ~(mask << digits)) | kept << digits);
}

template <class T> void write_scaled_product(const Pivots<T>& pivots, T* y) {
  T factor = 1;
  std::int64_t exponent = 0;
  const bool is_zero = pivots.has_zero();
  for (std::int64_t k = 0; !is_zero && k < pivots.n; ++k)
    factor = without_power(factor * without_power(pivots[k], exponent), exponent);
  y[0] = is_zero ? T(0) : factor, y[1] = static_cast<T>(is_zero ? 0 : exponent);
}

/// What is needed for a computation that takes its memory from `shared` and `own`.
template <class Take> RoomBytes bytes_taken(const Take& take) {
  Room shared, own;
  take(shared, own);
  return {shared.bytes(), own.bytes()};
}

// Solving.

template <class T> struct SolveRoom {
  SolveRoom(const Sizes& sizes, Room& shared, Room& own)
      : begin(padded(sizes.n)),
        columns(padded(sizes.columns)),
        elimination(shared, sizes.n, begin + columns),
        negated(shared.take<T>(sizes.n * columns)),
        multiply(own) {}
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
        multiply(own) {}
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
        multiply(own) {}
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
      : pitch(padded(sizes.columns)), negated(shared.take<T>(sizes.n * pitch)), multiply(own) {}
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
      Multiplier<T>{own};
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
  Multiplier<T> multiply(own);
  e.set(a, team);
  e.run(false, multiply, team);
  if (team.worker() == 0) write(e, panel_columns(n));
}

template struct Ways<float>;
template struct Ways<double>;

}  // namespace gradus::library::factors
