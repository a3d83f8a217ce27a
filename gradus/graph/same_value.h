/// Whether two values of a trace are surely equal.
#pragma once
#include "gradus/graph/node.h"

namespace gradus {

/// The same node; or the same op on nodes that are surely equal; or constants of the same bits. Linear in the number of
/// nodes that both have not in common.
bool are_surely_equal(const Node& a, const Node& b);

}  // namespace gradus
