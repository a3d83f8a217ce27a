/// Code of steps by their structure. Programs share it while any of them lives; new code is emitted into a few modules,
/// which are generated side by side.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>
#include "gradus/backend/cpu/codegen/jit.h"
#include "gradus/backend/cpu/run/program.h"
#include "gradus/base/error.h"

namespace gradus::cpu_backend {

/// The kernels of steps of one structure, one for each thunk.
struct StepCode {
  struct Part {
    std::string name;
    std::int64_t worker_scratch = 0;  // a dimension
    KernelFunction run = nullptr;
  };
  std::vector<Part> parts;
  std::vector<std::int64_t> dimensions;  // symbolic ones that the kernels read, in the order of the thunk's data
  std::vector<AnyOp> ops;                // whose records' addresses stand in the key
  std::shared_ptr<const MachineCode> code;
  std::size_t module = 0;  // while it is made
};

/// The code of one program.
class StepCodes {
 public:
  /// `shares`: steps of one structure share their code, also with those of other programs. `kept`, if it is set, gets
  /// the object files and the names in them; then nothing is shared with other programs.
  StepCodes(Isa isa, bool shares, KeptCode* kept = nullptr)
      : isa_(isa), shares_(shares && kept == nullptr), kept_(kept) {}

  /// The code of steps of this structure. If it is new, it has no parts yet and is emitted into its module_of().
  StepCode& find_or_add(const std::string& key, std::vector<AnyOp> ops);
  llvm::Module& module_of(const StepCode& code) { return *modules_[code.module].module; }
  /// For the next kernel: no other one of this program has it.
  std::string new_name();
  /// Enters a kernel that was emitted there.
  void add_part(StepCode& code, StepCode::Part part);

  /// Generates the new code. From now on all parts can be run, and other programs find them.
  void finish();
  /// Keeps all of it alive, but not this.
  std::shared_ptr<const void> owner() const;
  /// The bytes of all machine code that is kept alive, by whatever programs.
  std::size_t bytes() const;

 private:
  struct Unit {
    std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
    std::unique_ptr<llvm::Module> module;
    std::size_t instructions = 0;
    std::shared_ptr<const MachineCode> code = nullptr;
    std::string object = {};  // if it is kept
  };
  std::size_t pick_module();

  const Isa isa_;
  const bool shares_;
  KeptCode* const kept_;
  int names_ = 0;
  std::vector<Unit> modules_;
  std::map<std::string, std::shared_ptr<StepCode>> codes_;  // by key
  std::vector<std::pair<std::string, std::shared_ptr<StepCode>>> added_;
};

}  // namespace gradus::cpu_backend
