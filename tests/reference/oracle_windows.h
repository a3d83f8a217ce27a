/// What convolutions and pooling mean to the oracle.
#pragma once
#include <vector>
#include "gradus/graph/graph.h"

namespace gradus::reference {

/// The result of the op over windows `v`, whose operands have these specs and values.
std::vector<double> over_windows(const Value& v, const std::vector<Spec>& specs,
                                 const std::vector<const std::vector<double>*>& in);

}  // namespace gradus::reference
