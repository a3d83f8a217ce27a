/// Copies of operand blocks into the layout that tiles read fastest.
#pragma once
#include <llvm/IR/Module.h>
#include <string>

namespace gradus::cpu_backend {

struct Pack {
  llvm::Type* element;
  int vectors, lanes;  // of a panel
};

/// PackFunctions (table.h).
llvm::Function* emit_copy(llvm::Module&, const Pack&, const std::string& name);
llvm::Function* emit_transpose(llvm::Module&, const Pack&, const std::string& name);

}  // namespace gradus::cpu_backend
