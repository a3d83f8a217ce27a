/// The error of the allocator of buffers, distinct from other bounds that are ResourceExhausted.
#pragma once
#include "gradus/base/error.h"

namespace gradus {

/// A buffer was requested past the memory limit, or past the system's memory. Unlike a budget that is too small, it
/// tells nothing about the request: code that tries another way after an error passes it on.
class OutOfMemory : public ResourceExhausted {
  using ResourceExhausted::ResourceExhausted;
};

}  // namespace gradus
