/// The emitters write vector code themselves, so a few scalar passes are all that is left to do; the object goes
/// straight from memory to memory. Target machines are kept, each used by one thread at a time.
#include "gradus/backend/cpu/codegen/jit.h"
#include <llvm/ADT/StringMap.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/RTDyldMemoryManager.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include "gradus/backend/cpu/codegen/code_files.h"
#include "gradus/backend/cpu/codegen/code_memory.h"
#include "gradus/backend/cpu/codegen/expand_masks.h"
#include "gradus/backend/cpu/codegen/kernel_ir.h"
#include "gradus/backend/cpu/codegen/llvm_failures.h"
#include "gradus/backend/cpu/codegen/lower.h"
#include "gradus/base/error.h"
#include "gradus/base/version.h"

namespace gradus::cpu_backend {
namespace {

using namespace llvm;

[[noreturn]] void fail(const std::string& what) { throw InternalError("internal fault: LLVM: " + what); }

template <class T> T expect(Expected<T> made) {
  if (!made) fail(toString(made.takeError()));
  return std::move(*made);
}

/// CodeMemory, as the linker asks for it.
class Sections final : public RTDyldMemoryManager {
 public:
  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(uintptr_t code, Align, uintptr_t constants, Align, uintptr_t data, Align) override {
    memory_.reserve(code, constants, data);
  }
  uint8_t* allocateCodeSection(uintptr_t size, unsigned alignment, unsigned, StringRef) override {
    return reinterpret_cast<uint8_t*>(memory_.code().take(size, alignment));
  }
  uint8_t* allocateDataSection(uintptr_t size, unsigned alignment, unsigned, StringRef, bool is_constant) override {
    return reinterpret_cast<uint8_t*>((is_constant ? memory_.constants() : memory_.data()).take(size, alignment));
  }
  /// True if it fails.
  bool finalizeMemory(std::string* problem) override {
    if (memory_.protect()) return false;
    *problem = std::strerror(errno);
    return true;
  }

 private:
  CodeMemory memory_;
};

/// Sections of one program's object, linked in place.
class LinkedCode final : public MachineCode {
 public:
  explicit LinkedCode(MemoryBufferRef object) : bytes_(object.getBufferSize()), linker_(memory_, memory_) {
    const std::unique_ptr<object::ObjectFile> file = expect(object::ObjectFile::createObjectFile(object));
    const auto info = linker_.loadObject(*file);
    linker_.resolveRelocations();
    std::string problem;
    if (linker_.hasError()) fail(linker_.getErrorString().str());
    if (memory_.finalizeMemory(&problem)) fail(problem);
  }
  void* address(const std::string& function) const override {
    void* found = linker_.getSymbolLocalAddress(function);
    if (!found) fail("no code for " + function);
    return found;
  }
  std::size_t bytes() const override { return bytes_; }

 private:
  const std::size_t bytes_;
  Sections memory_;
  RuntimeDyld linker_;
};

/// Passes of the code generator that cost half of its time and gain nothing on loops that were written as vectors.
/// They can be switched off for a whole process only.
void switch_off_passes() {
  const StringMap<cl::Option*>& options = cl::getRegisteredOptions();
  const auto set = [&](const char* name, const char* value) {
    if (const auto it = options.find(name); it != options.end()) it->second->addOccurrence(0, name, value);
  };
  set("disable-lsr", "true");  // sums of columns run 10 % slower without, nothing else does
  set("disable-cgp", "true");
  set("enable-misched", "false");
  set("disable-post-ra", "true");
}

/// The target of code: this processor, or any one of its instruction set.
enum class For { here, object };

/// This processor's target, and those whose kernels for object files are part of the library.
bool know_targets() {
  switch_off_passes();
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
#ifdef GRADUS_OBJECTS_FOR_AARCH64
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
#endif
  return true;
}

std::unique_ptr<TargetMachine> make_machine(Isa isa, For what) {
  static const bool is_ready = know_targets();
  (void)is_ready;
  const Processor& processor = processor_of(isa);
  const std::string triple = is_own(processor) ? sys::getProcessTriple() : processor.triple;
  std::string problem;
  const Target* target = TargetRegistry::lookupTarget(triple, problem);
  if (!target) fail(problem);
  std::string cpu = processor.cpu, features = processor.features;
  if (what == For::object && processor.has_pair_tiles) {
    if (has_pair_products()) features = "+avx512bf16";
  } else if (processor.follows_host) {
    cpu = sys::getHostCPUName().str();
    for (const auto& [feature, present] : sys::getHostCPUFeatures())
      features += (features.empty() ? "" : ",") + std::string(present ? "+" : "-") + feature.str();
  }
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict;  // a multiply and an add stay two roundings
  std::unique_ptr<TargetMachine> machine(target->createTargetMachine(triple, cpu, features, options, Reloc::PIC_,
                                                                     CodeModel::Small, CodeGenOptLevel::Default, true));
  if (!machine) fail("no target machine for " + triple);
  return machine;
}

/// Unused machines of one instruction set.
class Machines {
 public:
  Machines(Isa isa, For what) : isa_(isa), for_(what) {}

  std::unique_ptr<TargetMachine> take() {
    {
      const std::lock_guard lock(guard_);
      if (!idle_.empty()) {
        std::unique_ptr<TargetMachine> machine = std::move(idle_.back());
        idle_.pop_back();
        return machine;
      }
    }
    return make_machine(isa_, for_);
  }
  void give(std::unique_ptr<TargetMachine> machine) {
    const std::lock_guard lock(guard_);
    idle_.push_back(std::move(machine));
  }

