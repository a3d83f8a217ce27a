/// Loops whose rows stay apart: the rows of the carried values never meet in the body, as the examples of a batch in a
/// recurrent network. Then each member of a team goes through all iterations with rows of its own, without waiting.
#pragma once
#include "gradus/compiler/steps.h"

namespace gradus {

/// The body of a loop: its steps, and those of its inputs that iterations hand on.
struct LoopBody {
  std::span<const Step> steps;
  std::vector<int> carries;  // positions among the inputs
  std::int64_t iterations = 0;
};

/// The number of rows into which all values written by `body`, in row-major order, can be divided so that a step makes
/// a row of its results only from the same rows of values written in the loop, and from values not written there; 0:
/// none.
std::int64_t rows_apart(const Graph& graph, const LoopBody& body, std::span<const std::int64_t> symbols);

}  // namespace gradus
