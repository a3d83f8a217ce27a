#include "gradus/backend/cpu/codegen/expand_masks.h"
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <vector>

namespace gradus::cpu_backend {
namespace {

/// The number of lanes of a mask that was made by a comparison of the lanes' numbers with it; null for other masks.
llvm::Value* count_of(llvm::IRBuilder<>& b, llvm::Value* mask, unsigned lanes) {
  if (auto* known = llvm::dyn_cast<llvm::Constant>(mask)) {
    std::uint64_t count = 0;
    while (count < lanes && known->getAggregateElement(static_cast<unsigned>(count))->isOneValue()) ++count;
    return b.getInt64(count);
  }
  const auto* compares = llvm::dyn_cast<llvm::ICmpInst>(mask);
  if (!compares || compares->getPredicate() != llvm::ICmpInst::ICMP_SLT) return nullptr;
  llvm::Value* const limit = llvm::getSplatValue(compares->getOperand(1));
  if (!llvm::isa<llvm::Constant>(compares->getOperand(0)) || limit == nullptr) return nullptr;
  llvm::Value* const count = b.CreateSExtOrTrunc(limit, b.getInt64Ty());
  llvm::Value* const positive = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, count, b.getInt64(0));
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, positive, b.getInt64(lanes));
}

class Expansion {
 public:
  Expansion(llvm::IntrinsicInst& access, llvm::FixedVectorType* vector, llvm::Align align)
      : access_(access), vector_(vector), align_(align), lanes_(vector->getNumElements()), b_(&access) {
    llvm::BasicBlock& entry = access.getFunction()->getEntryBlock();
    llvm::IRBuilder<> first(&entry, entry.getFirstInsertionPt());
    room_ = first.CreateAlloca(vector);
  }

  bool load() {
    llvm::Value* const count = count_of(b_, access_.getArgOperand(2), lanes_);
    if (!count) return false;
    b_.CreateAlignedStore(access_.getArgOperand(3), room_, align_);
    copy(count, access_.getArgOperand(0), room_);
    access_.replaceAllUsesWith(b_.CreateAlignedLoad(vector_, room_, align_));
    access_.eraseFromParent();
    return true;
  }
  bool store() {
    llvm::Value* const count = count_of(b_, access_.getArgOperand(3), lanes_);
    if (!count) return false;
    b_.CreateAlignedStore(access_.getArgOperand(0), room_, align_);
    copy(count, room_, access_.getArgOperand(1));
    access_.eraseFromParent();
    return true;
  }

 private:
  /// The bits of the count say which pieces there are; a piece lies behind all larger ones.
  void copy(llvm::Value* count, llvm::Value* from, llvm::Value* to) {
    for (std::uint64_t piece = lanes_; piece > 0; piece /= 2) {
      llvm::Value* const has = b_.CreateICmpNE(b_.CreateAnd(count, b_.getInt64(piece)), b_.getInt64(0));
      llvm::Value* const begin = b_.CreateAnd(count, b_.getInt64(~(2 * piece - 1)));
      llvm::IRBuilder<> inside(llvm::SplitBlockAndInsertIfThen(has, &access_, false));
      llvm::Type* const element = vector_->getElementType();
      llvm::Type* const type = piece == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(piece));
      llvm::Value* const some = inside.CreateAlignedLoad(type, inside.CreateGEP(element, from, begin), align_);
      inside.CreateAlignedStore(some, inside.CreateGEP(element, to, begin), align_);
      b_.SetInsertPoint(&access_);
    }
  }

  llvm::IntrinsicInst& access_;
  llvm::FixedVectorType* const vector_;
  const llvm::Align align_;
  const unsigned lanes_;
  llvm::IRBuilder<> b_;
  llvm::Value* room_ = nullptr;
};

bool expand(llvm::IntrinsicInst& access) {
  const bool loads = access.getIntrinsicID() == llvm::Intrinsic::masked_load;
  llvm::Type* const type = loads ? access.getType() : access.getArgOperand(0)->getType();
  const auto alignment = llvm::cast<llvm::ConstantInt>(access.getArgOperand(loads ? 1 : 2))->getZExtValue();
  Expansion expansion(access, llvm::cast<llvm::FixedVectorType>(type), llvm::Align(alignment));
  return loads ? expansion.load() : expansion.store();
}

}  // namespace

void expand_masks(llvm::Module& module) {
  std::vector<llvm::IntrinsicInst*> accesses;
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& instruction : block)
        if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
          if (call->getIntrinsicID() == llvm::Intrinsic::masked_load ||
              call->getIntrinsicID() == llvm::Intrinsic::masked_store)
            accesses.push_back(call);
  for (llvm::IntrinsicInst* access : accesses) expand(*access);  // a mask of another kind is left to LLVM
}

}  // namespace gradus::cpu_backend