 private:
  const Isa isa_;
  const For for_;
  std::mutex guard_;
  std::vector<std::unique_ptr<TargetMachine>> idle_;
};

Machines& machines_of(Isa isa, For what) {
  static Machines* const machines[][2] = {
      // outlive every program
      {new Machines(Isa::avx2, For::here), new Machines(Isa::avx2, For::object)},
      {new Machines(Isa::avx512, For::here), new Machines(Isa::avx512, For::object)},
      {new Machines(Isa::neon, For::here), new Machines(Isa::neon, For::object)}};
  return *machines[static_cast<std::size_t>(isa)][static_cast<std::size_t>(what)];
}

class BorrowedMachine {
 public:
  explicit BorrowedMachine(Isa isa, For what = For::here) : from_(machines_of(isa, what)), machine_(from_.take()) {}
  BorrowedMachine(const BorrowedMachine&) = delete;
  ~BorrowedMachine() { from_.give(std::move(machine_)); }
  TargetMachine& operator*() const { return *machine_; }
  TargetMachine* operator->() const { return machine_.get(); }

 private:
  Machines& from_;
  std::unique_ptr<TargetMachine> machine_;
};

void mark(Module& module, const TargetMachine& machine) {
  for (Function& f : module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("prefer-vector-width", "512");
    f.addFnAttr("min-legal-vector-width", "512");
    f.addFnAttr("target-cpu", machine.getTargetCPU());
    f.addFnAttr("target-features", machine.getTargetFeatureString());
    f.addFnAttr("denormal-fp-math", "preserve-sign,preserve-sign");  // as every computing thread is set
    f.addFnAttr(Attribute::NoUnwind);
  }
}

void optimize(Module& module, TargetMachine& machine, Isa isa) {
  if (!processor_of(isa).has_masks) expand_masks(module);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager calls;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  FunctionPassManager passes;
  passes.addPass(EarlyCSEPass(true));
  passes.addPass(createFunctionToLoopPassAdaptor(LICMPass(LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(EarlyCSEPass(true));
  ModulePassManager all;
  all.addPass(createModuleToFunctionPassAdaptor(std::move(passes)));
  all.run(module, modules);
}

SmallVector<char, 0> object_of(Module& module, TargetMachine& machine) {
  SmallVector<char, 0> object;
  raw_svector_ostream out(object);
  legacy::PassManager passes;
  MCContext* context = nullptr;
  if (machine.addPassesToEmitMC(passes, context, out, /*DisableVerify=*/true)) fail("no code emitter for this machine");
  passes.run(module);
  return object;
}

constexpr int passes_version = 1;  // of optimize, object_of and make_machine: files of another one are not used

/// Everything that the machine code depends on: the passes, the numeric contract, LLVM, the processor, and the kernels.
std::string source_of(const Module& module, const TargetMachine& machine) {
  std::string source = text(passes_version, ' ', numeric_contract, '\n', LLVM_VERSION_STRING, '\n',
                            machine.getTargetCPU().str(), '\n', machine.getTargetFeatureString().str(), '\n');
  raw_string_ostream out(source);
  WriteBitcodeToFile(module, out);
  return source;
}

std::atomic<std::int64_t> generated{0};

std::shared_ptr<const MachineCode> linked(std::string_view object) {
  return std::make_shared<LinkedCode>(MemoryBufferRef(StringRef(object.data(), object.size()), "gradus"));
}

/// Null if there is none, or it is no code of all these functions, whatever else it is.
std::shared_ptr<const MachineCode> kept_code(const std::filesystem::path& directory, const std::string& source,
                                             const Module& module) {
  const std::optional<std::string> object = code_files::read(directory, source);
  if (!object) return nullptr;
  try {
    std::shared_ptr<const MachineCode> code = linked(*object);
    for (const Function& f : module)
      if (!f.isDeclaration()) code->address(f.getName().str());
    return code;
  } catch (const InternalError&) { return nullptr; }
}

}  // namespace

std::int64_t kernels_generated() { return generated.load(std::memory_order_relaxed); }

std::unique_ptr<llvm::Module> new_module(llvm::LLVMContext& context, Isa isa) {
  const BorrowedMachine machine(isa);
  auto module = std::make_unique<llvm::Module>("gradus", context);
  module->setDataLayout(machine->createDataLayout());
  module->setTargetTriple(machine->getTargetTriple().str());
  if (processor_of(isa).has_pair_tiles && has_pair_products()) set_has_pair_products(*module);
  return module;
}

namespace {

std::shared_ptr<const MachineCode> generate_here(llvm::Module& module, Isa isa) {
  const BorrowedMachine machine(isa);
  const std::filesystem::path directory = code_files::directory();
  const std::string source = directory.empty() ? std::string() : source_of(module, *machine);
  if (!directory.empty())
    if (auto known = kept_code(directory, source, module)) return known;
  mark(module, *machine);
  optimize(module, *machine, isa);
  const SmallVector<char, 0> object = object_of(module, *machine);
  generated.fetch_add(std::ranges::count_if(module, [](const Function& f) { return !f.isDeclaration(); }),
                      std::memory_order_relaxed);
  const std::string_view bytes(object.data(), object.size());
  if (!directory.empty()) code_files::write(directory, source, bytes);
  return linked(bytes);
}

}  // namespace

std::string object_for(llvm::Module& module, Isa isa) {
  const LlvmScope scope;
  const BorrowedMachine machine(isa, For::object);
  mark(module, *machine);
  optimize(module, *machine, isa);
  const SmallVector<char, 0> object = object_of(module, *machine);
  return {object.data(), object.size()};
}

std::shared_ptr<const MachineCode> generate(llvm::Module& module, Isa isa, std::string* object) {
  const LlvmScope scope;
  if (object != nullptr) return linked(*object = object_for(module, isa));
  return generate_here(module, isa);
}

}  // namespace gradus::cpu_backend
