/// The terms of a scalar.
#pragma once
#include <functional>
#include "gradus/graph/tensor.h"

namespace gradus {

using IsTerm = std::function<bool(const Tensor&)>;

/// Finds a term of the scalar `x` that `is_wanted`: `x` itself, or an operand of its sums and differences, or of
/// products and quotients whose other factor is wanted, too. Empty if there is none.
Tensor find_term(const Tensor& x, const IsTerm& is_wanted);

}  // namespace gradus
