/// RunListener: is called while a program runs, as its outputs become complete. It may work between two kernels, as by
/// exchanging complete outputs with other ranks.
#pragma once
#include <cstddef>
#include "gradus/base/rooms.h"
#include "gradus/tensor/buffer.h"

namespace gradus {

/// Listens to a run (RunContext::listener). Calls come from the thread that runs the program, between kernels; programs
/// of other devices than the processor's make none.
class RunListener {
 public:
  virtual ~RunListener() = default;
  /// Output `k` of the program is complete. An error thrown here ends the call when the program has run.
  virtual void made(std::size_t k, const Ref<Buffer>& output) = 0;
  /// A kernel is done.
  virtual void between() = 0;
};

}  // namespace gradus
