/// Functions of rows, compiled for each instruction set (vector_bytes.h).
#pragma once
#include <cstddef>
#include "gradus/backend/cpu/kernels/row_functions.h"
#include "gradus/backend/cpu/kernels/vector_lanes.h"

namespace gradus::library::factors {
namespace {

constexpr int parts = 64 / vector_bytes;  // vectors of 64 bytes
template <class T> constexpr std::int64_t wide = 64 / sizeof(T);

/// 64 bytes of elements.
template <class T> struct Wide {
  Of<T, vector_bytes> part[std::size_t{parts}];

  [[gnu::always_inline]] static inline Wide at_row(const T* x) {
    Wide loaded;
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) loaded.part[p] = at<T, vector_bytes>(x + p * lanes<T>);
    return loaded;
  }
  [[gnu::always_inline]] static inline Wide of(T x) {
    Wide all;
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) all.part[p] = spread<T, vector_bytes>(x);
    return all;
  }
  [[gnu::always_inline]] inline void store(T* x) const {
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) at<T, vector_bytes>(x + p * lanes<T>) = part[p];
  }
  [[gnu::always_inline]] inline void add(const Wide& a, const Wide& b) {
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) add_product<T, vector_bytes>(part[p], a.part[p], b.part[p]);
  }
  [[gnu::always_inline]] inline void subtract(const Wide& a, const Wide& b) {
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) subtract_product<T, vector_bytes>(part[p], a.part[p], b.part[p]);
  }
  [[gnu::always_inline]] inline void multiply(const Wide& a) {
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) part[p] = part[p] * a.part[p];
  }
  /// Halves are added until one lane is left.
  [[gnu::always_inline]] inline T sum() const {
    alignas(64) T all[std::size_t{wide<T>}];
    store(all);
#pragma GCC unroll 4
    for (std::int64_t half = wide<T> / 2; half > 0; half /= 2)
#pragma GCC unroll 8
      for (std::int64_t i = 0; i < half; ++i) all[i] = all[i] + all[i + half];
    return all[0];
  }
};

/// Dot products of x with `rows` rows of a at a time.
template <class T, int rows>
[[gnu::always_inline]] inline void dots_of(const T* a, std::int64_t pitch, const T* x, std::int64_t n, T* y) {
  Wide<T> sums[std::size_t{rows}];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) sums[r] = Wide<T>::of(0);
  for (std::int64_t j = 0; j < n; j += wide<T>) {
    const Wide<T> factor = Wide<T>::at_row(x + j);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) sums[r].add(Wide<T>::at_row(a + r * pitch + j), factor);
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) y[r] = sums[r].sum();
}

template <class T> T dot_of_rows(const T* x, const T* y, std::int64_t n) {
  T sum;
  dots_of<T, 1>(x, 0, y, n, &sum);
  return sum;
}

template <class T>
void dots_with_rows(const T* a, std::int64_t pitch, std::int64_t rows, const T* x, std::int64_t n, T* y) {
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) dots_of<T, 4>(a + r * pitch, pitch, x, n, y + r);
  for (; r < rows; ++r) dots_of<T, 1>(a + r * pitch, pitch, x, n, y + r);
}

template <class T, int rows>
[[gnu::always_inline]] inline void add_of(const T* a, std::int64_t pitch, const T* c, std::int64_t n, T* y) {
  Wide<T> factors[std::size_t{rows}];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) factors[r] = Wide<T>::of(c[r]);
  for (std::int64_t j = 0; j < n; j += wide<T>) {
    Wide<T> sum = Wide<T>::at_row(y + j);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) sum.add(factors[r], Wide<T>::at_row(a + r * pitch + j));
    sum.store(y + j);
  }
}

template <class T> void add_row(T a, const T* x, T* y, std::int64_t n) { add_of<T, 1>(x, 0, &a, n, y); }

template <class T>
void add_all_rows(const T* a, std::int64_t pitch, std::int64_t rows, const T* c, std::int64_t n, T* y) {
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) add_of<T, 4>(a + r * pitch, pitch, c + r, n, y);
  for (; r < rows; ++r) add_of<T, 1>(a + r * pitch, pitch, c + r, n, y);
}

/// Four rows of a symmetric matrix: their products with x, and what stands left of their block on the diagonal as
/// columns of the rows before them.
template <class T>
[[gnu::always_inline]] inline void multiply_four(const T* a, std::int64_t pitch, std::int64_t row, const T* x, T* y) {
  const std::int64_t block = row / vector_elements * vector_elements;
  Wide<T> sums[4], factors[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) sums[r] = Wide<T>::of(0), factors[r] = Wide<T>::of(x[row + r]);
  const T* const first = a + row * pitch;
  for (std::int64_t j = 0; j < block; j += wide<T>) {
    const Wide<T> factor = Wide<T>::at_row(x + j);
    Wide<T> above = Wide<T>::at_row(y + j);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const Wide<T> element = Wide<T>::at_row(first + r * pitch + j);
      sums[r].add(element, factor);
      above.add(element, factors[r]);
    }
    above.store(y + j);
  }
  for (std::int64_t j = block; j < block + vector_elements; j += wide<T>) {
    const Wide<T> factor = Wide<T>::at_row(x + j);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) sums[r].add(Wide<T>::at_row(first + r * pitch + j), factor);
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) y[row + r] = sums[r].sum();
}

