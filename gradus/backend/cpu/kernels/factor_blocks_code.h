/// Blocks of factorizations, compiled for each instruction set (vector_bytes.h). Each column, or each row of a panel,
/// has a lane of its own, so the bits do not depend on the vectors' length.
#pragma once
#include <utility>
#include "gradus/backend/cpu/kernels/factor_blocks.h"
#include "gradus/backend/cpu/kernels/vector_lanes.h"

namespace gradus::library::factors {
namespace {

template <class T> [[gnu::always_inline]] inline T magnitude(T x) { return x < 0 ? -x : x; }

/// A triangular system in the order in which rows are solved: strides are negative for an upper triangle.
template <class T> struct Ordered {
  const T* a;
  std::int64_t n, row, column;
  bool unit;
  T *y, *negated;
  std::int64_t pitch, negated_pitch;
};

/// `rows` rows after the `done` first, for `vectors` vectors of columns.
template <class T, int bytes, int vectors, int rows>
[[gnu::always_inline]] inline void solve_rows(const Ordered<T>& s, std::int64_t column, std::int64_t done) {
  using V = Of<T, bytes>;
  constexpr std::int64_t count = Lanes<T, bytes>::count;
  V sums[std::size_t{rows}][std::size_t{vectors}];
  T* const y = s.y + column;
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sums[r][v] = at<T, bytes>(y + (done + r) * s.pitch + v * count);
  const T* const a = s.a + done * s.row;
  for (std::int64_t k = 0; k < done; ++k) {
    V known[std::size_t{vectors}];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) known[v] = at<T, bytes>(y + k * s.pitch + v * count);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const V factor = spread<T, bytes>(a[r * s.row + k * s.column]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) subtract_product<T, bytes>(sums[r][v], factor, known[v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int q = 0; q < r; ++q) {
      const V factor = spread<T, bytes>(a[r * s.row + (done + q) * s.column]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) subtract_product<T, bytes>(sums[r][v], factor, sums[q][v]);
    }
    if (!s.unit) {
      const V divisor = spread<T, bytes>(a[r * s.row + (done + r) * s.column]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[r][v] = sums[r][v] / divisor;
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) at<T, bytes>(y + (done + r) * s.pitch + v * count) = sums[r][v];
    if (s.negated) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        at<T, bytes>(s.negated + column + (done + r) * s.negated_pitch + v * count) = -sums[r][v];
    }
  }
}

/// Strips of `vectors` vectors of columns from `column` on, while they fit; gives the first column that is left.
template <class T, int bytes, int vectors>
std::int64_t solve_strips(const Ordered<T>& s, std::int64_t column, std::int64_t columns) {
  constexpr std::int64_t width = vectors * Lanes<T, bytes>::count;
  constexpr int rows = 4;
  for (; column + width <= columns; column += width) {
    std::int64_t done = 0;
    for (; done + rows <= s.n; done += rows) solve_rows<T, bytes, vectors, rows>(s, column, done);
    for (; done < s.n; ++done) solve_rows<T, bytes, vectors, 1>(s, column, done);
  }
  return column;
}

template <class T>
void solve(const Triangle<T>& t, T* y, std::int64_t columns, std::int64_t pitch, T* negated,
           std::int64_t negated_pitch) {
  Ordered<T> s{t.a, t.n, t.row, t.column, t.unit, y, negated, pitch, negated_pitch};
  if (!t.lower) {
    const std::int64_t last = t.n - 1;
    s.a += last * (t.row + t.column), s.row = -t.row, s.column = -t.column;
    s.y += last * pitch, s.pitch = -pitch;
    if (negated) s.negated += last * negated_pitch, s.negated_pitch = -negated_pitch;
  }
  std::int64_t column = 0;
  if constexpr (vector_bytes > 32) column = solve_strips<T, vector_bytes, 2>(s, column, columns);
  column = solve_strips<T, vector_bytes, 1>(s, column, columns);
  if constexpr (vector_bytes > 32) column = solve_strips<T, 32, 1>(s, column, columns);
  column = solve_strips<T, 16, 1>(s, column, columns);
  solve_strips<T, 0, 1>(s, column, columns);
}

/// The first element of the largest magnitude, or the last NaN.
template <class T> std::int64_t largest_of(const T* x, std::int64_t n) {
  using V = Of<T, vector_bytes>;
  constexpr unsigned all = (1U << lanes<T>)-1;
  V most = {};
  unsigned numbers = all;
  std::int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) {
    const V value = at<T, vector_bytes>(x + i), size = value < 0 ? -value : value;
    most = size > most ? size : most;
    numbers &= equal_lanes<T>(value, value);
  }
  T largest = 0;
  for (std::int64_t lane = 0; lane < lanes<T>; ++lane) largest = most[lane] > largest ? most[lane] : largest;
  bool has_nan = numbers != all;
  for (; i < n; ++i) {
    largest = magnitude(x[i]) > largest ? magnitude(x[i]) : largest;
    has_nan |= x[i] != x[i];
  }
  if (has_nan)
    for (i = n - 1;; --i)
      if (x[i] != x[i]) return i;
  const V wanted = spread<T, vector_bytes>(largest), negative = -wanted;
  for (i = 0; i + lanes<T> <= n; i += lanes<T>) {
    const V value = at<T, vector_bytes>(x + i);
    if (const unsigned found = equal_lanes<T>(value, wanted) | equal_lanes<T>(value, negative))
      return i + __builtin_ctz(found);
  }
  while (i + 1 < n && magnitude(x[i]) != largest) ++i;
  return i;
}

/// row -= sum over k of c[k] * (row k of t), in order of k, for n elements and up to a vector more.
template <class T, int vectors>
[[gnu::always_inline]] inline std::int64_t subtract_rows(T* row, const T* t, std::int64_t pitch, const T* c,
                                                         std::int64_t count, std::int64_t i, std::int64_t n) {
  using V = Of<T, vector_bytes>;
  constexpr std::int64_t width = vectors * lanes<T>;
  for (; i + width < n + lanes<T>; i += width) {
    V sums[std::size_t{vectors}];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) sums[v] = at<T, vector_bytes>(row + i + v * lanes<T>);
    for (std::int64_t k = 0; k < count; ++k) {
      const V factor = spread<T, vector_bytes>(c[k]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v)
        subtract_product<T, vector_bytes>(sums[v], factor, at<T, vector_bytes>(t + k * pitch + i + v * lanes<T>));
    }
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) at<T, vector_bytes>(row + i + v * lanes<T>) = sums[v];
  }
  return i;
}

