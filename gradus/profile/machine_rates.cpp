/// Memory by the best of a few rounds, so that other work on the machine counts little.
#include "gradus/profile/machine_rates.h"
#include <algorithm>
#include <cstddef>
#include <vector>
#include "gradus/backend/cpu/thread_rates.h"
#include "gradus/base/clock.h"
#include "gradus/base/rooms.h"

namespace gradus {
namespace {

constexpr double least_seconds = 0.02;  // of attempts

volatile float kept = 0;  // so that no result is left out

double memory_bytes() {
  constexpr std::size_t floats = std::size_t{8} << 20;
  std::vector<float> memory(floats, 1.0f);
  double least = 1;
  const double first = steady_seconds();
  for (double begin = first; begin < first + least_seconds;) {
    for (float& x : memory) x = x * 0.999f;
    kept = memory.front();
    const double end = steady_seconds();
    least = std::min(least, std::max(end - begin, 1e-9));
    begin = end;
  }
  return 2.0 * floats * sizeof(float) / least;
}

}  // namespace

const MachineRates& machine_rates() {
  static const MachineRates rates{thread_rates().flops, thread_rates().narrow_flops, memory_bytes()};
  return rates;
}

}  // namespace gradus
