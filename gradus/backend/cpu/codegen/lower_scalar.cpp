/// The instructions of a formula, in order; graph/scalar.h says what each of them means.
#include "gradus/backend/cpu/codegen/lower_scalar.h"
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>
#include <algorithm>
#include <bit>
#include <optional>
#include "gradus/base/floating_point_state.h"
#include "gradus/scalar/interpret.h"
#include "gradus/scalar/rare_parts.h"

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
  if (is_signed(t)) {
    V lowest = constant(b, t, std::uint64_t{1} << (8 * size_of(t) - 1), n);
    V minus_one = llvm::Constant::getAllOnesValue(y->getType());
    unsafe = b.CreateOr(unsafe, b.CreateAnd(b.CreateICmpEQ(x, lowest), b.CreateICmpEQ(y, minus_one)));
  }
  V safe = b.CreateSelect(unsafe, one, y);
  V quotient = nullptr;
  if (llvm::isa<llvm::Constant>(safe) || size_of(t) == 8)
    quotient = is_signed(t) ? b.CreateSDiv(x, safe) : b.CreateUDiv(x, safe);
  else
    quotient = divide_as_floats(b, x, safe, widen(size_of(t) < 4 ? b.getFloatTy() : b.getDoubleTy(), n), is_signed(t));
  return b.CreateSelect(by_zero, zero, quotient);
}

// ---------------------------------------------------------------- flushing, which LLVM does not know

/// Zeros in place of subnormal numbers, as arithmetic has it; by their bits.
V flushed(Builder& b, DType t, V x, int n) {
  V bits = b.CreateBitCast(x, widen(t == f64 ? b.getInt64Ty() : b.getInt32Ty(), n));
  const auto number = [&](std::uint64_t value) { return llvm::ConstantInt::get(bits->getType(), value); };
  const std::uint64_t sign = std::uint64_t{1} << (t == f64 ? 63 : 31);
  const std::uint64_t exponent = t == f64 ? 0x7ff0000000000000u : 0x7f800000u;
  V small = b.CreateICmpEQ(b.CreateAnd(bits, number(exponent)), number(0));
  return b.CreateBitCast(b.CreateSelect(small, b.CreateAnd(bits, number(sign)), bits), x->getType());
}

/// True if LLVM takes the other operand for the result, as it is: x * 1, x / 1, x + -0, x - 0.
bool is_neutral(Opcode op, V operand) {
  auto* known = llvm::dyn_cast<llvm::Constant>(operand);
  if (known && operand->getType()->isVectorTy()) known = known->getSplatValue();
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(known);
  if (!number) return false;
  if (op == Opcode::multiply || op == Opcode::divide) return number->isExactlyValue(1.0);
  return number->isZero() && number->isNegative() == (op == Opcode::add);
}

/// The bits of one lane of a constant, as its type lies in registers; nothing if it is none.
std::optional<std::uint64_t> known_bits(V x, int lane) {
  auto* known = llvm::dyn_cast<llvm::Constant>(x);
  if (known && x->getType()->isVectorTy()) known = known->getAggregateElement(static_cast<unsigned>(lane));
  if (const auto* real = llvm::dyn_cast_or_null<llvm::ConstantFP>(known))
    return real->getValueAPF().bitcastToAPInt().getZExtValue();
  if (const auto* whole = llvm::dyn_cast_or_null<llvm::ConstantInt>(known)) return whole->getZExtValue();
  return {};
}

/// True if it computes with possibly subnormal numbers, other than moving them.
bool may_flush(const Instruction& in, DType from) {
  return in.op != Opcode::constant && (from == f32 || from == f64) && !is_narrow(in.type);
}

/// An instruction whose operands are constants, computed as it would run: LLVM would find out that 1e-40 > 0. Null if
/// they are none.
V computed_now(Builder& b, const scalar::Code& code, const Instruction& in, std::span<V const> values, int n) {
  scalar::Code alone;
  Instruction last = in;
  llvm::SmallVector<V, 3> operands;
  for (int* operand : {&last.a, &last.b, &last.c}) {
    if (*operand < 0) continue;
    const auto place = static_cast<std::size_t>(*operand);
    if (!llvm::isa<llvm::Constant>(values[place])) return nullptr;
    const DType t = code.instructions[place].type;
    *operand = alone.add({.op = Opcode::input, .type = t, .a = static_cast<int>(operands.size())});
    operands.push_back(values[place]);
  }
  alone.result = alone.add(last);
  const bool is_splat = n == 1 || std::all_of(operands.begin(), operands.end(), [](V x) {
                          return llvm::cast<llvm::Constant>(x)->getSplatValue() != nullptr;
                        });
  const KernelFloats as_when_it_runs;
  std::vector<llvm::Constant*> results;
  for (int lane = 0; lane < (is_splat ? 1 : n); ++lane) {
    std::vector<std::uint64_t> bits;
    for (V x : operands) {
      const std::optional<std::uint64_t> known = known_bits(x, lane);
      if (!known) return nullptr;
      bits.push_back(*known);
    }
    results.push_back(llvm::cast<llvm::Constant>(constant(b, in.type, scalar::evaluate_bits(alone, bits), 1)));
  }
  if (n == 1) return results[0];
  if (!is_splat) return llvm::ConstantVector::get(results);
  return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(static_cast<unsigned>(n)), results[0]);
}

