/// Transforms of Winograd's tiles, compiled for each instruction set (vector_bytes.h). Only sums, and products with
/// powers of 2, of elements: the bits do not depend on the vectors' length.
#pragma once
#include "gradus/backend/cpu/kernels/vector_bytes.h"
#include "gradus/backend/cpu/kernels/winograd_transforms.h"

namespace gradus::library::winograd {
namespace {

typedef float V __attribute__((vector_size(vector_bytes), aligned(alignof(float)), may_alias));
constexpr std::int64_t lanes = vector_bytes / sizeof(float);

[[gnu::always_inline]] inline V load(const float* at) { return *reinterpret_cast<const V*>(at); }
[[gnu::always_inline]] inline void store(float* at, V v) { *reinterpret_cast<V*>(at) = v; }

/// Calls visit(c) with the first channel of each vector of a row.
template <class Visit> [[gnu::always_inline]] inline void each_vector(std::int64_t channels, const Visit& visit) {
  std::int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) visit(c);
  if (c < channels) visit(channels - lanes);
}

/// Row r of B' has +1 at a and either +1 or -1 at b.
struct RowOfB {
  int a, b;
  bool adds;
};
constexpr RowOfB rows_of_b[] = {{0, 2, false}, {1, 2, true}, {2, 1, false}, {1, 3, false}};

/// Row r of the places of a tile.
template <int r> [[gnu::always_inline]] inline void store_tile(const V (&d)[4][4], float* out, std::int64_t step) {
  constexpr RowOfB row = rows_of_b[r];
  const V(&a)[4] = d[row.a], (&b)[4] = d[row.b];
  const V v0 = row.adds ? a[0] + b[0] : a[0] - b[0], v1 = row.adds ? a[1] + b[1] : a[1] - b[1];
  const V v2 = row.adds ? a[2] + b[2] : a[2] - b[2], v3 = row.adds ? a[3] + b[3] : a[3] - b[3];
  out += 4 * r * step;
  store(out, v0 - v2), store(out + step, v1 + v2), store(out + 2 * step, v2 - v1), store(out + 3 * step, v1 - v3);
}

template <int... r>
void transform_tile_rows(const float* const* from, std::int64_t channels, float* to, std::int64_t step) {
  each_vector(channels, [=](std::int64_t c) __attribute__((always_inline)) {
    const V d[4][4] = {{load(from[0] + c), load(from[1] + c), load(from[2] + c), load(from[3] + c)},
                       {load(from[4] + c), load(from[5] + c), load(from[6] + c), load(from[7] + c)},
                       {load(from[8] + c), load(from[9] + c), load(from[10] + c), load(from[11] + c)},
                       {load(from[12] + c), load(from[13] + c), load(from[14] + c), load(from[15] + c)}};
    (store_tile<r>(d, to + c, step), ...);
  });
}

void transform_tile(const float* const* from, std::int64_t channels, float* to, std::int64_t step, std::int64_t begin,
                    std::int64_t end) {
  constexpr bool has_registers = vector_bytes != 32;  // for all 16 positions; AVX2 has 16
  if (has_registers && end - begin == 4) return transform_tile_rows<0, 1, 2, 3>(from, channels, to, step);
  constexpr decltype(&transform_tile_rows<0>) rows[] = {transform_tile_rows<0>, transform_tile_rows<1>,
                                                        transform_tile_rows<2>, transform_tile_rows<3>};
  for (std::int64_t r = begin; r < end; ++r) rows[r](from, channels, to, step);
}

/// G [a, b, c].
[[gnu::always_inline]] inline void transform_three(V a, V b, V c, V* out) {
  const V outer = 0.5F * a + 0.5F * c, half = 0.5F * b;
  out[0] = a, out[1] = outer + half, out[2] = outer - half, out[3] = c;
}

void transform_weights(const float* const* taps, std::int64_t columns, float* to, std::int64_t step) {
  each_vector(columns, [=](std::int64_t c) __attribute__((always_inline)) {
    V down[3][4];
    for (int i = 0; i < 3; ++i)
      transform_three(load(taps[i] + c), load(taps[3 + i] + c), load(taps[6 + i] + c), down[i]);
    for (int r = 0; r < 4; ++r) {
      V across[4];
      transform_three(down[0][r], down[1][r], down[2][r], across);
      for (int i = 0; i < 4; ++i) store(to + (r * 4 + i) * step + c, across[i]);
    }
  });
}

void transform_sums(const float* from, std::int64_t step, std::int64_t columns, float* const* to) {
  float *to0 = to[0], *to1 = to[1], *to2 = to[2], *to3 = to[3];
  each_vector(columns, [=](std::int64_t c) __attribute__((always_inline)) {
    const float* m = from + c;
    V top[4], bottom[4];
    for (int i = 0; i < 4; ++i) {
      const V second = load(m + (4 + i) * step), third = load(m + (8 + i) * step);
      top[i] = load(m + i * step) + second + third;
      bottom[i] = second - third - load(m + (12 + i) * step);
    }
    store(to0 + c, top[0] + top[1] + top[2]);
    store(to1 + c, top[1] - top[2] - top[3]);
    store(to2 + c, bottom[0] + bottom[1] + bottom[2]);
    store(to3 + c, bottom[1] - bottom[2] - bottom[3]);
  });
}

/// Row r of the places, of 2 x 2 windows p0 p1 q0 q1.
template <int r>
[[gnu::always_inline]] inline void store_windows(V p0, V p1, V q0, V q1, float* out, std::int64_t step) {
  const auto zero = V{};
  V first, second;
  if constexpr (r == 0) first = p0, second = p1;
  else if constexpr (r == 1) first = p0 + q0, second = p1 + q1;
  else if constexpr (r == 2) first = p0 - q0, second = p1 - q1;
  else first = zero - q0, second = zero - q1;
  out += 4 * r * step;
  store(out, first), store(out + step, first + second), store(out + 2 * step, first - second);
  store(out + 3 * step, zero - second);
}

template <int... r>
void transform_windows_rows(const float* const* from, std::int64_t channels, float* to, std::int64_t step) {
  const float *p0 = from[0], *p1 = from[1], *q0 = from[2], *q1 = from[3];
  each_vector(channels, [=](std::int64_t c) __attribute__((always_inline)) {
    const V v0 = load(p0 + c), v1 = load(p1 + c), w0 = load(q0 + c), w1 = load(q1 + c);
    (store_windows<r>(v0, v1, w0, w1, to + c, step), ...);
  });
}

void transform_windows(const float* const* from, std::int64_t channels, float* to, std::int64_t step,
                       std::int64_t begin, std::int64_t end) {
  if (end - begin == 4) return transform_windows_rows<0, 1, 2, 3>(from, channels, to, step);
  constexpr decltype(&transform_windows_rows<0>) rows[] = {transform_windows_rows<0>, transform_windows_rows<1>,
                                                           transform_windows_rows<2>, transform_windows_rows<3>};
  for (std::int64_t r = begin; r < end; ++r) rows[r](from, channels, to, step);
}

/// G' [a, b, c, d].
[[gnu::always_inline]] inline void transform_four(V a, V b, V c, V d, V* out) {
  const V second = 0.5F * b, third = 0.5F * c, sum = second + third;
  out[0] = a + sum, out[1] = second - third, out[2] = sum + d;
}

void transform_chunks(const float* from, std::int64_t step, std::int64_t chunks, std::int64_t chunk_step,
                      std::int64_t columns, float* const* taps) {
  each_vector(columns, [=](std::int64_t c) __attribute__((always_inline)) {
    V down[4][3];
    for (int i = 0; i < 4; ++i) {
      V m[4];
      for (int r = 0; r < 4; ++r) {
        const float* sums = from + (r * 4 + i) * step + c;
        m[r] = load(sums);
        for (std::int64_t chunk = 1; chunk < chunks; ++chunk) m[r] += load(sums + chunk * chunk_step);
      }
      transform_four(m[0], m[1], m[2], m[3], down[i]);
    }
    for (int r = 0; r < 3; ++r) {
      V across[3];
      transform_four(down[0][r], down[1][r], down[2][r], down[3][r], across);
      for (int i = 0; i < 3; ++i) store(taps[r * 3 + i] + c, across[i]);
    }
  });
}

constexpr Transforms functions{.tile = transform_tile,
                               .weights = transform_weights,
                               .sums = transform_sums,
                               .windows = transform_windows,
                               .chunks = transform_chunks};

}  // namespace
}  // namespace gradus::library::winograd
