/// Allocations of buffers that tests make fail, one at a time. It uses the check of the memory limit, which every
/// allocation goes through anyway, so a program without it pays nothing.
#pragma once
#include <cstdint>

namespace gradus {

/// While it lives, it counts allocations of buffers in all threads, and one of them fails as at the limit, with
/// OutOfMemory. One at a time. A thread that allocates at the very moment when it begins may be counted late.
class FailingAllocation {
 public:
  /// Number of the allocation that fails, from now on, counted from 0; -1: none fails, they are only counted.
  explicit FailingAllocation(std::int64_t number);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  /// Number of allocations so far, including the failing one.
  std::int64_t count() const;
};

}  // namespace gradus