// ---------------------------------------------------------------- instructions

V arithmetic(Builder& b, Opcode op, DType t, V x, V y, int n) {
  const bool real = is_floating(t), commutes = op == Opcode::add || op == Opcode::multiply;
  if (real && is_neutral(op, y)) x = flushed(b, t, x, n);
  else if (real && commutes && is_neutral(op, x)) y = flushed(b, t, y, n);
  switch (op) {
    case Opcode::add: return real ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
    case Opcode::subtract: return real ? b.CreateFSub(x, y) : b.CreateSub(x, y);
    case Opcode::multiply: return real ? b.CreateFMul(x, y) : b.CreateMul(x, y);
    default: return real ? b.CreateFDiv(x, y) : divide_integers(b, t, x, y, n);
  }
}

V less(Builder& b, DType t, V x, V y) {
  if (is_floating(t)) return b.CreateFCmpOLT(x, y);
  return is_signed(t) ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y);
}

V less_equal(Builder& b, DType t, V x, V y) {
  if (is_floating(t)) return b.CreateFCmpOLE(x, y);
  return is_signed(t) ? b.CreateICmpSLE(x, y) : b.CreateICmpULE(x, y);
}

V absolute(Builder& b, DType t, V x) {
  if (is_floating(t)) return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  if (!is_signed(t)) return x;
  return b.CreateIntrinsic(x->getType(), llvm::Intrinsic::abs, {x, b.getFalse()});
}

/// A double rounded to a narrow float at once, as rounded_bits of tensor/half.h does it.
V narrow_double(Builder& b, DType to, V x, int n) {
  const std::uint64_t mantissa = to == f16 ? 10 : 7, bias = to == f16 ? 15 : 127, cut = 52 - mantissa;
  const std::uint64_t infinity = (2 * bias + 1) << mantissa;
  const auto number = [&](std::uint64_t value) { return constant(b, i64, value, n); };
  V all = b.CreateBitCast(x, widen(b.getInt64Ty(), n)), size = b.CreateAnd(all, number(~std::uint64_t{0} >> 1));
  V moved = b.CreateSub(size, number((1023 - bias) << 52));
  V odd = b.CreateAnd(b.CreateLShr(moved, number(cut)), number(1));
  V nearest = b.CreateAdd(b.CreateAdd(moved, number((std::uint64_t{1} << (cut - 1)) - 1)), odd);
  V result = b.CreateLShr(nearest, number(cut));
  const std::uint64_t aligner = (1023 + cut + 1 - bias) << 52;
  V sum = b.CreateFAdd(b.CreateBitCast(size, x->getType()), constant(b, f64, aligner, n));
  V subnormal = b.CreateSub(b.CreateBitCast(sum, size->getType()), number(aligner));
  result = b.CreateSelect(b.CreateICmpULT(size, number((1023 - bias + 1) << 52)), subnormal, result);
  result = b.CreateSelect(b.CreateICmpUGE(size, number((1023 + bias + 1) << 52)), number(infinity), result);
  const std::uint64_t quiet = infinity | std::uint64_t{1} << (mantissa - 1);
  result = b.CreateSelect(b.CreateFCmpUNO(x, x), number(quiet), result);
  V sign = b.CreateShl(b.CreateLShr(all, number(63)), number(15));
  return from_narrow_bits(b, to, b.CreateTrunc(b.CreateOr(result, sign), widen(b.getInt16Ty(), n)));
}

V convert_from_float(Builder& b, DType from, DType to, V x, int n) {
  llvm::Type* type = widen(register_type(b, to), n);
  if (to == boolean) return b.CreateFCmpUNE(x, llvm::Constant::getNullValue(x->getType()));
  if (is_narrow(to)) return from == f64 ? narrow_double(b, to, x, n) : rounded_to(b, to, x);
  if (auto* wider = llvm::dyn_cast<llvm::FPExtInst>(x); wider && wider->getSrcTy() == type)
    return flushed(b, to, wider->getOperand(0), n);  // there and back, which LLVM takes for nothing
  if (is_floating(to)) return b.CreateFPCast(x, type);
  return b.CreateIntrinsic(is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                           {type, x->getType()}, {x});
}

