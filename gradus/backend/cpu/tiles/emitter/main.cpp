/// gradus_emit_tiles avx2|avx512|neon FILE: writes the tiles of one instruction set as an object file: the table of
/// table.h, and each function under the number of its entry, in a section of its own. It runs while the library is
/// built; nothing of it is part of the library.
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <memory>
#include <stdexcept>
#include "gradus/backend/cpu/codegen/expand_masks.h"
#include "gradus/backend/cpu/tiles/emitter/amx.h"
#include "gradus/backend/cpu/tiles/emitter/pack.h"
#include "gradus/backend/cpu/tiles/emitter/tile.h"
#include "gradus/backend/cpu/tiles/table.h"
#include "gradus/tensor/dtype.h"

namespace gradus::cpu_backend {
namespace {

std::unique_ptr<llvm::TargetMachine> machine_for(const Processor& target) {
  // Loop strength reduction turns the addresses of a's rows into one chain of additions, as long as the loop's own
  // time.
  const char* switches[] = {"gradus_emit_tiles", "-disable-lsr", "-enable-misched=false"};
  llvm::cl::ParseCommandLineOptions(3, switches);
  llvm::InitializeAllTargetInfos();  // of the library's processor, which may be another than the one that builds it
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllAsmPrinters();
  const std::string triple = target.triple;
  std::string problem;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (!found) throw std::runtime_error(problem);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.FunctionSections = options.DataSections = true;  // an object file of a step takes what it calls
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, target.tile_cpu, target.tile_features, options, llvm::Reloc::PIC_, {}, llvm::CodeGenOptLevel::Default));
}

llvm::Type* type_of(llvm::LLVMContext& context, DType dtype) {
  if (dtype == f32) return llvm::Type::getFloatTy(context);
  if (dtype == f64) return llvm::Type::getDoubleTy(context);
  return llvm::Type::getIntNTy(context, dtype == i32 ? 32 : 64);
}

/// The functions in the order of TileTable's fields, null where there is none.
class Functions {
 public:
  Functions(llvm::Module& module, const Processor& target) : module_(module), target_(target) {}

  std::vector<llvm::Constant*> emit() {
    for (DType dtype : TileTable::kinds) emit_tiles(type_of(module_.getContext(), dtype), size_of(dtype));
    for (bool rounds : {true, false})
      emit_tiles(llvm::Type::getFloatTy(module_.getContext()), size_of(f32), true, rounds);
    for (auto emit : {emit_copy, emit_transpose})
      for (int bytes : {4, 8})
        for (int vectors : {1, 2}) add(emit(module_, pack(bytes, vectors), "pack"));
    for (int vectors : {1, 2}) add(emit_pair_rows(module_, pack(4, vectors), "pack"));
    Pack floats = pack(4, 1);
    floats.element = llvm::Type::getFloatTy(module_.getContext());
    add(emit_round(module_, floats, "round"));
    floats.by_instruction = true;
    add(has_pairs() ? with(",+avx512bf16", emit_round(module_, floats, "round")) : nullptr);
    emit_amx_tiles();
    for (DType dtype : TileTable::kinds) emit_wide_tiles(type_of(module_.getContext(), dtype), size_of(dtype));
    return std::move(table_);
  }

 private:
  bool has_pairs() const { return target_.has_pair_tiles; }
  unsigned lanes(std::int64_t bytes) const { return static_cast<unsigned>(target_.tiles.vector_bytes / bytes); }
  Pack pack(int bytes, int vectors) const {
    return {.element = llvm::Type::getIntNTy(module_.getContext(), static_cast<unsigned>(bytes) * 8),
            .vectors = vectors,
            .lanes = lanes(bytes),
            .has_masks = target_.has_masks};
  }

  void emit_tiles(llvm::Type* element, std::int64_t bytes, bool pairs = false, bool rounds = false) {
    for (int vectors = 1; vectors <= TileTable::widths; ++vectors)
      for (int rows = 1; rows <= TileTable::heights; ++rows) {
        const bool exists = rows <= target_.tiles.rows[vectors - 1] && (!pairs || has_pairs());
        const Tile wanted{.element = element,
                          .rows = rows,
                          .vectors = vectors,
                          .lanes = lanes(bytes),
                          .fetches_packed_b = target_.tiles.fetches_packed_b,
                          .pairs = pairs,
                          .rounds = rounds,
                          .has_masks = target_.has_masks};
        llvm::Function* tile = exists ? emit_tile(module_, wanted, "tile") : nullptr;
        add(pairs && tile ? with(",+avx512bf16", tile) : tile);
      }
  }

