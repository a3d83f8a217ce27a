/// A graph of ONNX nodes under construction: fresh names, constants, and sizes that are known at each call only.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/onnx/model_file.h"

namespace gradus::onnx {

class GraphWriter {
 public:
  /// Adds a node with one output, and returns the output's name.
  std::string node(std::string_view op, std::vector<std::string> inputs, std::vector<Attribute> attributes = {});
  /// Adds a node with `count` outputs.
  std::vector<std::string> node_of(std::string_view op, std::vector<std::string> inputs, std::size_t count,
                                   std::vector<Attribute> attributes);
  /// The nodes that `write` adds, as a graph of its own that sees the values around it.
  GraphDefinition body(const std::function<void()>& write);
  /// The outputs of an op with several results; made when it is first seen.
  const std::vector<std::string>& outputs_of(const AnyOp& op, const std::vector<std::string>& inputs,
                                             const std::function<std::vector<std::string>()>& make);
  /// An initializer of this name, or of a fresh one.
  std::string initializer(const Tensor& value, std::string name = {});
  /// Integers as an initializer i64 [n]; equal ones share it.
  std::string integers(const std::vector<std::int64_t>& values);
  /// One number of this dtype, given by its bits.
  std::string scalar(DType dtype, std::uint64_t bits);

  /// Declares that symbol k of dimensions is extent `axis` of the value `input`.
  void bind_symbol(const std::string& input, int axis) { symbols_.emplace_back(input, axis); }
  /// A dimension, symbolic or not, as i64 [1].
  std::string dimension(std::int64_t d);
  /// Extents as i64 [rank].
  std::string shape(const Shape& shape);
  std::string reshape(const std::string& x, const Shape& shape);

  static Attribute integer(std::string name, std::int64_t value);
  static Attribute integers(std::string name, std::vector<std::int64_t> values);

  std::string fresh(std::string_view hint);

  GraphDefinition graph;

 private:
  std::string product(std::string_view term);
  std::string factor(std::string_view word);
  std::vector<std::pair<std::string, int>> symbols_;
  std::map<std::vector<std::int64_t>, std::string> integers_;
  std::map<std::pair<int, std::uint64_t>, std::string> scalars_;
  std::map<std::int64_t, std::string> dimensions_;
  std::map<std::pair<const OpRecord*, std::vector<std::string>>, std::vector<std::string>> applied_;
  int next_ = 0;
};

}  // namespace gradus::onnx