template <class T>
void factor_columns(T* t, std::int64_t m, std::int64_t all, std::int64_t pitch, std::int64_t first, std::int64_t count,
                    std::int64_t* pivots) {
  for (std::int64_t j = first; j < first + count; ++j) {
    T* const row = t + j * pitch;
    for (std::int64_t k = first; k < j; ++k)
      for (std::int64_t i = k + 1; i < j; ++i) subtract_product<T, 0>(row[i], t[k * pitch + i], row[k]);
    const T* const before = t + first * pitch;
    const std::int64_t i = subtract_rows<T, 8>(row, before, pitch, row + first, j - first, j, m);
    subtract_rows<T, 1>(row, before, pitch, row + first, j - first, i, m);
    const std::int64_t pivot = j + largest_of(row + j, m - j);
    pivots[j] = pivot;
    for (std::int64_t r = 0; pivot != j && r < all; ++r) std::swap(t[r * pitch + j], t[r * pitch + pivot]);
    const auto divisor = spread<T, vector_bytes>(row[j]);
    for (std::int64_t k = j + 1; k < m; k += lanes<T>)
      at<T, vector_bytes>(row + k) = at<T, vector_bytes>(row + k) / divisor;
  }
}

/// Without a branch, which could not be predicted.
template <class T>
[[gnu::always_inline]] inline void take_larger(T size, std::int64_t i, T& largest, std::int64_t& pivot) {
  const bool is_larger = (size > largest) | (size != size);
  largest = is_larger ? size : largest;
  pivot = is_larger ? i : pivot;
}

