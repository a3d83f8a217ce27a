#include "gradus/backend/cpu/codegen/object_module.h"
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <map>
#include "gradus/backend/cpu/codegen/jit.h"
#include "gradus/backend/cpu/codegen/llvm_failures.h"
#include "gradus/base/error.h"

namespace gradus::cpu_backend {
namespace {

using namespace llvm;

constexpr std::size_t behind = 64;  // bytes that vectors may read behind data

class ModuleWriter {
 public:
  ModuleWriter(const ObjectModule& made, Isa isa)
      : made_(made), module_(new_module(context_, isa)), builder_(context_) {}

  std::string write(Isa isa) {
    pointer_ = PointerType::get(context_, 0);
    number_ = Type::getInt64Ty(context_);
    for (const auto& [name, image] : made_.named) {
      constant(image)->setName(name);
      known_[image.get()]->setLinkage(GlobalValue::ExternalLinkage);
    }
    for (const ObjectModule::Step& step : made_.steps) write_step(step);
    if (made_.init) write_init();
    write_supported();
    return object_for(*module_, isa);
  }

 private:
  Function* declare(const std::string& name, Type* result, std::vector<Type*> parameters) {
    return Function::Create(FunctionType::get(result, parameters, false), GlobalValue::ExternalLinkage, name, *module_);
  }
  Function* define(const std::string& name, Type* result, std::vector<Type*> parameters) {
    Function* const f = declare(name, result, std::move(parameters));
    builder_.SetInsertPoint(BasicBlock::Create(context_, "", f));
    return f;
  }

  void write_step(const ObjectModule::Step& step) {
    Type* const returned = step.returns == Returns::f32   ? Type::getFloatTy(context_)
                           : step.returns == Returns::f64 ? Type::getDoubleTy(context_)
                                                          : Type::getVoidTy(context_);
    const auto parameters = static_cast<std::size_t>(1 + step.pointers);
    Function* const f = define(step.name, returned, std::vector<Type*>(parameters, pointer_));
    const bool returns = step.returns != Returns::nothing;
    AllocaInst* const result = builder_.CreateAlloca(ArrayType::get(builder_.getInt8Ty(), behind));
    result->setAlignment(Align(64));
    llvm::Value* const arguments =
        builder_.CreateAlloca(pointer_, builder_.getInt64(static_cast<std::uint64_t>(step.pointers) + 1));
    std::vector<llvm::Value*> passed;
    for (unsigned i = 0; i < static_cast<unsigned>(step.pointers); ++i) passed.push_back(f->getArg(i + 1));
    passed.push_back(result);
    for (std::size_t i = 0; i < passed.size(); ++i)
      builder_.CreateStore(passed[i], builder_.CreateConstInBoundsGEP1_64(pointer_, arguments, i));
    Function* run = module_->getFunction("gradus_object_run");
    if (run == nullptr) run = declare("gradus_object_run", number_, {pointer_, pointer_, pointer_});
    llvm::Value* const failed = builder_.CreateCall(run, {constant(step.step), f->getArg(0), arguments});
    if (!returns) {
      builder_.CreateRetVoid();
      return;
    }
    llvm::Value* const value = builder_.CreateLoad(returned, result);
    builder_.CreateRet(builder_.CreateSelect(builder_.CreateICmpEQ(failed, builder_.getInt64(0)), value,
                                             ConstantFP::getNaN(returned)));
  }

  void write_init() {
    Function* const f = define(made_.name + "_init", Type::getVoidTy(context_), {pointer_});
    Function* const init = declare("gradus_object_init", Type::getVoidTy(context_), {pointer_, pointer_});
    builder_.CreateCall(init, {constant(made_.init), f->getArg(0)});
    builder_.CreateRetVoid();
  }

  void write_supported() {
    define(made_.name + "_supported", builder_.getInt32Ty(), {});
    builder_.CreateRet(builder_.CreateCall(declare("gradus_object_supported", builder_.getInt32Ty(), {})));
  }

  /// Bytes and pointers in turn, and the bytes that may be read behind them.
  GlobalVariable* constant(const std::shared_ptr<const DataImage>& image) {
    if (const auto found = known_.find(image.get()); found != known_.end()) return found->second;
    std::map<std::size_t, Constant*> pointers;
    for (const DataImage::Pointer& p : image->pointers) pointers[p.offset] = address(p);
    std::vector<Constant*> parts;
    std::size_t done = 0;
    const auto add_bytes = [&](std::size_t end) {
      if (end > done)
        parts.push_back(
            ConstantDataArray::getRaw(StringRef(reinterpret_cast<const char*>(image->bytes.data()) + done, end - done),
                                      end - done, builder_.getInt8Ty()));
      done = end;
    };
    for (const auto& [offset, pointer] : pointers) {
      add_bytes(offset);
      parts.push_back(pointer);
      done = offset + sizeof(void*);
    }
    add_bytes(image->bytes.size());
    parts.push_back(ConstantAggregateZero::get(ArrayType::get(builder_.getInt8Ty(), behind)));
    Constant* const all = ConstantStruct::getAnon(context_, parts, /*Packed=*/true);
    auto* const global = new GlobalVariable(*module_, all->getType(), true, GlobalValue::PrivateLinkage, all);
    global->setAlignment(Align(64));
    return known_[image.get()] = global;
  }

  Constant* address(const DataImage::Pointer& p) {
    if (p.to) {
      Constant* const begin = constant(p.to);
      return p.behind == 0 ? begin
                           : ConstantExpr::getGetElementPtr(builder_.getInt8Ty(), begin, builder_.getInt64(p.behind));
    }
    const std::string symbol = made_.symbol_of(p.code);
    internal_check(!symbol.empty(), "an object file refers to code without a name");
    if (Function* const known = module_->getFunction(symbol)) return known;
    return declare(symbol, Type::getVoidTy(context_), {pointer_, number_, number_});
  }

  const ObjectModule& made_;
  LLVMContext context_;
  const std::unique_ptr<Module> module_;
  IRBuilder<> builder_;
  PointerType* pointer_ = nullptr;
  Type* number_ = nullptr;
  std::map<const DataImage*, GlobalVariable*> known_;
};

}  // namespace

std::string object_of_module(const ObjectModule& made, Isa isa) {
  const LlvmScope scope;
  return ModuleWriter(made, isa).write(isa);
}

}  // namespace gradus::cpu_backend
