/// Branches and loops as ONNX's If and Scan.
#pragma once
#include <string>
#include <vector>
#include "gradus/graph/graph.h"
#include "gradus/onnx/graph_writer.h"

namespace gradus::onnx {

/// write_value of export_ops.h for cond and for scans over elements; empty if `v` is neither.
std::string write_control(GraphWriter& out, const Value& v, const std::vector<std::string>& in);

}  // namespace gradus::onnx
