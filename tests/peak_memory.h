/// The memory that a piece of work needs beside what is there before.
#pragma once
#include <cstddef>
#include <functional>
#include "gradus/gradus.h"

namespace gradus {

/// Bytes at the peak of `work` above those that are live before it.
inline std::size_t peak_of(const std::function<void()>& work) {
  synchronize();
  reset_peak_memory();
  const std::size_t before = memory_use().live_bytes;
  work();
  synchronize();
  return memory_use().peak_bytes - before;
}

}  // namespace gradus
