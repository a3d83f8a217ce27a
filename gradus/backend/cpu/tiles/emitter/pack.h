/// Copies of operand blocks into the layout that tiles read fastest, and of sums into a narrow result.
#pragma once
#include <llvm/IR/Module.h>
#include <string>

namespace gradus::cpu_backend {

struct Pack {
  llvm::Type* element;
  int vectors;  // of a panel
  unsigned lanes;
  bool by_instruction = false;  // rounding: for processors with AVX512_BF16
  bool has_masks = true;        // loads of some lanes cost no more than others
};

/// PackFunctions (table.h).
llvm::Function* emit_copy(llvm::Module&, const Pack&, const std::string& name);
llvm::Function* emit_transpose(llvm::Module&, const Pack&, const std::string& name);
/// The element is that of a pair, i32.
llvm::Function* emit_pair_rows(llvm::Module&, const Pack&, const std::string& name);
/// A vector at a time; the element is float.
llvm::Function* emit_round(llvm::Module&, const Pack&, const std::string& name);

}  // namespace gradus::cpu_backend
