#include "gradus/fitting/long_vectors.h"
#include <algorithm>
#include <atomic>
#include <vector>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/thread_pool.h"

namespace gradus::detail::fitting {

void in_blocks(std::size_t n, const std::function<void(std::size_t begin, std::size_t end)>& part) {
  constexpr std::size_t fewest_blocks = 32;  // fewer gain less than a thread that loses its core costs
  const std::size_t blocks = (n + block_elements - 1) / block_elements;
  std::atomic<std::size_t> next = 0;
  const auto work = [&](int, int) {
    const HostFloats floats;
    for (std::size_t block = next++; block < blocks; block = next++)
      part(block * block_elements, std::min(n, (block + 1) * block_elements));
  };
  if (blocks < fewest_blocks) return work(0, 1);
  // Two operands from memory: about half of a nanosecond an element, of which a team gains half.
  ThreadPool& pool = ThreadPool::global();
  const double cost = 0.5 * static_cast<double>(n);
  const auto most = static_cast<int>(std::min<std::size_t>(blocks / 2, ThreadPool::max_threads));
  pool.run(std::min(most, pool.threads_for_short_work()), work, {.gain = cost / 2, .claims = true});
  pool.did_short_work(cost);
}

double sum_of_blocks(std::size_t n, const std::function<double(std::size_t begin, std::size_t end)>& part) {
  std::vector<double> sums((n + block_elements - 1) / block_elements);
  in_blocks(n, [&](std::size_t begin, std::size_t end) { sums[begin / block_elements] = part(begin, end); });
  double sum = 0;
  for (const double each : sums) sum += each;
  return sum;
}

}  // namespace gradus::detail::fitting
