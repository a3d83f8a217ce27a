/// Counts of the work on devices of plugins so far, for tests.
#pragma once
#include <atomic>
#include <cstdint>

namespace gradus::xla {

struct Counts {
  std::atomic<std::int64_t> runs{0};          // programs started
  std::atomic<std::int64_t> on_host{0};       // programs that the processor ran in their place
  std::atomic<std::int64_t> compilations{0};  // by plugins
  std::atomic<std::int64_t> uploads{0};       // buffers brought from the host
  std::atomic<std::int64_t> waits{0};         // times that the host has waited for a device
};
inline Counts& counts() {
  static Counts all;
  return all;
}

}  // namespace gradus::xla
