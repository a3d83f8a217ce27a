#include "gradus/onnx/export.h"
#include <algorithm>
#include <set>
#include "gradus/compiler/passes.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/function/mode.h"
#include "gradus/graph/region.h"
#include "gradus/onnx/graph_exporter.h"
#include "gradus/onnx/scope.h"

namespace gradus {
namespace onnx {
namespace {

constexpr std::int64_t written_opset = 23, written_ir_version = 11;

using TensorFunction = std::function<Tensors(In)>;
/// The name of a captured tensor in the file; empty: it has none.
using NameOfCapture = std::function<std::string(const Tensor&)>;

/// Open dimensions become symbols, numbered in order.
std::vector<Spec> with_symbols(const std::vector<Spec>& specs) {
  std::vector<Spec> named = specs;
  int next = 0;
  for (Spec& spec : named)
    for (int d = 0; d < spec.shape.rank(); ++d)
      if (spec.shape[d] == any_size) spec.shape.set(d, dimension::symbol(next++));
  return named;
}

std::string name_of(const std::vector<std::string>& given, std::size_t i, std::size_t count, std::string_view letter) {
  if (i < given.size()) return given[i];
  return count == 1 ? std::string(letter) : text(letter, i);
}

/// Drops what only served operands that are stretched by their readers.
void drop_unused(GraphDefinition& graph) {
  std::set<std::string> used;
  for (const ValueInfo& output : graph.outputs) used.insert(output.name);
  std::vector<NodeDefinition> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (std::ranges::none_of(node->outputs, [&](const std::string& name) { return used.contains(name); })) continue;
    used.insert(node->inputs.begin(), node->inputs.end());
    for (const std::string& name : captured_names(*node)) used.insert(name);
    kept.push_back(std::move(*node));
  }
  std::ranges::reverse(kept);
  graph.nodes = std::move(kept);
  std::erase_if(graph.initializers, [&](const NamedTensor& t) { return !used.contains(t.name); });
}

ModelFile model_of(const TensorFunction& f, const std::vector<Spec>& given, const ExportOptions& options,
                   const NameOfCapture& name_of_capture) {
  const std::vector<Spec> specs = with_symbols(given);
  const RegionTrace trace("export_onnx", specs, f);
  const Captured captured = capture(trace);
  Graph graph = captured.region.graph();
  compose_attention(graph);
  compose_samples(graph);
  fold_constants(graph);
  simplify(graph);
  eliminate_common_subexpressions(graph);
  GraphWriter out;
  out.graph.name = "gradus";
  GraphExporter exporter(graph, out);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::string name = name_of(options.input_names, i, specs.size(), "x");
    out.graph.inputs.push_back(info_of(name, specs[i]));
    exporter.bind(graph.inputs[i], name);
    for (int d = 0; d < specs[i].shape.rank(); ++d)
      if (given[i].shape[d] == any_size) out.bind_symbol(name, d);
  }
  for (std::size_t i = 0; i < captured.captures.size(); ++i)
    exporter.bind(graph.inputs[specs.size() + i],
                  out.initializer(captured.captures[i], name_of_capture(captured.captures[i])));
  exporter.write();
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const std::string name = name_of(options.output_names, i, graph.outputs.size(), "y");
    out.graph.outputs.push_back(info_of(name, graph[graph.outputs[i]].spec));
    out.graph.nodes.push_back(
        {.name = name, .op = "Identity", .inputs = {exporter.name(graph.outputs[i])}, .outputs = {name}});
  }
  drop_unused(out.graph);
  return {.ir_version = written_ir_version, .opsets = {{"", written_opset}}, .graph = std::move(out.graph)};
}

void write_file(const std::filesystem::path& file, const ModelFile& model) {
  const std::string bytes = written(model, file.string());
  AtomicFile out(file);
  out.write(bytes);
  out.commit();
}

}  // namespace
}  // namespace onnx

void export_onnx(const std::filesystem::path& file, const std::function<Tensors(std::span<const Tensor>)>& f,
                 const std::vector<Spec>& inputs, ExportOptions options) {
  onnx::write_file(file, onnx::model_of(f, inputs, options, [](const Tensor&) { return std::string(); }));
}

void export_onnx(const std::filesystem::path& file, const Module& model, const Spec& input) {
  if (!model.is_built()) {
    Module built = model;
    built.build(input);
    return export_onnx(file, built, input);
  }
  const Variables variables = model.variables();
  std::vector<std::pair<const Node*, std::string>> names;
  for (const Variable& variable : variables) names.emplace_back(variable.value().node().get(), variable.name());
  const auto name_of_capture = [&](const Tensor& captured) {
    for (const auto& [node, name] : names)
      if (node == captured.node().get()) return name;
    return std::string();
  };
  onnx::write_file(
      file, onnx::model_of([&](In in) { return Tensors{model(in[0], inference)}; }, {input}, {}, name_of_capture));
}

}  // namespace gradus
