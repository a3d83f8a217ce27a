/// The graph of nodes whose order is known, as a queue has them.
#pragma once
#include <span>
#include "gradus/base/rooms.h"
#include "gradus/graph/graph.h"

namespace gradus {

/// The flat program of distinct nodes, each after its operands: first the inputs, then the computed ones. It has no
/// outputs yet.
Graph flatten_in_order(std::span<Node* const> inputs, std::span<Node* const> computed);

}  // namespace gradus
