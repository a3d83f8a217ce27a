/// Which products go in turns: few rows times weights that the program updates in place (backend/library/matmul.cpp).
#pragma once
#include <span>
#include "gradus/compiler/steps.h"
#include "gradus/compiler/target_model.h"

namespace gradus {

/// Of a Matmul; without `symbols` with the usual sizes in place of open ones.
bool is_in_turns(const Graph& graph, int product, std::span<const std::int64_t> symbols = {},
                 const TargetModel& target = {});

}  // namespace gradus
