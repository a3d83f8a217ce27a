/// Running a graph: the values by name that its nodes see, and its nodes in order.
#pragma once
#include <string>
#include <unordered_map>
#include "gradus/onnx/model_file.h"

namespace gradus::onnx {

class Scope {
 public:
  /// `outer`: the graph around this one, or null. `call`: the node that calls the function with this body, or null.
  explicit Scope(const GraphDefinition& graph, const Scope* outer = nullptr, const NodeDefinition* call = nullptr,
                 const FunctionDefinition* function = nullptr)
      : graph_(graph), outer_(outer), call_(call), function_(function), wide_(outer && outer->wide_) {}

  /// From now on floats narrower than f32 are f32 here, and in the graphs and functions that nodes run.
  void widen() { wide_ = true; }
  bool is_wide() const { return wide_; }

  void set(const std::string& name, const Tensor& value) { values_.insert_or_assign(name, as_here(value)); }
  void forget(const std::string& name) { values_.erase(name); }
  /// A value. DataError if neither this graph nor one around it has it.
  const Tensor& get(const std::string& name) const;
  bool has(const std::string& name) const;
  /// The value in this call of an attribute of the enclosing function; null if there is none.
  const Attribute* function_attribute(const std::string& name) const;
  const GraphDefinition& graph() const { return graph_; }
  const Scope* outer() const { return outer_; }

  void run(const NodeDefinition& node);
  /// Runs all nodes, and returns the graph's outputs.
  Tensors run_all();

 private:
  Tensor as_here(const Tensor& value) const;

  const GraphDefinition& graph_;
  const Scope* outer_;
  const NodeDefinition* call_;
  const FunctionDefinition* function_;
  bool wide_;
  std::unordered_map<std::string, Tensor> values_;
};

/// The outputs of a graph for these inputs. DataError if it takes another number of them.
Tensors run_graph(const GraphDefinition& graph, In inputs, const Scope* outer);

/// True if a Gradient is among the nodes, or those of their graphs: it runs earlier nodes again.
bool runs_again(const GraphDefinition& graph);

/// The names from outside that the graphs among the node's attributes use.
std::vector<std::string> captured_names(const NodeDefinition& node);

}  // namespace gradus::onnx
