/// The contents of an ONNX file, in our own types: the wire format and its generated code stay behind parse.cpp and
/// write.cpp.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/graph/tensor.h"
#include "gradus/onnx/unsupported.h"

namespace gradus::onnx {

struct GraphDefinition;

/// One attribute of a node.
struct Attribute {
  enum class Kind { none, number, integer, word, tensor, graph, numbers, integers, words, other };
  std::string name;
  Kind kind = Kind::none;
  double number = 0;
  std::int64_t integer = 0;
  std::string word;
  Tensor tensor;
  std::shared_ptr<GraphDefinition> graph;
  std::vector<double> numbers;
  std::vector<std::int64_t> integers;
  std::vector<std::string> words;
  std::string reference;  // within a function: the attribute of the call that has its value
};
std::string_view name_of(Attribute::Kind kind);

struct FunctionDefinition;
struct Row;

struct NodeDefinition {
  std::string name, op, domain, overload;  // the default domain is ""
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes;

  // Set by resolve():
  const Row* row = nullptr;                      // the row that computes it
  const FunctionDefinition* function = nullptr;  // or the function of the model that it calls
  int version = 0;                               // version of the op: its latest change up to the model's opset
  std::vector<std::string> dying;                // values that no later node of the graph reads
  /// Its name in messages: "node `conv1` (Conv)".
  std::string where() const;
};

/// An input or output as the file declares it. A dimension is an extent, or any_size if it is open.
struct ValueInfo {
  std::string name;
  DType dtype = f32;
  std::optional<Shape> shape;                // empty: the rank is not known
  std::vector<std::string> dimension_names;  // one per dimension; empty if it has no name
};

struct NamedTensor {
  std::string name;
  Tensor value;
};

struct GraphDefinition {
  std::string name;
  std::vector<NodeDefinition> nodes;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<NamedTensor> initializers;
};

struct OperatorSet {
  std::string domain;
  std::int64_t version = 0;
};

struct FunctionDefinition {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  // those without a default
  std::vector<Attribute> defaults;
  std::vector<OperatorSet> opsets;
  GraphDefinition body;  // nodes alone; no inputs, outputs or initializers
};

struct ModelFile {
  std::int64_t ir_version = 0;
  std::vector<OperatorSet> opsets;
  GraphDefinition graph;
  std::vector<std::unique_ptr<FunctionDefinition>> functions;
};

/// Reads a model. `folder` is where external data lies; nothing outside of it is ever read. `name` opens the errors:
/// DataError for a broken file, Unsupported for types that Gradus does not have.
ModelFile parse_model(std::span<const std::byte> bytes, const std::filesystem::path& folder, const std::string& name);
ModelFile read_model(const std::filesystem::path& file);
/// A serialized tensor, as in the data sets of ONNX's suite.
NamedTensor parse_tensor(std::span<const std::byte> bytes, const std::string& name);

/// The bytes of a file. ResourceExhausted from 2 GiB on; `name` opens the error.
std::string written(const ModelFile& model, const std::string& name);

/// The dtype of an ONNX element type. Unsupported, with its name, if there is none.
DType dtype_of_code(std::int64_t code);
std::int64_t code_of(DType dtype);

}  // namespace gradus::onnx
