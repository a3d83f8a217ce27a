/// Allocations of buffers that are made to fail, one at a time, by tests. It stands on the check of the memory limit,
/// which every allocation goes through anyway, so that a program without it pays nothing.
#pragma once
#include <cstdint>

namespace gradus {

/// While it lives, allocations of buffers are counted, those of all threads, and one of them fails as at the limit,
/// with OutOfMemory. One at a time; a thread that allocates at the very moment when it begins may be counted late.
class FailingAllocation {
 public:
  /// Of those from now on, counted from 0; -1: none, they are only counted.
  explicit FailingAllocation(std::int64_t number);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  /// So far, the failing one included.
  std::int64_t count() const;
};

}  // namespace gradus
