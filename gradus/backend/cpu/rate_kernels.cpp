#include "gradus/backend/cpu/rate_kernels.h"
#include <immintrin.h>
#include <algorithm>
#include <cstdint>
#include "gradus/backend/cpu/tiles/amx.h"

namespace gradus::cpu_backend::rate_kernels {

__attribute__((target("avx512f"), noinline)) float multiply_add_512(long rounds, float first) {
  __m512 sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = _mm512_set1_ps(first + static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (long r = 0; r < rounds; ++r)
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, a, b);
  for (int i = 1; i < chains; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"), noinline)) float multiply_add_256(long rounds, float first) {
  __m256 sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = _mm256_set1_ps(first + static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (long r = 0; r < rounds; ++r)
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, a, b);
  for (int i = 1; i < chains; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  return _mm256_cvtss_f32(sums[0]);
}

__attribute__((target("avx512f,avx512bf16"), noinline)) float multiply_pairs_512(long rounds, float first) {
  __m512 sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = _mm512_set1_ps(first + static_cast<float>(i));
  const __m512bh a = (__m512bh)_mm512_set1_epi32(0x3a803a80), b = (__m512bh)_mm512_set1_epi32(0x3f803f80);
  for (long r = 0; r < rounds; ++r)
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, a, b);
  for (int i = 1; i < chains; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("amx-tile,amx-bf16"), noinline)) float multiply_tiles(long rounds) {
  AmxConfiguration shapes;
  std::fill_n(shapes.rows, 8, static_cast<std::uint8_t>(AmxTiles::rows));
  std::fill_n(shapes.row_bytes, 8, static_cast<std::uint16_t>(AmxTiles::row_bytes));
  _tile_loadconfig(&shapes);  // all elements are 0
  for (long r = 0; r < rounds; ++r) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  alignas(64) float sums[16 * 16];
  _tile_stored(0, sums, 64);
  _tile_release();
  return sums[0];
}

}  // namespace gradus::cpu_backend::rate_kernels
