/// The tile of AMX: the inner kernel of matrix products of bf16 on processors that have it.
#pragma once
#include <llvm/IR/Module.h>
#include <string>

namespace gradus::cpu_backend {

/// An AmxFunction (amx.h beside table.h) of one or two tiles of rows, and of columns.
llvm::Function* emit_amx(llvm::Module&, int row_tiles, int column_tiles, const std::string& name);
/// void(const AmxConfiguration*): the shapes of this thread's tiles, which become zeros.
llvm::Function* emit_amx_configure(llvm::Module&, const std::string& name);
/// void(): gives the tiles back, so that nothing of them is saved when threads change.
llvm::Function* emit_amx_release(llvm::Module&, const std::string& name);

}  // namespace gradus::cpu_backend
