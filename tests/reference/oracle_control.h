/// What branches and loops mean to the oracle.
#pragma once
#include <vector>
#include "gradus/graph/graph.h"

namespace gradus::reference {

/// The result of the branch or loop `v`, whose operands have these values.
std::vector<double> control(const Value& v, const std::vector<std::vector<double>>& in);

}  // namespace gradus::reference
