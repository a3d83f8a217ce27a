/// A short calibration: the best of a few rounds, so that what else runs on the machine counts little.
#include "gradus/profile/machine_rates.h"
#include <immintrin.h>
#include <algorithm>
#include <cstddef>
#include <vector>
#include "gradus/backend/kernel.h"
#include "gradus/base/clock.h"

namespace gradus {
namespace {

// As many chains as hide the latency of an instruction of which two start in each cycle.
constexpr int chains = 12;
constexpr long rounds = 10'000;
constexpr double least_seconds = 0.02;  // of attempts

__attribute__((target("avx512f"), noinline)) float multiply_add_512(float first) {
  __m512 sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = _mm512_set1_ps(first + static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (long r = 0; r < rounds; ++r)
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, a, b);
  for (int i = 1; i < chains; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"), noinline)) float multiply_add_256(float first) {
  __m256 sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = _mm256_set1_ps(first + static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (long r = 0; r < rounds; ++r)
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, a, b);
  for (int i = 1; i < chains; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  return _mm256_cvtss_f32(sums[0]);
}

volatile float kept = 0;  // so that no result is left out, and none is known before

/// Units a second of the fastest of some attempts.
template <class Work> double best_rate(double units, Work work) {
  double least = 1;
  const double first = steady_seconds();
  for (double begin = first; begin < first + least_seconds;) {
    work();
    const double end = steady_seconds();
    least = std::min(least, std::max(end - begin, 1e-9));
    begin = end;
  }
  return units / least;
}

double arithmetic() {
  const bool wide = __builtin_cpu_supports("avx512f");
  const double operations = static_cast<double>(rounds) * chains * 2 * (wide ? 16 : 8);
  return best_rate(operations, [wide] { kept = wide ? multiply_add_512(kept) : multiply_add_256(kept); });
}

double bandwidth() {
  constexpr std::size_t floats = std::size_t{8} << 20;
  std::vector<float> memory(floats, 1.0f);
  return best_rate(2.0 * floats * sizeof(float), [&] {
    for (float& x : memory) x = x * 0.999f;
    kept = memory.front();
  });
}

}  // namespace

const MachineRates& machine_rates() {
  static const MachineRates rates = [] {
    constexpr ThreadRates known;
    const double flops = arithmetic();
    return MachineRates{flops, flops * known.narrow_flops / known.flops, bandwidth()};
  }();
  return rates;
}

}  // namespace gradus
