/// LU with exchanges of rows, by panels or as one block, and determinants from its pivots.
#pragma once
#include <bit>
#include <limits>
#include <numeric>
#include "gradus/backend/cpu/kernels/factor_products.h"

namespace gradus::library::factors {

/// Columns of a panel. More of them mean fewer passes over the rest of the matrix and longer chains.
constexpr std::int64_t panel_columns(std::int64_t n) { return n <= 768 ? 64 : 128; }

/// LU = P a in place, with the columns beside a: L and U are where a was.
template <class T> class Elimination {
 public:
  /// `width`: columns of a and of those beside it, from padded(n) on.
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

/// order[i] becomes the row of a that is row i of P a.
inline void find_order(const std::int64_t* pivots, std::int64_t n, std::int64_t panel, std::int64_t* order) {
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

}  // namespace gradus::library::factors
