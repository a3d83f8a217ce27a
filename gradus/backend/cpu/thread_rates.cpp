/// Chains of one instruction from registers, and a pass over an array that the second cache holds. Decision 391 has the
/// reasons.
#include "gradus/backend/cpu/thread_rates.h"
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/rate_kernels.h"
#include "gradus/base/clock.h"
#include "gradus/base/rooms.h"

namespace gradus {
namespace {

using namespace cpu_backend;
using namespace cpu_backend::rate_kernels;

constexpr long rounds = 1000, tile_rounds = 100;  // 5 to 10 us: no longer than it takes to be undisturbed now and then
constexpr int least_attempts = 16;
constexpr double least_seconds = 0.2e-3;  // of attempts: wide vectors take up to 20 us to reach their speed

volatile float kept = 0;  // so that no result is left out, and none is known before

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

/// Operations a second.
double rate_of(const Chain& chain) {
  return best_rate(operations_of(rounds, chain.operations), [&] { kept = chain.run(rounds, kept); });
}

/// That of this process, whatever a compile in this thread is for.
const Processor& own_processor() { return processor_of(host_isa()); }

double narrow_flops(double flops) {
  if (uses_amx() && has_amx())
    return best_rate(double{tile_rounds} * tile_products * tile_operations, [] { kept = multiply_tiles(tile_rounds); });
  const bool has_pairs = own_processor().has_pair_tiles && has_pair_products();
  return has_pairs ? std::max(flops, rate_of(multiply_pairs())) : flops;
}

double cached_bytes(bool wide) {
  constexpr std::size_t floats = 48 << 10;  // 192 KiB: more than first caches hold, less than any second one
  std::vector<float> array(floats, 1.0f);
  const double bytes = 2.0 * floats * sizeof(float);
  return best_rate(bytes, [&] { scale(array.data(), floats, wide); });
}

ThreadRates measured() {
  const bool wide = own_processor().kernel_vector_bytes == 64;
  const double flops = rate_of(multiply_adds(wide));
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
