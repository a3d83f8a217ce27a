/// Graphs on a device of the plugin, for tests that look at the numbers of programs rather than at how they are run.
#pragma once
#include <vector>
#include "gradus/graph/graph.h"
#include "gradus/tensor/device.h"

namespace gradus::testing_plugin {

/// Host tensors with the outputs of `graph`, of known sizes, as one program of the device computes them.
Tensors computed_there(const Graph& graph, const Tensors& inputs, const Device& device);

}  // namespace gradus::testing_plugin
