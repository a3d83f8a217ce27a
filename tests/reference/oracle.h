/// What a graph means, in float64 and one element at a time: the oracle of the tests.
#pragma once
#include <vector>
#include "gradus/graph/graph.h"

namespace gradus::reference {

/// The outputs of `graph`, whose dimensions are all known. Integers and booleans are carried as whole numbers, exact up
/// to 2^53; floats are not rounded. OutOfRange where data are at fault.
std::vector<std::vector<double>> evaluate(const Graph& graph, const std::vector<std::vector<double>>& inputs);

}  // namespace gradus::reference
