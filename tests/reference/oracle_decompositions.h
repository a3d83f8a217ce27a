/// The oracle of decompositions of matrices.
#pragma once
#include <optional>
#include <vector>
#include "gradus/graph/graph.h"

namespace gradus::reference {

/// The result of the decomposition `v`, whose operand has this spec and these values. Nothing if v is none. Signs of
/// vectors are any.
std::optional<std::vector<double>> decomposition(const Value& v, const Spec& spec, const std::vector<double>& in);

}  // namespace gradus::reference
