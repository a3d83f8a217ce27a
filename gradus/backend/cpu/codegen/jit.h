/// LLVM: turns a module into callable code and frees it with its last owner.
#pragma once
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <memory>
#include <string>
#include <vector>
#include "gradus/backend/cpu/isa.h"

namespace gradus::cpu_backend {

/// Generated code of one program. Its destructor frees the code.
class MachineCode {
 public:
  virtual ~MachineCode() = default;
  virtual void* address(const std::string& function) const = 0;
  virtual std::size_t bytes() const = 0;
};

/// An empty module for this machine.
std::unique_ptr<llvm::Module> new_module(llvm::LLVMContext& context, Isa isa);
/// Optimizes and generates code for every function of the module. Thread-safe. InternalError if LLVM fails.
/// `object`: gets the object file, of code for any processor of this instruction set.
std::shared_ptr<const MachineCode> generate(llvm::Module& module, Isa isa, std::string* object = nullptr);
/// The object file of a module that was made by new_module(), for any processor of this instruction set.
std::string object_for(llvm::Module& module, Isa isa);

}  // namespace gradus::cpu_backend
