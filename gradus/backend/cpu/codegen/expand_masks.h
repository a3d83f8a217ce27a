/// Loads and stores of some lanes, for processors that have no instruction for them.
#pragma once
#include <llvm/IR/Module.h>

namespace gradus::cpu_backend {

/// Masked loads and stores of the first lanes become copies of halves, quarters ... of a vector by way of the stack:
/// one branch for each power of two. LLVM itself would branch at every lane, four instructions each.
void expand_masks(llvm::Module& module);

}  // namespace gradus::cpu_backend