template <class T> void multiply_symmetric(const T* a, std::int64_t pitch, std::int64_t n, const T* x, T* y) {
  for (std::int64_t row = 0; row < n; row += 4) multiply_four(a, pitch, row, x, y);
}

/// (x, y) becomes (c x + s y, c y - s x).
template <class T> [[gnu::always_inline]] inline void turn(Wide<T>& x, Wide<T>& y, const Wide<T>& c, const Wide<T>& s) {
  Wide<T> done = x;
  done.multiply(c);
  done.add(s, y);
  y.multiply(c);
  y.subtract(s, x);
  x = done;
}

/// The sweep on so many vectors of columns.
template <class T, int vectors>
[[gnu::always_inline]] inline void rotate_strip(T* rows, std::int64_t pitch, const Sweep& sweep, const T* c,
                                                const T* s) {
  const T *const cosines = c + sweep.begin, *const sines = s + sweep.begin;
  const std::int64_t step = sweep.ascending ? pitch : -pitch;
  T* row = rows + (sweep.ascending ? sweep.first : sweep.first + sweep.count) * pitch;
  Wide<T> carried[std::size_t{vectors}];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) carried[v] = Wide<T>::at_row(row + v * wide<T>);
  for (std::int64_t k = 0; k < sweep.count; ++k, row += step) {
    const std::int64_t i = sweep.ascending ? k : sweep.count - 1 - k;
    const Wide<T> cosine = Wide<T>::of(cosines[i]), sine = Wide<T>::of(sweep.ascending ? sines[i] : -sines[i]);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      Wide<T> next = Wide<T>::at_row(row + step + v * wide<T>);
      turn(carried[v], next, cosine, sine);
      carried[v].store(row + v * wide<T>);
      carried[v] = next;
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) carried[v].store(row + v * wide<T>);
}

/// Two sweeps over the same rotations at once: the second one follows a row behind, so that rows are read and written
/// half as often.
template <class T, int vectors>
[[gnu::always_inline]] inline void rotate_strip_twice(T* rows, std::int64_t pitch, const Sweep& sweep,
                                                      const Sweep& second, const T* c, const T* s) {
  const std::int64_t step = sweep.ascending ? pitch : -pitch, last = sweep.count - 1;
  T* row = rows + (sweep.ascending ? sweep.first : sweep.first + sweep.count) * pitch;
  const auto cosine = [&](const Sweep& of, std::int64_t k) {
    return Wide<T>::of(c[of.begin + (of.ascending ? k : last - k)]);
  };
  const auto sine = [&](const Sweep& of, std::int64_t k) {
    const T value = s[of.begin + (of.ascending ? k : last - k)];
    return Wide<T>::of(of.ascending ? value : -value);
  };
  Wide<T> carried[std::size_t{vectors}], behind[std::size_t{vectors}];
  Wide<T> c_first = cosine(sweep, 0), s_first = sine(sweep, 0);
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    behind[v] = Wide<T>::at_row(row + v * wide<T>);
    carried[v] = Wide<T>::at_row(row + step + v * wide<T>);
    turn(behind[v], carried[v], c_first, s_first);
  }
  for (std::int64_t k = 1; k <= last; ++k, row += step) {
    c_first = cosine(sweep, k), s_first = sine(sweep, k);
    const Wide<T> c_second = cosine(second, k - 1), s_second = sine(second, k - 1);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      Wide<T> next = Wide<T>::at_row(row + 2 * step + v * wide<T>);
      turn(carried[v], next, c_first, s_first);
      turn(behind[v], carried[v], c_second, s_second);
      behind[v].store(row + v * wide<T>);
      behind[v] = carried[v];
      carried[v] = next;
    }
  }
  const Wide<T> c_second = cosine(second, last), s_second = sine(second, last);
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    turn(behind[v], carried[v], c_second, s_second);
    behind[v].store(row + v * wide<T>);
    carried[v].store(row + step + v * wide<T>);
  }
}

template <class T, int vectors>
void rotate_strip_by_all(T* rows, std::int64_t pitch, const Sweep* sweeps, std::int64_t count, const T* c, const T* s) {
  const auto are_alike = [](const Sweep& a, const Sweep& b) {
    return a.first == b.first && a.count == b.count && a.ascending == b.ascending;
  };
  for (std::int64_t k = 0; k < count; ++k)
    if (k + 1 < count && are_alike(sweeps[k], sweeps[k + 1])) {
      rotate_strip_twice<T, vectors>(rows, pitch, sweeps[k], sweeps[k + 1], c, s);
      ++k;
    } else {
      rotate_strip<T, vectors>(rows, pitch, sweeps[k], c, s);
    }
}

template <class T>
void rotate_rows(T* rows, std::int64_t pitch, std::int64_t n, const Sweep* sweeps, std::int64_t count, const T* c,
                 const T* s) {
  constexpr int vectors = 4 / parts;
  std::int64_t column = 0;
  for (; column + vectors * wide<T> <= n; column += vectors * wide<T>)
    rotate_strip_by_all<T, vectors>(rows + column, pitch, sweeps, count, c, s);
  for (; column < n; column += wide<T>) rotate_strip_by_all<T, 1>(rows + column, pitch, sweeps, count, c, s);
}

template <class T>
constexpr RowFunctions<T> table_of_rows{dot_of_rows<T>,        add_row<T>,    dots_with_rows<T>, add_all_rows<T>,
                                        multiply_symmetric<T>, rotate_rows<T>};

}  // namespace
}  // namespace gradus::library::factors
