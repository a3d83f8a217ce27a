/// Arithmetic of Fourier transforms: stages between two buffers; each stage transforms along one factor of the number
/// of points (Stockham's order, which needs no permutation; Cooley and Tukey 1965).
#pragma once
#include <cstdint>
#include <vector>
#include "gradus/backend/cpu/isa.h"

namespace gradus::library::fourier {

/// Points q + stride * (p + rest * k), k < radix, become points q + stride * (radix * p + k), for p < rest and
/// q < stride.
struct Stage {
  std::int64_t radix, rest, stride;
  std::int64_t turns;  // where its rotations are in the table: [radix - 1, 2, rest]
  std::int64_t roots;  // of a radix without formulas of its own: [2, radix]; else -1
};

/// The transform of one row. A real row of an even length is one of half as many complex points.
struct Transform {
  std::int64_t points = 0;           // complex ones
  std::int64_t given = 0, made = 0;  // numbers of a row before and after
  bool inverse = false, is_real = false, is_packed = false;
  std::int64_t real_turns = 0;  // where the rotations that take packed rows apart are: [2, points]
  std::vector<Stage> stages = {};
  std::vector<float> narrow = {};  // the table, in the type of the transform
  std::vector<double> wide = {};

  template <class T> const T* table() const {
    if constexpr (sizeof(T) == sizeof(float)) return narrow.data();
    else return wide.data();
  }
};

/// Numbers between the parts of points, so that those of one place do not meet in a set of the cache.
constexpr std::int64_t apart = 80;

/// Transforms `rows` rows; scratch: 4 * (points + apart) numbers. The same bits by vectors of any length.
template <class T>
using TransformRows = void (*)(const Transform& transform, const T* x, T* y, T* scratch, std::int64_t rows);

template <class T> TransformRows<T> rows_by_avx2();
template <class T> TransformRows<T> rows_by_avx512();
template <class T> TransformRows<T> rows_by_neon();
template <class T> TransformRows<T> transform_rows() {
#if defined(__x86_64__)
  return cpu_backend::processor().kernel_vector_bytes == 64 ? rows_by_avx512<T>() : rows_by_avx2<T>();
#else
  return rows_by_neon<T>();
#endif
}

}  // namespace gradus::library::fourier
