/// Writes the values of a flat graph as ONNX nodes, one after the other.
#pragma once
#include <string>
#include <vector>
#include "gradus/graph/graph.h"
#include "gradus/onnx/graph_writer.h"

namespace gradus::onnx {

class GraphExporter {
 public:
  GraphExporter(const Graph& graph, GraphWriter& out)
      : graph_(graph), out_(out), names_(static_cast<std::size_t>(graph.size())) {}

  /// Names a value that exists already.
  void bind(int value, std::string name) { names_[static_cast<std::size_t>(value)] = std::move(name); }
  /// Writes all other values. InvalidArgument, naming the op, for ops without a form in ONNX.
  void write();
  const std::string& name(int value) const { return names_[static_cast<std::size_t>(value)]; }

 private:
  std::string written(const Value& v);
  const std::string& operand_name(const Value& v, int operand) const;
  const Graph& graph_;
  GraphWriter& out_;
  std::vector<std::string> names_;
};

}  // namespace gradus::onnx
