/// Convolutions and pooling as ONNX nodes: channels are last here, first there.
#pragma once
#include <string>
#include <vector>
#include "gradus/graph/graph.h"
#include "gradus/onnx/graph_writer.h"

namespace gradus::onnx {

/// write_value of export_ops.h for the primitives of convolution and pooling; empty if `v` is none of them.
std::string write_windows(GraphWriter& out, const Graph& graph, const Value& v, const std::vector<std::string>& in);

}  // namespace gradus::onnx
