#include "gradus/tensor/cuts.h"
#include <algorithm>
#include "gradus/base/divide.h"

namespace gradus {

Cuts even_cuts(std::int64_t count, int ranks, std::int64_t grain) {
  const std::int64_t grains = divide_up(count, grain);
  Cuts out;
  for (std::int64_t r = 0; r <= ranks; ++r) out.push_back(std::min(count, divide_up(r * grains, ranks) * grain));
  return out;
}

Cuts block_cuts(std::int64_t count, int ranks, std::int64_t grain, int first) {
  const std::int64_t blocks = divide_up(count, grain), each = blocks / ranks, more = blocks % ranks;
  Cuts out{0};
  std::int64_t end = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    end += each + ((rank - first + ranks) % ranks < more);
    out.push_back(std::min(count, end * grain));
  }
  return out;
}

}  // namespace gradus
