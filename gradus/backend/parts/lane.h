/// Lanes: one thread for each device beside the caller's, which runs its work in order.
#pragma once
#include <functional>
#include <span>
#include "gradus/tensor/device.h"

namespace gradus {

/// A piece of work of one device.
struct LaneWork {
  Device device;
  std::function<void()> work;
};

/// Runs all side by side, the first on the caller's thread, and returns when all are done. Each computes for its
/// device; logical devices of the processor share its threads evenly. The first exception is rethrown.
void run_side_by_side(std::span<const LaneWork> all);

}  // namespace gradus
