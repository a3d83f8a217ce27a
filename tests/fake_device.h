/// A device that computes on its own: the processor behind a queue, with memory that the host cannot read. What is on
/// its way there is poisoned. It finds whoever reads too early, or without asking.
#pragma once
#include <cstdint>

namespace gradus::testing_device {

/// Two devices of kind plugin, from now on.
void add_fake_devices();
/// Programs that they have run, and buffers that were brought to and from them.
struct Counts {
  std::int64_t runs = 0, to_device = 0, to_host = 0;
};
Counts counts();

}  // namespace gradus::testing_device
