/// Cuts: where the elements of a value lie among ranks.
#pragma once
#include <cstdint>
#include <vector>

namespace gradus {

/// Rank r owns the elements [cuts[r], cuts[r + 1]) of a value in row-major order.
using Cuts = std::vector<std::int64_t>;
/// Parts of nearly the same size, cut at multiples of `grain`.
Cuts even_cuts(std::int64_t count, int ranks, std::int64_t grain = 16);
/// Blocks of `grain` elements, the last one shorter, for ranks in order: each gets as many, and the remaining ones go
/// to the ranks `first`, first + 1, ... (modulo ranks), one each.
Cuts block_cuts(std::int64_t count, int ranks, std::int64_t grain, int first);

}  // namespace gradus