/// Rows [begin, end) -= factors[row] * (row k), for `vectors` vectors from `column` on.
template <class T, int vectors>
[[gnu::always_inline]] inline void eliminate_vectors(T* a, std::int64_t pitch, std::int64_t k, std::int64_t begin,
                                                     std::int64_t end, std::int64_t column, const T* factors) {
  using V = Of<T, vector_bytes>;
  V pivot[std::size_t{vectors}];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) pivot[v] = at<T, vector_bytes>(a + k * pitch + column + v * lanes<T>);
  for (std::int64_t i = begin; i < end; ++i) {
    const V factor = spread<T, vector_bytes>(factors[i]);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      subtract_product<T, vector_bytes>(at<T, vector_bytes>(a + i * pitch + column + v * lanes<T>), factor, pivot[v]);
  }
}
template <class T>
void eliminate_rows(T* a, std::int64_t pitch, std::int64_t k, std::int64_t begin, std::int64_t end, std::int64_t column,
                    std::int64_t width, const T* factors) {
  for (; column + 4 * lanes<T> <= width; column += 4 * lanes<T>)
    eliminate_vectors<T, 4>(a, pitch, k, begin, end, column, factors);
  for (; column < width; column += lanes<T>) eliminate_vectors<T, 1>(a, pitch, k, begin, end, column, factors);
}

template <class T>
void eliminate(T* a, std::int64_t n, std::int64_t width, std::int64_t pitch, T* lower, std::int64_t* pivots) {
  T factors[block_rows];
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    T largest = magnitude(a[k * pitch + k]);
    for (std::int64_t i = k + 1; i < n; ++i) take_larger(magnitude(a[i * pitch + k]), i, largest, pivot);
    pivots[k] = pivot;
    const std::int64_t column = k / lanes<T> * lanes<T>;
    if (pivot != k) {
      for (std::int64_t j = column; j < width; j += lanes<T>)
        exchange<T, vector_bytes>(a + k * pitch + j, a + pivot * pitch + j);
      for (std::int64_t q = 0; lower && q < k; ++q) std::swap(lower[q * n + k], lower[q * n + pivot]);
    }
    const T divisor = a[k * pitch + k];
    for (std::int64_t i = k + 1; i < n; ++i) factors[i] = a[i * pitch + k] / divisor;
    for (std::int64_t i = k + 1; lower && i < n; ++i) lower[k * n + i] = factors[i];
    eliminate_rows(a, pitch, k, k + 1, n, column, width, factors);
  }
}

/// Matrices of few rows. Loops over vectors would wait for elements that were just written; where sizes are constants,
/// elements stay in registers.
template <class T>
[[gnu::always_inline]] inline void eliminate_few_rows(T* a, std::int64_t n, std::int64_t width, std::int64_t* pivots) {
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < n; ++k) {
    T* const row = a + k * width;
    std::int64_t pivot = k;
    T largest = magnitude(row[k]);
#pragma GCC unroll 4
    for (std::int64_t i = k + 1; i < n; ++i) take_larger(magnitude(a[i * width + k]), i, largest, pivot);
    pivots[k] = pivot;
    if (pivot != k)
      for (std::int64_t j = 0; j < width; ++j) std::swap(row[j], a[pivot * width + j]);
#pragma GCC unroll 4
    for (std::int64_t i = k + 1; i < n; ++i) {
      T* const below = a + i * width;
      const T factor = below[k] / row[k];
      below[k] = factor;
#pragma GCC unroll 4
      for (std::int64_t j = k + 1; j < n; ++j) subtract_product<T, 0>(below[j], factor, row[j]);
      for (std::int64_t j = n; j < width; ++j) subtract_product<T, 0>(below[j], factor, row[j]);
    }
  }
}
template <class T>
[[gnu::always_inline]] inline void eliminate_few_beside(T* a, std::int64_t n, std::int64_t width,
                                                        std::int64_t* pivots) {
  if (width == n) return eliminate_few_rows(a, n, n, pivots);
  if (width == n + 1) return eliminate_few_rows(a, n, n + 1, pivots);
  eliminate_few_rows(a, n, width, pivots);
}
template <class T> void eliminate_few(T* a, std::int64_t n, std::int64_t width, std::int64_t* pivots) {
  if (n == 4) return eliminate_few_beside(a, 4, width, pivots);
  if (n == 3) return eliminate_few_beside(a, 3, width, pivots);
  eliminate_few_rows(a, n, width, pivots);
}

