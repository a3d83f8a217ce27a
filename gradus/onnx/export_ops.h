/// Writing the ops of a flat graph as ONNX nodes.
#pragma once
#include <string>
#include <vector>
#include "gradus/graph/graph.h"
#include "gradus/onnx/graph_writer.h"

namespace gradus::onnx {

/// Writes value `v` of a flat graph, whose operands were written under the names `in`, and returns its name.
/// InvalidArgument, naming the op, if ONNX has no form of it.
std::string write_value(GraphWriter& out, const Graph& graph, const Value& v, const std::vector<std::string>& in);

}  // namespace gradus::onnx
