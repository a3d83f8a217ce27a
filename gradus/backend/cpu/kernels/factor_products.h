/// Parts of factorizations by blocks beside their panels: products by the tiles, triangular systems block by block,
/// transposes.
#pragma once
#include <algorithm>
#include "gradus/backend/cpu/kernels/factorization.h"
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/cpu/tiles/table.h"

namespace gradus::library::factors {

using cpu_backend::Product;

inline std::int64_t padded(std::int64_t columns) { return round_up(columns, vector_elements); }
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
inline Columns own_columns(const Team& team, std::int64_t columns) {
  const std::int64_t vectors = divide_up(columns, vector_elements);
  const auto first_of = [&](std::int64_t worker) {
    return std::min(columns, vectors * worker / team.size() * vector_elements);
  };
  return {first_of(team.worker()), first_of(team.worker() + 1)};
}

/// Products within matrices of n rows, with room for packing: for two operands of that size, but no more than a core
/// has near. Larger products are done in parts.
template <class T> class Multiplier {
 public:
  Multiplier(Room& own, std::int64_t n)
      : bytes_(std::min(most_bytes, 4 * n * n * static_cast<std::int64_t>(sizeof(T)) + least_bytes)),
        room_(own.take<std::byte>(bytes_)) {
    product_.dtype = dtype_of<T>();
  }

  struct Matrix {
    const T* begin;
    std::int64_t row, column;
  };
  /// c: [m, n] += a b. Either rows or columns of a and b are adjacent.
  void add(std::int64_t m, std::int64_t n, std::int64_t k, Matrix a, Matrix b, T* c, std::int64_t c_row) {
    if (m <= 0 || n <= 0 || k <= 0) return;
    Product& p = product_;
    p.m = m, p.n = n, p.k = k;
    p.a_row = a.row, p.a_column = a.column, p.b_row = b.row, p.b_column = b.column, p.c_row = c_row;
    p.resume = true;
    if (static_cast<std::int64_t>(cpu_backend::scratch_bytes(p)) <= bytes_)
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
  static constexpr std::int64_t least_bytes = 32 << 10, most_bytes = 1 << 20;
  std::int64_t bytes_;
  std::byte* room_;
  Product product_;
};

/// to[j][i] = from[i][j], exactly rows x columns of them.
template <class T>
void transpose(const T* from, std::int64_t rows, std::int64_t columns, std::int64_t from_pitch, T* to,
               std::int64_t to_pitch) {
  constexpr std::int64_t size = sizeof(T);
  const cpu_backend::Processor& processor = cpu_backend::processor();
  const std::int64_t lanes = processor.tiles.vector_bytes / size;
  const std::int64_t i_end = rows / lanes * lanes, j_end = columns / lanes * lanes;  // in whole squares
  if (i_end > 0 && j_end > 0) {
    const cpu_backend::PackShape shape{.rows = j_end,
                                       .columns = i_end,
                                       .source_row = from_pitch * size,
                                       .target_row = to_pitch * size,
                                       .panel = lanes * size};
    cpu_backend::tiles_of(processor.isa)->transpose[size / 8][0](from, to, &shape);
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

}  // namespace gradus::library::factors
