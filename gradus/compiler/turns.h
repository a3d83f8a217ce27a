/// Split-K products, which go in turns: few rows times weights that the program updates in place
/// (backend/cpu/kernels/matmul.cpp).
#pragma once
#include <span>
#include "gradus/compiler/steps.h"
#include "gradus/compiler/target_model.h"

namespace gradus {

/// True if a Matmul goes in turns. Without `symbols`, usual sizes stand for open ones.
bool is_in_turns(const Graph& graph, int product, std::span<const std::int64_t> symbols, const TargetModel& target);

}  // namespace gradus
