/// Types, loads, stores and loops.
#include "gradus/backend/cpu/codegen/kernel_ir.h"
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>
#include <bit>

namespace gradus::cpu_backend {

llvm::Type* register_type(Builder& b, DType t) {
  if (t == f64) return b.getDoubleTy();
  if (computed_in(t) == f32) return b.getFloatTy();
  return t == boolean ? b.getInt1Ty() : b.getIntNTy(static_cast<unsigned>(8 * size_of(t)));
}

llvm::Type* memory_type(Builder& b, DType t) {
  if (is_narrow(t)) return b.getInt16Ty();
  return t == boolean ? b.getInt8Ty() : register_type(b, t);
}
llvm::Type* widen(llvm::Type* t, int n) { return n == 1 ? t : llvm::FixedVectorType::get(t, static_cast<unsigned>(n)); }

V constant(Builder& b, DType t, std::uint64_t bits, int n) {
  llvm::Type* type = register_type(b, t);
  llvm::Constant* c = nullptr;
  if (t == f64) c = llvm::ConstantFP::get(b.getContext(), llvm::APFloat(std::bit_cast<double>(bits)));
  else if (t == f32)
    c = llvm::ConstantFP::get(b.getContext(), llvm::APFloat(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
  else if (is_narrow(t)) {
    const auto raw = static_cast<std::uint16_t>(bits);
    const float number =
        t == f16 ? static_cast<float>(half::from_bits(raw)) : static_cast<float>(bfloat16::from_bits(raw));
    c = llvm::ConstantFP::get(b.getContext(), llvm::APFloat(number));
  } else if (t == boolean) c = b.getInt1((bits & 0xff) != 0);
  else c = llvm::ConstantInt::get(b.getContext(), llvm::APInt(type->getIntegerBitWidth(), bits));
  return n == 1 ? c : llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(static_cast<unsigned>(n)), c);
}

V splat(Builder& b, V scalar, int n) { return n == 1 ? scalar : b.CreateVectorSplat(static_cast<unsigned>(n), scalar); }

namespace {
/// `type` in as many lanes as `x` has.
llvm::Type* like(V x, llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  return vector ? llvm::FixedVectorType::get(type, vector->getNumElements()) : type;
}
llvm::Constant* number(V x, std::uint64_t value) { return llvm::ConstantInt::get(x->getType(), value); }

/// True if x is known not to be subnormal: a result of arithmetic. Looks through a few selections.
bool is_flushed(const llvm::Value* x, int selections = 4) {
  if (const auto* chosen = llvm::dyn_cast<llvm::SelectInst>(x))
    return selections > 0 && is_flushed(chosen->getTrueValue(), selections - 1) &&
           is_flushed(chosen->getFalseValue(), selections - 1);
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(x)) {
    const llvm::Intrinsic::ID id = call->getIntrinsicID();
    return id == llvm::Intrinsic::fma || id == llvm::Intrinsic::sqrt;
  }
  const auto* instruction = llvm::dyn_cast<llvm::BinaryOperator>(x);
  return instruction && instruction->getType()->isFPOrFPVectorTy();
}

constexpr const char* pairs_flag = "gradus.pairs";

/// The upper halves of vectors of floats rounded by vcvtneps2bf16, whose NaNs are those of rounded_to, and which takes
/// subnormal numbers for zeros.
V rounded_by_instruction(Builder& b, V x) {
  V narrow = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512, {}, {x});
  V bits = b.CreateZExt(b.CreateBitCast(narrow, like(x, b.getInt16Ty())), like(x, b.getInt32Ty()));
  return b.CreateBitCast(b.CreateShl(bits, 16), x->getType());
}
}  // namespace

void set_has_pair_products(llvm::Module& module) { module.addModuleFlag(llvm::Module::Override, pairs_flag, 1); }

V rounded_to(Builder& b, DType t, V x) {
  if (t == f16) return b.CreateFPExt(b.CreateFPTrunc(x, like(x, b.getHalfTy())), x->getType());
  if (x->getType() == widen(b.getFloatTy(), lanes) && is_flushed(x) &&
      b.GetInsertBlock()->getModule()->getModuleFlag(pairs_flag))
    return rounded_by_instruction(b, x);
  V bits = b.CreateBitCast(x, like(x, b.getInt32Ty()));
  V odd = b.CreateAnd(b.CreateLShr(bits, 16), number(bits, 1));
  V nearest = b.CreateAdd(b.CreateAdd(bits, number(bits, 0x7fff)), odd);
  V quiet = b.CreateOr(bits, number(bits, 0x400000));
  V upper = b.CreateAnd(b.CreateSelect(b.CreateFCmpUNO(x, x), quiet, nearest), number(bits, 0xffff0000));
  return b.CreateBitCast(upper, x->getType());
}

V narrow_bits(Builder& b, DType t, V x) {
  llvm::Type* type = like(x, b.getInt16Ty());
  if (t == f16) return b.CreateBitCast(b.CreateFPTrunc(x, like(x, b.getHalfTy())), type);
  return b.CreateTrunc(b.CreateLShr(b.CreateBitCast(x, like(x, b.getInt32Ty())), 16), type);
}

