/// Chains of one instruction from registers, and a pass over an array that the second cache holds.
#include "gradus/backend/cpu/thread_rates.h"
#include <immintrin.h>
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/tiles/amx.h"
#include "gradus/base/clock.h"

namespace gradus {
namespace {

using namespace cpu_backend;

// As many chains as hide the latency of an instruction of which two start in each cycle.
constexpr int chains = 12;
constexpr long rounds = 1000, tile_rounds = 100;  // 5 to 10 us: no longer than it takes to be undisturbed now and then
constexpr int least_attempts = 16;
constexpr double least_seconds = 0.2e-3;  // of attempts: wide vectors take up to 20 us to reach their speed

volatile float kept = 0;  // so that no result is left out, and none is known before

__attribute__((target("avx512f"), noinline)) void multiply_add_512() {
  __m512 sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = _mm512_set1_ps(kept + static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (long r = 0; r < rounds; ++r)
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, a, b);
  for (int i = 1; i < chains; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  kept = _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"), noinline)) void multiply_add_256() {
  __m256 sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = _mm256_set1_ps(kept + static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (long r = 0; r < rounds; ++r)
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, a, b);
  for (int i = 1; i < chains; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  kept = _mm256_cvtss_f32(sums[0]);
}

__attribute__((target("avx512f,avx512bf16"), noinline)) void multiply_pairs_512() {
  __m512 sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = _mm512_set1_ps(kept + static_cast<float>(i));
  const __m512bh a = (__m512bh)_mm512_set1_epi32(0x3a803a80), b = (__m512bh)_mm512_set1_epi32(0x3f803f80);
  for (long r = 0; r < rounds; ++r)
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, a, b);
  for (int i = 1; i < chains; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  kept = _mm512_cvtss_f32(sums[0]);
}

/// Two by two tiles of sums, as products have them: each waits for its last sum.
constexpr int tile_products = 4, tile_operations = 16 * 16 * 32 * 2;

__attribute__((target("amx-tile,amx-bf16"), noinline)) void multiply_tiles() {
  AmxConfiguration shapes;
  std::fill_n(shapes.rows, 8, static_cast<std::uint8_t>(AmxTiles::rows));
  std::fill_n(shapes.row_bytes, 8, static_cast<std::uint16_t>(AmxTiles::row_bytes));
  _tile_loadconfig(&shapes);  // all elements are 0
  for (long r = 0; r < tile_rounds; ++r) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  alignas(64) float sums[16 * 16];
  _tile_stored(0, sums, 64);
  _tile_release();
  kept = sums[0];
}

__attribute__((target("avx512f"), noinline)) void scale_512(std::vector<float>& x) {
  const __m512 factor = _mm512_set1_ps(0.999f);
  for (std::size_t i = 0; i < x.size(); i += 16) _mm512_storeu_ps(&x[i], _mm512_mul_ps(_mm512_loadu_ps(&x[i]), factor));
}

__attribute__((target("avx2"), noinline)) void scale_256(std::vector<float>& x) {
  const __m256 factor = _mm256_set1_ps(0.999f);
  for (std::size_t i = 0; i < x.size(); i += 8) _mm256_storeu_ps(&x[i], _mm256_mul_ps(_mm256_loadu_ps(&x[i]), factor));
}

/// Units a second of the fastest attempt.
template <class Work> double best_rate(double units, Work work) {
  double least = 1;
  const double first = steady_seconds();
  double begin = first;
  for (int attempt = 0; attempt < least_attempts || begin < first + least_seconds; ++attempt) {
    work();
    const double end = steady_seconds();
    least = std::min(least, std::max(end - begin, 1e-9));
    begin = end;
  }
  return units / least;
}

/// Operations of the chains of an instruction that has so many.
constexpr double in_chains(int operations) { return static_cast<double>(rounds) * chains * operations; }

double narrow_flops(double flops) {
  if (uses_amx() && has_amx()) return best_rate(double{tile_rounds} * tile_products * tile_operations, multiply_tiles);
  const bool has_pairs = isa() == Isa::avx512 && has_pair_products();
  return has_pairs ? std::max(flops, best_rate(in_chains(64), multiply_pairs_512)) : flops;
}

double cached_bytes(bool wide) {
  constexpr std::size_t floats = 48 << 10;  // 192 KiB: more than first caches hold, less than any second one
  std::vector<float> array(floats, 1.0f);
  const double bytes = 2.0 * floats * sizeof(float);
  return best_rate(bytes, [&] { wide ? scale_512(array) : scale_256(array); });
}

ThreadRates measured() {
  const bool wide = isa() == Isa::avx512;
  const double flops = wide ? best_rate(in_chains(32), multiply_add_512) : best_rate(in_chains(16), multiply_add_256);
  return {.flops = flops, .narrow_flops = narrow_flops(flops), .bytes = cached_bytes(wide)};
}

std::atomic<const ThreadRates*> forced = nullptr;

}  // namespace

const ThreadRates& thread_rates() {
  if (const ThreadRates* rates = forced.load(std::memory_order_acquire)) return *rates;
  static const ThreadRates rates = measured();
  return rates;
}

double estimated_ns(const ThreadRates& rates, std::int64_t bytes, std::int64_t flops) {
  return 1e9 * (static_cast<double>(bytes) / rates.bytes + static_cast<double>(flops) / rates.flops);
}

ThreadRatesScope::ThreadRatesScope(const ThreadRates& rates) : rates_(rates), before_(forced.exchange(&rates_)) {}
ThreadRatesScope::~ThreadRatesScope() { forced.store(before_); }

}  // namespace gradus
