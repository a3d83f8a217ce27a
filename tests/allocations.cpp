/// In a file of its own, where no compiler sees who calls it.
#include "tests/allocations.h"
#include <cstddef>
#include <cstdlib>
#include <new>
#include <optional>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

thread_local int allocations = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  if (void* memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

std::optional<int> gradus::allocations_so_far() { return allocations; }

// Those of arrays and those that do not throw go through these.
void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#else

std::optional<int> gradus::allocations_so_far() { return {}; }

#endif