V from_narrow_bits(Builder& b, DType t, V bits) {
  llvm::Type* type = like(bits, b.getFloatTy());
  if (t == f16) return b.CreateFPExt(b.CreateBitCast(bits, like(bits, b.getHalfTy())), type);
  return b.CreateBitCast(b.CreateShl(b.CreateZExt(bits, like(bits, b.getInt32Ty())), 16), type);
}

namespace {
llvm::Constant* lane_numbers(Builder& b) {
  std::uint64_t numbers[lanes];
  for (int i = 0; i < lanes; ++i) numbers[i] = static_cast<std::uint64_t>(i);
  return llvm::ConstantDataVector::get(b.getContext(), numbers);
}
}  // namespace

V sequence(Builder& b, V first, V step) {
  V numbers = lane_numbers(b);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(step); !known || !known->isOne())
    numbers = b.CreateMul(numbers, splat(b, step, lanes));
  return b.CreateAdd(splat(b, first, lanes), numbers);
}

V lanes_below(Builder& b, V count) {
  // Bytes are enough: a vector of sixteen is compared in one instruction.
  if (!llvm::isa<llvm::ConstantInt>(count)) {
    V small = b.CreateTrunc(b.CreateSelect(b.CreateICmpSLT(count, b.getInt64(lanes)), count, b.getInt64(lanes)),
                            b.getInt32Ty());
    V numbers = b.CreateTrunc(lane_numbers(b), widen(b.getInt32Ty(), lanes));
    return b.CreateICmpSLT(numbers, splat(b, small, lanes));
  }
  return b.CreateICmpSLT(lane_numbers(b), splat(b, count, lanes));
}

V element_address(Builder& b, DType t, V base, V index) { return b.CreateGEP(memory_type(b, t), base, index); }

namespace {
V as_register(Builder& b, DType t, V raw) {
  if (is_narrow(t)) return from_narrow_bits(b, t, raw);
  return t == boolean ? b.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType())) : raw;
}
llvm::Align alignment(DType t) { return llvm::Align(static_cast<std::uint64_t>(size_of(t))); }
}  // namespace

V load(Builder& b, DType t, V address, int n, V mask) {
  llvm::Type* type = widen(memory_type(b, t), n);
  V raw =
      mask ? static_cast<V>(b.CreateMaskedLoad(type, address, alignment(t), mask, llvm::Constant::getNullValue(type)))
           : b.CreateAlignedLoad(type, address, alignment(t));
  return as_register(b, t, raw);
}

V gather(Builder& b, DType t, V addresses) {
  llvm::Type* type = widen(memory_type(b, t), lanes);
  V all = llvm::Constant::getAllOnesValue(widen(b.getInt1Ty(), lanes));
  return as_register(b, t, b.CreateMaskedGather(type, addresses, alignment(t), all, llvm::PoisonValue::get(type)));
}

void store(Builder& b, DType t, V value, V address, V mask) {
  const int n = value->getType()->isVectorTy() ? lanes : 1;
  if (t == boolean) value = b.CreateZExt(value, widen(b.getInt8Ty(), n));
  if (is_narrow(t)) value = narrow_bits(b, t, value);
  if (mask) b.CreateMaskedStore(value, address, alignment(t), mask);
  else b.CreateAlignedStore(value, address, alignment(t));
}

namespace {
llvm::BasicBlock* new_block(Builder& b, const char* name) {
  return llvm::BasicBlock::Create(b.getContext(), name, b.GetInsertBlock()->getParent());
}
}  // namespace

Carried emit_loop(Builder& b, V begin, V end, std::int64_t step, const Carried& initial, const LoopBody& body) {
  auto *head = new_block(b, "head"), *inside = new_block(b, "body"), *done = new_block(b, "done");
  auto* before = b.GetInsertBlock();
  b.CreateBr(head);
  b.SetInsertPoint(head);
  auto* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  llvm::SmallVector<llvm::PHINode*, 4> phis;
  Carried carried;
  for (V v : initial) {
    auto* phi = b.CreatePHI(v->getType(), 2);
    phi->addIncoming(v, before);
    phis.push_back(phi);
    carried.push_back(phi);
  }
  b.CreateCondBr(b.CreateICmpSLT(i, end), inside, done);
  b.SetInsertPoint(inside);
  const Carried next = body(i, carried);
  internal_check(next.size() == phis.size(), "a loop carries as much as it began with");
  i->addIncoming(b.CreateAdd(i, b.getInt64(static_cast<std::uint64_t>(step)), "", true, true), b.GetInsertBlock());
  for (std::size_t k = 0; k < phis.size(); ++k) phis[k]->addIncoming(next[k], b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(done);
  return carried;
}

Carried emit_if(Builder& b, V condition, const Carried& otherwise, const std::function<Carried()>& then) {
  auto *yes = new_block(b, "then"), *done = new_block(b, "join");
  auto* before = b.GetInsertBlock();
  b.CreateCondBr(condition, yes, done);
  b.SetInsertPoint(yes);
  const Carried values = then();
  auto* after = b.GetInsertBlock();
  b.CreateBr(done);
  b.SetInsertPoint(done);
  Carried joined;
  for (std::size_t k = 0; k < values.size(); ++k) {
    auto* phi = b.CreatePHI(values[k]->getType(), 2);
    phi->addIncoming(otherwise[k], before);
    phi->addIncoming(values[k], after);
    joined.push_back(phi);
  }
  return joined;
}

}  // namespace gradus::cpu_backend