template <class T> [[gnu::always_inline]] inline void invert_few_rows(const T* a, std::int64_t n, T* x) {
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < n; ++i) {
    T* const row = x + i * n;
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < n; ++j) row[j] = static_cast<T>(i == j);
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < i; ++k)
#pragma GCC unroll 4
      for (std::int64_t j = 0; j <= k; ++j) subtract_product<T, 0>(row[j], a[i * n + k], x[k * n + j]);
  }
#pragma GCC unroll 4
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t i = n - 1 - step;
    T* const row = x + i * n;
#pragma GCC unroll 4
    for (std::int64_t k = n - 1; k > i; --k)
#pragma GCC unroll 4
      for (std::int64_t j = 0; j < n; ++j) subtract_product<T, 0>(row[j], a[i * n + k], x[k * n + j]);
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < n; ++j) row[j] /= a[i * n + i];
  }
}
template <class T> void invert_few(const T* a, std::int64_t n, T* x) {
  if (n == 4) return invert_few_rows(a, 4, x);
  if (n == 3) return invert_few_rows(a, 3, x);
  invert_few_rows(a, n, x);
}

template <class T> [[gnu::always_inline]] inline T root(T x) {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<T, float>) return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
  else return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_set_sd(x), _mm_set_sd(x)));
#else
  if constexpr (std::is_same_v<T, float>) return vgetq_lane_f32(vsqrtq_f32(vdupq_n_f32(x)), 0);
  else return vgetq_lane_f64(vsqrtq_f64(vdupq_n_f64(x)), 0);
#endif
}

template <class T> void factor_symmetric(T* u, std::int64_t n, std::int64_t pitch) {
  const std::int64_t width = (n + lanes<T> - 1) / lanes<T> * lanes<T>;
  for (std::int64_t k = 0; k < n; ++k) {
    T* const row = u + k * pitch;
    const T diagonal = root(row[k]);
    const std::int64_t column = k / lanes<T> * lanes<T>;
    const auto divisor = spread<T, vector_bytes>(diagonal);
    for (std::int64_t j = column; j < width; j += lanes<T>)
      at<T, vector_bytes>(row + j) = at<T, vector_bytes>(row + j) / divisor;
    row[k] = diagonal;
    for (std::int64_t j = column; j < width; j += lanes<T>)
      eliminate_vectors<T, 1>(u, pitch, k, k + 1, j + lanes<T> < n ? j + lanes<T> : n, j, row);
  }
}

template <class T> void factor_few(const T* a, T* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      T rest = a[i * n + j];
      for (std::int64_t k = 0; k < j; ++k) subtract_product<T, 0>(rest, y[i * n + k], y[j * n + k]);
      y[i * n + j] = i == j ? root(rest) : rest / y[j * n + j];
    }
    for (std::int64_t j = i + 1; j < n; ++j) y[i * n + j] = 0;
  }
}

template <class T>
constexpr BlockFunctions<T> functions{solve<T>,         factor_columns<T>, eliminate<T>, factor_symmetric<T>,
                                      eliminate_few<T>, invert_few<T>,     factor_few<T>};

}  // namespace
}  // namespace gradus::library::factors
