/// One instruction of a formula after the other; graph/scalar.h says what each of them means.
#include "gradus/backend/cpu/lower_scalar.h"
#include <llvm/IR/Intrinsics.h>
#include <bit>

namespace gradus::cpu_backend {
namespace {

using scalar::Instruction;
using scalar::Opcode;

/// The quotient of integers of at most 32 bits by way of floats that hold both exactly: vectors divide floats only.
V divide_as_floats(Builder& b, V x, V y, llvm::Type* real, bool is_signed) {
  V q = is_signed ? b.CreateFDiv(b.CreateSIToFP(x, real), b.CreateSIToFP(y, real))
                  : b.CreateFDiv(b.CreateUIToFP(x, real), b.CreateUIToFP(y, real));
  return is_signed ? b.CreateFPToSI(q, x->getType()) : b.CreateFPToUI(q, x->getType());
}

/// Towards zero; x / 0 = 0, MIN / -1 = MIN.
V divide_integers(Builder& b, DType t, V x, V y, int n) {
  V zero = constant(b, t, 0, n), one = constant(b, t, 1, n);
  V by_zero = b.CreateICmpEQ(y, zero), unsafe = by_zero;
  if (t != u8) {
    V lowest = constant(b, t, t == i64 ? std::uint64_t{1} << 63 : std::uint64_t{1} << 31, n);
    V minus_one = llvm::Constant::getAllOnesValue(y->getType());
    unsafe = b.CreateOr(unsafe, b.CreateAnd(b.CreateICmpEQ(x, lowest), b.CreateICmpEQ(y, minus_one)));
  }
  V safe = b.CreateSelect(unsafe, one, y);
  V quotient = nullptr;
  if (llvm::isa<llvm::Constant>(safe) || t == i64) quotient = t == u8 ? b.CreateUDiv(x, safe) : b.CreateSDiv(x, safe);
  else quotient = divide_as_floats(b, x, safe, widen(t == u8 ? b.getFloatTy() : b.getDoubleTy(), n), t != u8);
  return b.CreateSelect(by_zero, zero, quotient);
}

V arithmetic(Builder& b, Opcode op, DType t, V x, V y, int n) {
  const bool real = is_floating(t);
  switch (op) {
    case Opcode::add: return real ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
    case Opcode::subtract: return real ? b.CreateFSub(x, y) : b.CreateSub(x, y);
    case Opcode::multiply: return real ? b.CreateFMul(x, y) : b.CreateMul(x, y);
    default: return real ? b.CreateFDiv(x, y) : divide_integers(b, t, x, y, n);
  }
}

V less(Builder& b, DType t, V x, V y) {
  if (is_floating(t)) return b.CreateFCmpOLT(x, y);
  return t == u8 || t == boolean ? b.CreateICmpULT(x, y) : b.CreateICmpSLT(x, y);
}

V less_equal(Builder& b, DType t, V x, V y) {
  if (is_floating(t)) return b.CreateFCmpOLE(x, y);
  return t == u8 || t == boolean ? b.CreateICmpULE(x, y) : b.CreateICmpSLE(x, y);
}

V absolute(Builder& b, DType t, V x) {
  if (is_floating(t)) return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  if (t == u8) return x;
  return b.CreateIntrinsic(x->getType(), llvm::Intrinsic::abs, {x, b.getFalse()});
}

V convert_from_float(Builder& b, DType to, V x, int n) {
  llvm::Type* type = widen(register_type(b, to), n);
  if (to == boolean) return b.CreateFCmpUNE(x, llvm::Constant::getNullValue(x->getType()));
  if (is_floating(to)) return b.CreateFPCast(x, type);
  return b.CreateIntrinsic(to == u8 ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat, {type, x->getType()},
                           {x});
}

V convert(Builder& b, DType from, DType to, V x, int n) {
  if (from == to) return x;
  if (is_floating(from)) return convert_from_float(b, to, x, n);
  llvm::Type* type = widen(register_type(b, to), n);
  const bool is_signed = from == i64 || from == i32;
  if (to == boolean) return b.CreateICmpNE(x, llvm::Constant::getNullValue(x->getType()));
  if (is_floating(to)) return is_signed ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
  return b.CreateIntCast(x, type, is_signed);
}

V bitcast(Builder& b, DType from, DType to, V x, int n) {
  if (from == boolean || to == boolean) return convert(b, from, to, x, n);
  return b.CreateBitCast(x, widen(register_type(b, to), n));
}

V shift(Builder& b, Opcode op, DType t, V x, V y) {
  if (op == Opcode::shift_left) return b.CreateShl(x, y);
  return op == Opcode::shift_right && t != u8 ? b.CreateAShr(x, y) : b.CreateLShr(x, y);
}

/// `from`: the type of the first operand.
V lower_one(Builder& b, const Instruction& in, DType from, V x, V y, V z, int n) {
  switch (in.op) {
    case Opcode::constant: return constant(b, in.type, in.bits, n);
    case Opcode::add:
    case Opcode::subtract:
    case Opcode::multiply:
    case Opcode::divide: return arithmetic(b, in.op, in.type, x, y, n);
    case Opcode::negate: return is_floating(in.type) ? b.CreateFNeg(x) : b.CreateNeg(x);
    case Opcode::absolute: return absolute(b, in.type, x);
    case Opcode::square_root: return b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
    case Opcode::round_even: return b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
    case Opcode::floor: return b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
    case Opcode::ceil: return b.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x);
    case Opcode::truncate: return b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x);
    case Opcode::fma: return b.CreateIntrinsic(x->getType(), llvm::Intrinsic::fma, {x, y, z});
    case Opcode::minimum: return b.CreateSelect(less(b, in.type, x, y), x, y);
    case Opcode::maximum: return b.CreateSelect(less(b, in.type, y, x), x, y);
    case Opcode::less: return less(b, from, x, y);
    case Opcode::less_equal: return less_equal(b, from, x, y);
    case Opcode::equal: return is_floating(from) ? b.CreateFCmpOEQ(x, y) : b.CreateICmpEQ(x, y);
    case Opcode::bit_and: return b.CreateAnd(x, y);
    case Opcode::bit_or: return b.CreateOr(x, y);
    case Opcode::bit_xor: return b.CreateXor(x, y);
    case Opcode::shift_left:
    case Opcode::shift_right:
    case Opcode::shift_right_logical: return shift(b, in.op, in.type, x, y);
    case Opcode::select: return b.CreateSelect(x, y, z);
    case Opcode::convert: return convert(b, from, in.type, x, n);
    case Opcode::bitcast: return bitcast(b, from, in.type, x, n);
    case Opcode::input:
    case Opcode::extent: break;
  }
  throw InternalError("an instruction of a formula that does not exist");
}

}  // namespace

V lower(Builder& b, const scalar::Code& code, std::span<V const> inputs, int n,
        const std::function<V(std::int64_t)>& extent) {
  llvm::SmallVector<V, 32> values;
  const auto at = [&](int i) { return i < 0 ? nullptr : values[static_cast<std::size_t>(i)]; };
  for (const Instruction& in : code.instructions) {
    if (in.op == Opcode::input) values.push_back(inputs[static_cast<std::size_t>(in.a)]);
    else if (in.op == Opcode::extent) values.push_back(splat(b, extent(std::bit_cast<std::int64_t>(in.bits)), n));
    else {
      const DType from = in.a < 0 ? in.type : code.instructions[static_cast<std::size_t>(in.a)].type;
      values.push_back(lower_one(b, in, from, at(in.a), at(in.b), at(in.c), n));
    }
  }
  return values[static_cast<std::size_t>(code.result)];
}

}  // namespace gradus::cpu_backend
