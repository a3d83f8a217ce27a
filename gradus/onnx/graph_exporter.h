/// Writes the values of a flat graph as ONNX nodes, in order.
#pragma once
#include <string>
#include <vector>
#include "gradus/graph/per_value.h"
#include "gradus/onnx/graph_writer.h"

namespace gradus::onnx {

/// An input or output of a graph; each symbol is a named dimension.
ValueInfo info_of(const std::string& name, const Spec& spec);

class GraphExporter {
 public:
  GraphExporter(const Graph& graph, GraphWriter& out) : graph_(graph), out_(out), names_(graph) {}

  /// Names a value that exists already.
  void bind(int value, std::string name) { names_[value] = std::move(name); }
  /// Writes all other values. InvalidArgument, naming the op, for ops without a form in ONNX.
  void write();
  const std::string& name(int value) const { return names_[value]; }

 private:
  std::string written(const Value& v);
  const std::string& operand_name(const Value& v, int operand) const;
  const Graph& graph_;
  GraphWriter& out_;
  PerValue<std::string> names_;
};

}  // namespace gradus::onnx
