/// Vectors of many parameters in blocks, which threads share where there are many: L-BFGS reads its pairs
/// some 40 times an iteration. Sums of blocks are added in the order of the blocks, so the number of threads changes no
/// bit.
#pragma once
#include <cstddef>
#include <functional>

namespace gradus::detail::fitting {

/// Elements of a block: three of them are in a core's second cache. A vector of one block is summed up as a whole.
inline constexpr std::size_t block_elements = 8192;

/// Calls part(begin, end) for each block of n elements; on several threads from some blocks on.
void in_blocks(std::size_t n, const std::function<void(std::size_t begin, std::size_t end)>& part);
/// The sum of part(begin, end) over the blocks.
double sum_of_blocks(std::size_t n, const std::function<double(std::size_t begin, std::size_t end)>& part);

}  // namespace gradus::detail::fitting
