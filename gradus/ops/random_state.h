/// State of the sequence of seeds. It lets a resumed training draw the numbers that it would have drawn, and gives one
/// piece of work a sequence of its own.
#pragma once
#include <cstdint>
#include "gradus/base/rooms.h"
#include "gradus/graph/call_context.h"

namespace gradus {

/// The state after set_seed and every seed taken since.
std::uint64_t random_state();
/// Continues from that state.
void set_random_state(std::uint64_t state);
/// Gives back a seed of next_seed after a failure, so that nothing was drawn; no effect if another one was drawn since.
void return_seed(std::uint64_t seed);
/// The state in which set_seed(seed) begins.
std::uint64_t random_state_of(std::uint64_t seed);

/// The argument of the last set_seed for the process's sequence; 0 before.
std::uint64_t last_seed();

/// While it lives, this thread has a sequence of its own, which continues from `state` and stores there how far it got.
/// set_seed and draws without a seed do not touch the sequence of the process. So the numbers do not depend on what
/// other threads draw meanwhile.
class SeedScope {
 public:
  [[nodiscard]] explicit SeedScope(std::uint64_t& state) : scope_(&state) {}

 private:
  const FieldScope<&CallContext::random_state> scope_;
};

}  // namespace gradus
