/// Small ONNX models, made by hand and written to bytes.
#pragma once
#include <span>
#include <string>
#include <vector>
#include "gradus/onnx/model.h"
#include "gradus/onnx/model_file.h"
#include "gradus/ops/constant.h"

namespace gradus::onnx {

using Words = std::vector<std::string>;
using Kind = Attribute::Kind;

inline Attribute integer(std::string name, std::int64_t value) {
  return {.name = std::move(name), .kind = Kind::integer, .integer = value};
}
inline Attribute number(std::string name, double value) {
  return {.name = std::move(name), .kind = Kind::number, .number = value};
}
inline Attribute word(std::string name, std::string value) {
  return {.name = std::move(name), .kind = Kind::word, .word = std::move(value)};
}
inline Attribute words(std::string name, Words values) {
  return {.name = std::move(name), .kind = Kind::words, .words = std::move(values)};
}
inline Attribute integers(std::string name, std::vector<std::int64_t> values) {
  return {.name = std::move(name), .kind = Kind::integers, .integers = std::move(values)};
}
inline Attribute subgraph(std::string name, GraphDefinition graph) {
  return {.name = std::move(name), .kind = Kind::graph, .graph = std::make_shared<GraphDefinition>(std::move(graph))};
}

inline NodeDefinition node(std::string op, Words inputs, Words outputs, std::vector<Attribute> attributes = {},
                           std::string domain = "") {
  return {.op = std::move(op),
          .domain = std::move(domain),
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .attributes = std::move(attributes)};
}
inline ValueInfo port(std::string name, DType dtype = f32, std::optional<Shape> shape = {}) {
  ValueInfo info{.name = std::move(name), .dtype = dtype, .shape = std::move(shape)};
  if (info.shape) info.dimension_names.resize(static_cast<std::size_t>(info.shape->rank()));
  return info;
}
inline GraphDefinition graph(std::vector<NodeDefinition> nodes, std::vector<ValueInfo> inputs,
                             std::vector<ValueInfo> outputs, std::vector<NamedTensor> initializers = {}) {
  return {.name = "g",
          .nodes = std::move(nodes),
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .initializers = std::move(initializers)};
}
inline ModelFile file_of(GraphDefinition body, std::int64_t opset = 21) {
  return {
      .ir_version = 10, .opsets = {{"", opset}, {"ai.onnx.preview.training", 1}, {"own", 1}}, .graph = std::move(body)};
}
inline Model model_of(const ModelFile& file) {
  const std::string bytes = written(file, "sample");
  return parse(std::as_bytes(std::span(bytes)), "sample");
}
inline Model model_of(GraphDefinition body, std::int64_t opset = 21) {
  return model_of(file_of(std::move(body), opset));
}

inline Tensors call(const Model& model, Tensors inputs) { return model(std::span<const Tensor>(inputs)); }

/// What loading or running says; empty if nothing is wrong.
inline std::string complaint(auto&& run) {
  try {
    run();
    return "";
  } catch (const Error& error) { return error.what(); }
}

}  // namespace gradus::onnx
