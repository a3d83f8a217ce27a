/// The terms of a scalar.
#pragma once
#include <functional>
#include "gradus/graph/tensor.h"

namespace gradus {

using IsTerm = std::function<bool(const Tensor&)>;

/// A term of the scalar `x` that `is_wanted`: `x` itself, or one behind sums, differences, and products and quotients
/// by a factor that is wanted, too. Empty if there is none.
Tensor find_term(const Tensor& x, const IsTerm& is_wanted);

}  // namespace gradus
