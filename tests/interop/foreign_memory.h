/// Memory whose owner is watched, and memory that ends where nothing may be read.
#pragma once
#include <sys/mman.h>
#include <unistd.h>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace gradus {

/// Numbers with an owner that counts how often it is released.
struct WatchedMemory {
  std::vector<float> values;
  std::atomic<int> released{0};
  explicit WatchedMemory(std::size_t count) : values(count) {
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  }
  std::shared_ptr<const void> owner() {
    return {this, [this](const void*) {
              std::fill(values.begin(), values.end(), -1.0f);  // a later reader does not find its numbers
              ++released;
            }};
  }
};

/// Floats 0, 1, 2 ... that end `before_end` bytes before a page without access. Nobody may write them.
class GuardedMemory {
 public:
  GuardedMemory(std::size_t count, std::size_t before_end) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    data_bytes_ = (count * sizeof(float) + before_end + page - 1) / page * page;
    bytes_ = data_bytes_ + page;
    mapped_ =
        static_cast<std::byte*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    auto* const first = reinterpret_cast<float*>(mapped_ + data_bytes_ - before_end) - count;
    for (std::size_t i = 0; i < count; ++i) first[i] = static_cast<float>(i);
    values_ = {first, count};
    mprotect(mapped_, data_bytes_, PROT_READ);
    mprotect(mapped_ + data_bytes_, page, PROT_NONE);
  }
  ~GuardedMemory() { munmap(mapped_, bytes_); }
  GuardedMemory(const GuardedMemory&) = delete;
  std::span<const float> values() const { return values_; }

 private:
  std::byte* mapped_;
  std::size_t data_bytes_, bytes_;
  std::span<const float> values_;
};

}  // namespace gradus
