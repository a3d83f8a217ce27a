/// Equality of values of a trace, as far as it is certain.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/node.h"

namespace gradus {

/// True for the same node, for the same op on nodes that are surely equal, and for constants of the same bits. It takes
/// time in proportion to the nodes that the two do not have in common.
bool are_surely_equal(const Node& a, const Node& b);

}  // namespace gradus
