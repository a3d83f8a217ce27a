/// Scalar formulas as LLVM instructions.
#pragma once
#include <span>
#include "gradus/backend/cpu/codegen/kernel_ir.h"

namespace gradus::cpu_backend {

/// Lowers `code` for n lanes. `extent(d)` gives the i64 extent of a dimension. A rare part gets a block of its own, so
/// the builder may end in a different block.
V lower(Builder& b, const scalar::Code& code, std::span<V const> inputs, int n,
        const std::function<V(std::int64_t)>& extent);

}  // namespace gradus::cpu_backend
