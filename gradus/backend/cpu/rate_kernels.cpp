#include "gradus/backend/cpu/rate_kernels.h"
#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif
#include <algorithm>
#include <cstdint>
#include "gradus/backend/cpu/tiles/amx.h"
#include "gradus/base/error.h"

namespace gradus::cpu_backend::rate_kernels {

#if defined(__x86_64__)
namespace {

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

__attribute__((target("avx512f"), noinline)) void scale_512(float* x, std::size_t n) {
  const __m512 factor = _mm512_set1_ps(0.999f);
  for (std::size_t i = 0; i < n; i += 16) _mm512_storeu_ps(x + i, _mm512_mul_ps(_mm512_loadu_ps(x + i), factor));
}

__attribute__((target("avx2"), noinline)) void scale_256(float* x, std::size_t n) {
  const __m256 factor = _mm256_set1_ps(0.999f);
  for (std::size_t i = 0; i < n; i += 8) _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), factor));
}

}  // namespace

Chain multiply_adds(bool by_64_bytes) {
  return by_64_bytes ? Chain{multiply_add_512, 32} : Chain{multiply_add_256, 16};
}
Chain multiply_pairs() { return {multiply_pairs_512, 64}; }
void scale(float* x, std::size_t n, bool by_64_bytes) { by_64_bytes ? scale_512(x, n) : scale_256(x, n); }

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
#else
namespace {

[[gnu::noinline]] float multiply_add_128(long rounds, float first) {
  float32x4_t sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = vdupq_n_f32(first + static_cast<float>(i));
  const float32x4_t a = vdupq_n_f32(0.999f), b = vdupq_n_f32(0.001f);
  for (long r = 0; r < rounds; ++r)
    for (float32x4_t& sum : sums) sum = vfmaq_f32(b, sum, a);
  for (int i = 1; i < chains; ++i) sums[0] = vaddq_f32(sums[0], sums[i]);
  return vgetq_lane_f32(sums[0], 0);
}

[[noreturn]] void fail() { throw InternalError("internal fault: rates of instructions that 64-bit ARM has not"); }

}  // namespace

Chain multiply_adds(bool) { return {multiply_add_128, 8}; }
Chain multiply_pairs() { fail(); }
float multiply_tiles(long) { fail(); }
[[gnu::noinline]] void scale(float* x, std::size_t n, bool) {
  for (std::size_t i = 0; i < n; i += 4) vst1q_f32(x + i, vmulq_n_f32(vld1q_f32(x + i), 0.999f));
}
#endif

}  // namespace gradus::cpu_backend::rate_kernels
