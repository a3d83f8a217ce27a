/// Small helpers for writing IR.
#include "gradus/backend/cpu/tiles/emitter/ir.h"

namespace gradus::cpu_backend {
namespace {

llvm::Align element_align(llvm::Type* vector) { return llvm::Align(vector->getScalarSizeInBits() / 8); }

}  // namespace

V field(Builder& b, V structure, int index) {
  return b.CreateLoad(b.getInt64Ty(), at(b, structure, int64_t{8} * index));
}

V first_lanes(Builder& b, V count, unsigned lanes) {
  llvm::SmallVector<llvm::Constant*, 32> numbers;
  for (unsigned i = 0; i < lanes; ++i) numbers.push_back(b.getInt32(i));
  return b.CreateICmpSLT(llvm::ConstantVector::get(numbers),
                         b.CreateVectorSplat(lanes, b.CreateTrunc(count, b.getInt32Ty())));
}

V load(Builder& b, llvm::Type* vector, V address, V mask) {
  if (!mask) return b.CreateAlignedLoad(vector, address, element_align(vector));
  return b.CreateMaskedLoad(vector, address, element_align(vector), mask, llvm::Constant::getNullValue(vector));
}

void store(Builder& b, V value, V address, V mask) {
  if (mask) b.CreateMaskedStore(value, address, element_align(value->getType()), mask);
  else b.CreateAlignedStore(value, address, element_align(value->getType()));
}

void prefetch(Builder& b, V address, unsigned level, bool to_write) {
  b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()},
                    {address, b.getInt32(to_write), b.getInt32(4 - level), b.getInt32(1)});
}

llvm::BasicBlock* new_block(Builder& b, const char* name) {
  return llvm::BasicBlock::Create(b.getContext(), name, b.GetInsertBlock()->getParent());
}

}  // namespace gradus::cpu_backend
