/// Gaussian elimination with row exchanges, of row-major matrices.
#pragma once
#include <cmath>
#include <cstdint>
#include <utility>

namespace gradus::library {

/// The row from `k` on whose entry in column k is the largest, or NaN.
template <class T> std::int64_t pivot_of(const T* a, std::int64_t n, std::int64_t columns, std::int64_t k) {
  std::int64_t best = k;
  for (std::int64_t i = k + 1; i < n; ++i) {
    const T entry = a[i * columns + k];
    if (std::abs(entry) > std::abs(a[best * columns + k]) || entry != entry) best = i;
  }
  return best;
}

template <class T> void exchange(T* a, std::int64_t columns, std::int64_t i, std::int64_t k) {
  for (std::int64_t j = 0; i != k && j < columns; ++j) std::swap(a[i * columns + j], a[k * columns + j]);
}

/// Takes multiples of row k, from column `from` on, away from row i, so that column k becomes 0.
template <class T> void eliminate(T* a, std::int64_t columns, std::int64_t i, std::int64_t k, std::int64_t from) {
  const T factor = a[i * columns + k] / a[k * columns + k];
  for (std::int64_t j = from; j < columns; ++j) a[i * columns + j] -= factor * a[k * columns + j];
}

}  // namespace gradus::library
