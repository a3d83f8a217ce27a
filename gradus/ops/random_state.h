/// Where the sequence of seeds stands, so that a training that is resumed draws what it would have drawn, and sequences
/// that belong to one piece of work.
#pragma once
#include <cstdint>

namespace gradus {

/// What set_seed and every seed that was taken since have led to.
std::uint64_t random_state();
/// Goes on from there.
void set_random_state(std::uint64_t state);
/// What failed has drawn nothing: gives back a seed of next_seed, unless another one was drawn since.
void return_seed(std::uint64_t seed);
/// Where set_seed(seed) begins.
std::uint64_t random_state_of(std::uint64_t seed);

/// While it lives, this thread has a sequence of its own, which goes on from `state` and leaves there where it stands:
/// neither set_seed, nor what draws without a seed, touches that of the process. So what is drawn does not depend on
/// what other threads draw meanwhile.
class SeedScope {
 public:
  [[nodiscard]] explicit SeedScope(std::uint64_t& state);
  ~SeedScope();
  SeedScope(const SeedScope&) = delete;

 private:
  std::uint64_t* outer_;
};

}  // namespace gradus
