#include "gradus/onnx/graph_writer.h"
#include <algorithm>
#include <charconv>
#include <cstring>
#include "gradus/ops/constant.h"

namespace gradus::onnx {
namespace {

std::int64_t number_in(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  internal_check(problem == std::errc() && end == word.data() + word.size(), "no number in a dimension: ", word);
  return value;
}

}  // namespace

std::string GraphWriter::fresh(std::string_view hint) { return text(hint, "_", next_++); }

std::string GraphWriter::node(std::string_view op, std::vector<std::string> inputs, std::vector<Attribute> attributes) {
  const std::string name = fresh(op);
  graph.nodes.push_back({.name = name,
                         .op = std::string(op),
                         .inputs = std::move(inputs),
                         .outputs = {name},
                         .attributes = std::move(attributes)});
  return name;
}

std::vector<std::string> GraphWriter::node_of(std::string_view op, std::vector<std::string> inputs, std::size_t count,
                                              std::vector<Attribute> attributes) {
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < count; ++i) outputs.push_back(fresh(op));
  graph.nodes.push_back({.name = outputs.front(),
                         .op = std::string(op),
                         .inputs = std::move(inputs),
                         .outputs = outputs,
                         .attributes = std::move(attributes)});
  return outputs;
}

/// Constants go into the graph at the top; names made within are not visible outside.
GraphDefinition GraphWriter::body(const std::function<void()>& write) {
  const auto outer = std::exchange(graph.nodes, {});
  const auto dimensions = dimensions_;
  const auto applied = applied_;
  write();
  GraphDefinition inner{.name = fresh("body"), .nodes = std::exchange(graph.nodes, outer)};
  dimensions_ = dimensions;
  applied_ = applied;
  return inner;
}

const std::vector<std::string>& GraphWriter::outputs_of(const AnyOp& op, const std::vector<std::string>& inputs,
                                                        const std::function<std::vector<std::string>()>& make) {
  const std::pair key{op.sibling(0).record(), inputs};
  if (const auto known = applied_.find(key); known != applied_.end()) return known->second;
  std::vector<std::string> made = make();
  return applied_[key] = std::move(made);
}

std::string GraphWriter::initializer(const Tensor& value, std::string name) {
  if (name.empty()) name = fresh("constant");
  graph.initializers.push_back({name, value});
  return name;
}

std::string GraphWriter::integers(const std::vector<std::int64_t>& values) {
  std::string& name = integers_[values];
  if (name.empty()) name = initializer(from_values(values, {static_cast<std::int64_t>(values.size())}));
  return name;
}

std::string GraphWriter::scalar(DType dtype, std::uint64_t bits) {
  std::string& name = scalars_[{static_cast<int>(dtype), bits}];
  if (!name.empty()) return name;
  Ref<Buffer> buffer = Buffer::allocate(size_of(dtype));
  std::memcpy(buffer->data(), &bits, static_cast<std::size_t>(size_of(dtype)));
  return name = initializer(Tensor::of_buffer({dtype, {}}, std::move(buffer)));
}

/// "784" or "s0"
std::string GraphWriter::factor(std::string_view word) {
  if (word.front() != 's') return integers({number_in(word)});
  const auto& [input, axis] = symbols_.at(static_cast<std::size_t>(number_in(word.substr(1))));
  return node("Shape", {input}, {integer("start", axis), integer("end", axis + 1)});
}

/// "784*s0"
std::string GraphWriter::product(std::string_view term) {
  std::string result;
  while (!term.empty()) {
    const std::size_t end = std::min(term.find('*'), term.size());
    const std::string next = factor(term.substr(0, end));
    result = result.empty() ? next : node("Mul", {result, next});
    term.remove_prefix(std::min(end + 1, term.size()));
  }
  return result;
}

/// The text form of a dimension is a sum of products: "s0*s1-2".
std::string GraphWriter::dimension(std::int64_t d) {
  if (d >= 0) return integers({d});
  if (const auto known = dimensions_.find(d); known != dimensions_.end()) return known->second;
  const std::string written = dimension::to_text(d);
  require(written.find('(') == std::string::npos, "export_onnx: the size ", written,
          ", which is divided or has a least value, is not written for open sizes; fix all but the batch");
  std::string_view rest = written;
  std::string sum;
  while (!rest.empty()) {
    const bool negative = rest.front() == '-';
    if (negative || rest.front() == '+') rest.remove_prefix(1);
    const std::size_t end = std::min(rest.find_first_of("+-"), rest.size());
    const std::string term = product(rest.substr(0, end));
    if (sum.empty()) sum = negative ? node("Neg", {term}) : term;
    else sum = node(negative ? "Sub" : "Add", {sum, term});
    rest.remove_prefix(end);
  }
  return dimensions_[d] = sum;
}

std::string GraphWriter::shape(const Shape& extents) {
  if (!extents.is_symbolic()) return integers(std::vector<std::int64_t>(extents.begin(), extents.end()));
  std::vector<std::string> parts;
  for (const std::int64_t d : extents) parts.push_back(dimension(d));
  return parts.size() == 1 ? parts.front() : node("Concat", parts, {integer("axis", 0)});
}

std::string GraphWriter::reshape(const std::string& x, const Shape& shape_wanted) {
  std::vector<std::int64_t> extents;
  for (const std::int64_t d : shape_wanted) extents.push_back(d < 0 ? -1 : d);
  const bool open = std::ranges::count(extents, -1) == 1 && std::ranges::count(extents, 0) == 0;
  return node("Reshape", {x, open ? integers(extents) : shape(shape_wanted)}, {integer("allowzero", !open)});
}

Attribute GraphWriter::integer(std::string name, std::int64_t value) {
  return {.name = std::move(name), .kind = Attribute::Kind::integer, .integer = value};
}
Attribute GraphWriter::integers(std::string name, std::vector<std::int64_t> values) {
  return {.name = std::move(name), .kind = Attribute::Kind::integers, .integers = std::move(values)};
}

}  // namespace gradus::onnx
