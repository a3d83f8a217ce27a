/// What the allocator of buffers throws, to be told from other bounds that are ResourceExhausted.
#pragma once
#include "gradus/base/error.h"

namespace gradus {

/// A buffer was asked for past the memory limit, or past what the system has. Unlike a budget that is too small it says
/// nothing about what was asked for: whoever would go another way on an error lets it pass.
class OutOfMemory : public ResourceExhausted {
  using ResourceExhausted::ResourceExhausted;
};

}  // namespace gradus
