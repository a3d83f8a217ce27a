/// Where the sequence of seeds stands, so that a training that is resumed draws what it would have drawn.
#pragma once
#include <cstdint>

namespace gradus {

/// What set_seed and every seed that was taken since have led to.
std::uint64_t random_state();
/// Goes on from there.
void set_random_state(std::uint64_t state);
/// What failed has drawn nothing: gives back a seed of next_seed, unless another one was drawn since.
void return_seed(std::uint64_t seed);

}  // namespace gradus
