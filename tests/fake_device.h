/// A device that computes on its own: the processor behind a queue, with memory that the host cannot read. What is on
/// its way there is poisoned. It finds whoever reads too early, or without asking.
#pragma once
#include <cstdint>
#include <memory>

namespace gradus::testing_device {

/// Two devices of kind plugin, from now on.
void add_fake_devices();
/// Programs that they were given and those that they have run, and buffers that were brought to and from them.
struct Counts {
  std::int64_t runs = 0, done = 0, to_device = 0, to_host = 0;
};
Counts counts();

/// While it lives, a fake device begins nothing that it was given later. After a minute it begins all the same, so that
/// who waits for it fails rather than hangs.
class Held {
 public:
  explicit Held(int device);
  ~Held();
  Held(const Held&) = delete;

 private:
  struct Gate;
  std::shared_ptr<Gate> gate_;
};

}  // namespace gradus::testing_device
