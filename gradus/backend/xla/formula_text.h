/// Scalar formulas as StableHLO: its own functions where a formula is one of them, instructions for the rest.
#pragma once
#include "gradus/backend/xla/hlo_writer.h"
#include "gradus/scalar/scalar.h"

namespace gradus::xla {

/// The formula on values of one shape. Where a stretch of it is what scalar::exp, tanh ... record, StableHLO's own
/// function stands for it: a recorded polynomial would be simplified into something else ((x + C) - C becomes x), and a
/// device has better ones. Constants that the rest adds are hidden from simplification. Without `uses_functions`
/// everything is written as recorded.
HloValue write_formula(HloWriter& out, const scalar::Code& code, const HloValues& inputs, const Shape& shape,
                       bool uses_functions = true);

/// The instruction as StableHLO, on operands of one shape: its meaning is that of scalar/scalar.h on every platform.
HloValue write_instruction(HloWriter& out, scalar::Opcode op, const HloValues& operands, DType type);

}  // namespace gradus::xla
