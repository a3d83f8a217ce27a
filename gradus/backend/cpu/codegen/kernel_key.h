/// Keys of kernels: the structure of a step with the values renumbered. Steps of equal keys run the same code over
/// other slots.
#pragma once
#include <string>
#include "gradus/backend/cpu/codegen/loop_emitter.h"

namespace gradus::cpu_backend {

struct KernelKey {
  std::string text;
  std::vector<AnyOp> ops;  // the text has the addresses of their records: it means something while they live
};

/// Fills context.slots, in an order that depends on the structure alone, and gives the key.
KernelKey kernel_key(StepContext& context);

/// The key of the kernel that combines the partial results of a column reduction. It touches these and the results
/// alone, so steps that compute quite different things share it.
KernelKey combination_key(StepContext& context);

}  // namespace gradus::cpu_backend
