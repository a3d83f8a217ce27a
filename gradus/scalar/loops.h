/// The loops of the interpreter: one instruction of the scalar instruction set on arrays.
#pragma once
#include "gradus/scalar/scalar.h"

namespace gradus::scalar {

/// result[i] = op(a[i], b[i], c[i]) for i in [0, count). The result may overwrite an operand of its width.
using Loop = void (*)(void* result, const void* a, const void* b, const void* c, std::int64_t count);

/// The loop of `op` with operands of type `from` (for select: of its last two) and a result of type `to`. Not for
/// inputs, constants and extents, which need no work.
Loop loop_of(scalar::Opcode op, DType from, DType to);
/// Copies elements of this type.
Loop copy_loop(DType t);

}  // namespace gradus::scalar