  void emit_wide_tiles(llvm::Type* element, std::int64_t bytes) {
    for (int rows = 1; rows <= TileSizes::few_rows; ++rows) {
      const int vectors = static_cast<int>(target_.tiles.wide_vectors[rows - 1]);
      add(emit_tile(module_,
                    {.element = element, .rows = rows, .vectors = vectors, .lanes = lanes(bytes), .wide = true},
                    "wide"));
    }
  }

  void emit_amx_tiles() {
    const std::string features = ",+amx-tile,+amx-bf16";
    for (int rows = 1; rows <= AmxTiles::most; ++rows)
      for (int columns = 1; columns <= TileTable::widths; ++columns)
        add(has_pairs() ? with(features, emit_amx(module_, rows, columns, "amx")) : nullptr);
    add(has_pairs() ? with(features, emit_amx_configure(module_, "configure")) : nullptr);
    add(has_pairs() ? with(features, emit_amx_release(module_, "release")) : nullptr);
  }

  /// Called only where isa.h finds these features.
  llvm::Function* with(const std::string& features, llvm::Function* function) const {
    function->addFnAttr("target-features", std::string(target_.tile_features) + features);
    return function;
  }

  void add(llvm::Function* function) {
    auto* pointer = llvm::PointerType::get(module_.getContext(), 0);
    if (function) {
      function->setName(std::string(target_.tile_table) + "_" + std::to_string(table_.size()));
      function->setLinkage(llvm::GlobalValue::ExternalLinkage);
      function->setVisibility(llvm::GlobalValue::HiddenVisibility);
    }
    table_.push_back(function ? static_cast<llvm::Constant*>(function) : llvm::ConstantPointerNull::get(pointer));
  }

  llvm::Module& module_;
  const Processor& target_;
  std::vector<llvm::Constant*> table_;
};

void emit_functions(llvm::Module& module, const Processor& target) {
  auto* pointer = llvm::PointerType::get(module.getContext(), 0);
  const std::vector<llvm::Constant*> table = Functions(module, target).emit();
  auto* type = llvm::ArrayType::get(pointer, table.size());
  auto* global = llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal(target.tile_table, type));
  global->setConstant(true);
  global->setInitializer(llvm::ConstantArray::get(type, table));
  global->setVisibility(llvm::GlobalValue::HiddenVisibility);
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  all.run(module, modules);
}

void write_object(llvm::Module& module, llvm::TargetMachine& machine, const std::string& path) {
  std::error_code error;
  llvm::raw_fd_ostream out(path, error, llvm::sys::fs::OF_None);
  if (error) throw std::runtime_error(path + ": " + error.message());
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile))
    throw std::runtime_error("LLVM cannot write object files for this processor");
  passes.run(module);
}

void write_tiles(const Processor& target, const std::string& path) {
  auto machine = machine_for(target);
  llvm::LLVMContext context;
  llvm::Module module(target.tile_table, context);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple().str());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  emit_functions(module, target);
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("prefer-vector-width", "512");
    f.addFnAttr("min-legal-vector-width", "512");
    if (!f.hasFnAttribute("target-features")) f.addFnAttr("target-features", target.tile_features);
    f.addFnAttr(llvm::Attribute::NoUnwind);
  }
  std::string problem;
  llvm::raw_string_ostream out(problem);
  if (llvm::verifyModule(module, &out)) throw std::runtime_error("invalid IR: " + problem);
  if (!target.has_masks) expand_masks(module);
  optimize(module, *machine);
  write_object(module, *machine, path);
}

int run(int count, char** arguments) {
  if (count == 3)
    for (const Processor& target : processors)
      if (std::string_view(target.name) == arguments[1]) return write_tiles(target, arguments[2]), 0;
  llvm::errs() << "usage: gradus_emit_tiles avx2|avx512|neon FILE\n";
  return 2;
}

}  // namespace
}  // namespace gradus::cpu_backend

int main(int count, char** arguments) {
  try {
    return gradus::cpu_backend::run(count, arguments);
  } catch (const std::exception& problem) {
    llvm::errs() << "gradus_emit_tiles: " << problem.what() << "\n";
    return 1;
  }
}
