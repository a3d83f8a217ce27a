/// Building blocks of kernels in LLVM's intermediate representation: types, vectors of sixteen lanes, loads, stores,
/// loops.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <functional>
#include "gradus/scalar/scalar.h"

namespace gradus::cpu_backend {

using V = llvm::Value*;
using Builder = llvm::IRBuilder<>;

/// Lanes of every vector loop and of every reduction, whatever the machine's vectors: part of the numeric contract.
inline constexpr int lanes = 16;
/// A run: elements of a row whose sums a lane begins with the identity, before it adds them to those of earlier runs.
/// Part of the numeric contract, too.
inline constexpr std::int64_t row_run = 512;

/// Booleans are one bit in registers and one byte in memory; narrow floats are floats in registers, already rounded.
llvm::Type* register_type(Builder& b, DType t);
llvm::Type* memory_type(Builder& b, DType t);
llvm::Type* widen(llvm::Type* t, int n);

/// The bits of `value`, as type t lies in memory, in n lanes.
V constant(Builder& b, DType t, std::uint64_t bits, int n);
V splat(Builder& b, V scalar, int n);

/// Says of a module that the processor it is for has AVX512_BF16.
void set_has_pair_products(llvm::Module& module);
/// A float rounded to the narrow float `t`, still as a float.
V rounded_to(Builder& b, DType t, V x);
/// A narrow float as its 16 bits, and back.
V narrow_bits(Builder& b, DType t, V x);
V from_narrow_bits(Builder& b, DType t, V bits);
/// first, first + step, first + 2*step ... as i64.
V sequence(Builder& b, V first, V step);
/// Lane l is on where l < count.
V lanes_below(Builder& b, V count);

V element_address(Builder& b, DType t, V base, V index);
/// n elements from `address` on. A mask is needed only where lanes may reach further than 64 bytes behind a buffer.
V load(Builder& b, DType t, V address, int n, V mask = nullptr);
/// One element from each address.
V gather(Builder& b, DType t, V addresses);
void store(Builder& b, DType t, V value, V address, V mask = nullptr);

/// for (i = begin; i < end; i += step) carried = body(i, carried). Gives the carried values after the last.
using Carried = llvm::SmallVector<V, 4>;
using LoopBody = std::function<Carried(V i, const Carried& carried)>;
Carried emit_loop(Builder& b, V begin, V end, std::int64_t step, const Carried& initial, const LoopBody& body);
/// condition ? then() : otherwise
Carried emit_if(Builder& b, V condition, const Carried& otherwise, const std::function<Carried()>& then);

}  // namespace gradus::cpu_backend