/// As rounding_double of tensor/half.h.
V rounding_double(Builder& b, DType from, V x, int n) {
  llvm::Type* type = widen(b.getDoubleTy(), n);
  const auto number = [&](std::uint64_t value) { return constant(b, from, value, n); };
  if (size_of(from) == 8) {
    constexpr std::uint64_t low = 0x7ff, exact = std::uint64_t{1} << 53;
    V joined = b.CreateAnd(x, number(~low));
    V rest = b.CreateICmpNE(b.CreateAnd(x, number(low)), number(0));
    joined = b.CreateOr(joined, b.CreateSelect(rest, number(low + 1), number(0)));
    V is_exact = is_signed(from) ? b.CreateICmpULE(b.CreateAdd(x, number(exact)), number(2 * exact))
                                 : b.CreateICmpULE(x, number(exact));
    x = b.CreateSelect(is_exact, x, joined);
  }
  return is_signed(from) ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
}

V convert(Builder& b, DType from, DType to, V x, int n) {
  if (from == to) return x;
  if (is_floating(from)) return convert_from_float(b, computed_in(from), to, x, n);
  llvm::Type* type = widen(register_type(b, to), n);
  if (to == boolean) return b.CreateICmpNE(x, llvm::Constant::getNullValue(x->getType()));
  if (to == bf16 && size_of(from) >= 4) return narrow_double(b, to, rounding_double(b, from, x, n), n);
  if (!is_floating(to)) return b.CreateIntCast(x, type, is_signed(from));
  V real = is_signed(from) ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
  return is_narrow(to) ? rounded_to(b, to, real) : real;
}

V bitcast(Builder& b, DType from, DType to, V x, int n) {
  if (from == boolean || to == boolean) return convert(b, from, to, x, n);
  if (is_narrow(from)) x = narrow_bits(b, from, x);
  if (is_narrow(to)) return from_narrow_bits(b, to, x);
  return b.CreateBitCast(x, widen(register_type(b, to), n));
}

V shift(Builder& b, Opcode op, DType t, V x, V y) {
  if (op == Opcode::shift_left) return b.CreateShl(x, y);
  return op == Opcode::shift_right && is_signed(t) ? b.CreateAShr(x, y) : b.CreateLShr(x, y);
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

/// A block that runs if `which` holds in a lane; its end joins the usual path. The builder is in it until join().
class RareBlock {
 public:
  RareBlock(Builder& b, V which) : b_(b), before_(b.GetInsertBlock()) {
    llvm::Function* function = before_->getParent();
    rare_ = llvm::BasicBlock::Create(b.getContext(), "rare", function);
    if (b.GetInsertPoint() == before_->end()) {
      after_ = llvm::BasicBlock::Create(b.getContext(), "usual", function);
    } else {
      after_ = before_->splitBasicBlock(b.GetInsertPoint(), "usual");
      before_->getTerminator()->eraseFromParent();
    }
    b.SetInsertPoint(before_);
    V any = which->getType()->isVectorTy() ? b.CreateOrReduce(which) : which;
    b.CreateCondBr(any, rare_, after_, llvm::MDBuilder(b.getContext()).createUnlikelyBranchWeights());
    b.SetInsertPoint(rare_);
  }
  /// Gives `rare` if the block ran, else `usual`.
  V join(V rare, V usual) {
    b_.CreateBr(after_);
    b_.SetInsertPoint(after_, after_->begin());
    llvm::PHINode* joined = b_.CreatePHI(rare->getType(), 2);
    joined->addIncoming(usual, before_);
    joined->addIncoming(rare, rare_);
    return joined;
  }

 private:
  Builder& b_;
  llvm::BasicBlock *before_, *rare_ = nullptr, *after_ = nullptr;
};

}  // namespace

V lower(Builder& b, const scalar::Code& formula, std::span<V const> inputs, int n,
        const std::function<V(std::int64_t)>& extent) {
  const auto [code, rare_parts] = scalar::arranged(formula);
  auto part = rare_parts.begin();
  std::optional<RareBlock> rare_block;
  llvm::SmallVector<V, 32> values;
  const auto at = [&](int i) { return i < 0 ? nullptr : values[static_cast<std::size_t>(i)]; };
  for (int i = 0; i < static_cast<int>(code.instructions.size()); ++i) {
    const Instruction& in = code.instructions[static_cast<std::size_t>(i)];
    if (part != rare_parts.end() && i == part->first)
      rare_block.emplace(b, at(code.instructions[static_cast<std::size_t>(part->choice)].a));
    if (in.op == Opcode::input) values.push_back(inputs[static_cast<std::size_t>(in.a)]);
    else if (in.op == Opcode::extent) values.push_back(splat(b, extent(std::bit_cast<std::int64_t>(in.bits)), n));
    else {
      const DType from = in.a < 0 ? in.type : code.instructions[static_cast<std::size_t>(in.a)].type;
      const std::span<V const> so_far(values.data(), values.size());
      V known = may_flush(in, from) ? computed_now(b, code, in, so_far, n) : nullptr;
      values.push_back(known ? known : lower_one(b, in, from, at(in.a), at(in.b), at(in.c), n));
    }
    if (part == rare_parts.end() || i != part->choice) continue;
    values.back() = rare_block->join(values.back(), at(in.c));
    ++part;
  }
  return values[static_cast<std::size_t>(code.result)];
}

}  // namespace gradus::cpu_backend
