/// RunListener: who is told, while a program runs, what is complete of it. It may do something between two kernels, as
/// exchange with others what is there already.
#pragma once
#include <cstddef>
#include "gradus/tensor/buffer.h"

namespace gradus {

/// Of the next program that this thread starts (CallContext::run_listener). Calls come from the thread that started it,
/// between kernels; programs of other devices than the processor's make none.
class RunListener {
 public:
  virtual ~RunListener() = default;
  /// Output `k` of the program is complete. What this throws ends the call when the program has run.
  virtual void made(std::size_t k, const Ref<Buffer>& output) = 0;
  /// A kernel is done.
  virtual void between() = 0;
};

}  // namespace gradus
