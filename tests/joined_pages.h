/// Does the system join pages to huge ones when it is asked to?
#pragma once
#include <sys/mman.h>
#include <cstdint>

namespace gradus {

/// False before Linux 6.1, and where huge pages are off.
inline bool system_joins_pages() {
  constexpr std::size_t page = 2 << 20;
  constexpr int collapse = 25;  // MADV_COLLAPSE
  void* const mapped = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return false;
  auto* const whole = static_cast<char*>(mapped) + -reinterpret_cast<std::uintptr_t>(mapped) % page;
  *whole = 1;
  const bool joins = madvise(whole, page, MADV_HUGEPAGE) == 0 && madvise(whole, page, collapse) == 0;
  munmap(mapped, 2 * page);
  return joins;
}

}  // namespace gradus
