#include "gradus/onnx/export_control.h"
#include "gradus/compiler/passes.h"
#include "gradus/onnx/graph_exporter.h"
#include "gradus/ops/control_ops.h"

namespace gradus::onnx {
namespace {

using Names = std::vector<std::string>;

Attribute graph_attribute(std::string name, GraphDefinition graph) {
  return {.name = std::move(name),
          .kind = Attribute::Kind::graph,
          .graph = std::make_shared<GraphDefinition>(std::move(graph))};
}

/// A region as the body of a node. The first `own` of its inputs become inputs of the body; the others are values
/// around it, called `captured`. The first `passed` of its own inputs are outputs too.
GraphDefinition body_of(GraphWriter& out, const Region& region, std::size_t own, const Names& captured,
                        std::size_t passed) {
  Graph flat = region.graph();
  compose_attention(flat);
  compose_samples(flat);
  Names inputs, outputs;
  GraphDefinition body = out.body([&] {
    GraphExporter exporter(flat, out);
    for (std::size_t i = 0; i < flat.inputs.size(); ++i) {
      if (i < own) inputs.push_back(out.fresh("in"));
      exporter.bind(flat.inputs[i], i < own ? inputs.back() : captured[i - own]);
    }
    exporter.write();
    // Outputs are values of their own, even if the body hands on what it is given.
    for (const int output : flat.outputs) outputs.push_back(out.node("Identity", {exporter.name(output)}));
    for (std::size_t i = 0; i < passed; ++i) outputs.push_back(out.node("Identity", {inputs[i]}));
  });
  for (std::size_t i = 0; i < own; ++i) body.inputs.push_back(info_of(inputs[i], region.input(i)));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    body.outputs.push_back(
        info_of(outputs[i], i < region.outputs() ? region.output(i) : region.input(i - region.outputs())));
  return body;
}

Names write_cond(GraphWriter& out, const Cond& op, const Names& in) {
  const Names captured(in.begin() + 1, in.end());
  return out.node_of("If", {in[0]}, op.if_true.outputs(),
                     {graph_attribute("then_branch", body_of(out, op.if_true, 0, captured, 0)),
                      graph_attribute("else_branch", body_of(out, op.if_false, 0, captured, 0))});
}

/// The last carries, the stacked results, and the histories of the carries: these are stacked too.
Names write_scan(GraphWriter& out, const Scan& op, const Names& in) {
  require(
      !op.counted && op.chunks == 0 && op.body.outputs() == static_cast<std::size_t>(op.carries + op.stacked),
      "export_onnx: a loop over chunks of rows, or of a number of iterations that data decides, has no form in ONNX");
  require(op.singles > 0, "export_onnx: a loop over nothing has no form in ONNX");
  const auto carries = static_cast<std::size_t>(op.carries), own = carries + static_cast<std::size_t>(op.singles);
  const Names captured(in.begin() + op.first_whole(), in.end());
  const Names operands(in.begin() + op.first_carry(), in.begin() + op.first_whole());
  const std::size_t stacked = static_cast<std::size_t>(op.stacked) + carries;
  return out.node_of(
      "Scan", operands, carries + stacked,
      {graph_attribute("body", body_of(out, op.body, own, captured, carries)),
       GraphWriter::integer("num_scan_inputs", op.singles),
       GraphWriter::integers("scan_input_directions",
                             std::vector<std::int64_t>(static_cast<std::size_t>(op.singles), op.reverse)),
       GraphWriter::integers("scan_output_directions", std::vector<std::int64_t>(stacked, op.reverse))});
}

}  // namespace

std::string write_control(GraphWriter& out, const Value& v, const Names& in) {
  const auto* cond = v.op.as<Cond>();
  const auto* scan = v.op.as<Scan>();
  if (!cond && !scan) return {};
  const Names& all =
      out.outputs_of(v.op, in, [&] { return cond ? write_cond(out, *cond, in) : write_scan(out, *scan, in); });
  return all[static_cast<std::size_t>(v.op.output())];
}

}  // namespace gradus::onnx
