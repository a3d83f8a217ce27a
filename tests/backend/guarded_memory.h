/// Memory that a kernel is given, with bytes behind it that nobody may write.
#pragma once
#include <gtest/gtest.h>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

namespace gradus {

/// Aligned as a worker's memory is; what stands in it at first are no numbers.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(bytes)),
        all_((bytes_ + guard + 63) / 64 * 64),
        at_(std::aligned_alloc(64, all_)) {
    std::memset(at_, 0xff, all_);
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() {
    const std::span behind(static_cast<const unsigned char*>(at_) + bytes_, guard);
    EXPECT_TRUE(std::ranges::all_of(behind, [](unsigned char byte) { return byte == 0xff; }));
    std::free(at_);
  }
  void* get() const { return at_; }

 private:
  static constexpr std::size_t guard = 256;
  std::size_t bytes_, all_;
  void* at_;
};

}  // namespace gradus
