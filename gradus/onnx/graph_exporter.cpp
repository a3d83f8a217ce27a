#include "gradus/onnx/graph_exporter.h"
#include <algorithm>
#include "gradus/onnx/export_ops.h"
#include "gradus/ops/views.h"

namespace gradus::onnx {

ValueInfo info_of(const std::string& name, const Spec& spec) {
  ValueInfo info{.name = name, .dtype = spec.dtype, .shape = Shape()};
  for (const std::int64_t d : spec.shape) {
    info.shape->push_back(d < 0 ? any_size : d);
    info.dimension_names.push_back(d < 0 ? dimension::to_text(d) : "");
  }
  return info;
}

void GraphExporter::write() {
  for (int i = 0; i < graph_.size(); ++i)
    if (name(i).empty()) bind(i, written(graph_[i]));
}

std::string GraphExporter::written(const Value& v) {
  if (v.is_constant) {
    const std::string one = out_.scalar(v.spec.dtype, v.constant);
    return v.spec.shape.rank() == 0 ? one : out_.node("Expand", {one, out_.shape(v.spec.shape)});
  }
  std::vector<std::string> in;
  for (const int operand : v.in) in.push_back(operand_name(v, operand));
  return write_value(out_, graph_, v, in);
}

/// ONNX's elementwise ops stretch their operands themselves, as long as one of them has the shape of the result.
const std::string& GraphExporter::operand_name(const Value& v, int operand) const {
  const auto is_stretched = [&](const Value& made) { return made.op && made.op.as<Broadcast>(); };
  const bool another_has_it = std::ranges::any_of(v.in, [&](int other) {
    const Value& o = graph_[other];
    return other != operand && !is_stretched(o) && !o.is_constant && o.spec.shape == v.spec.shape;
  });
  const Value& made = graph_[operand];
  return name(v.op.is_elementwise() && is_stretched(made) && another_has_it ? made.in[0] : operand);
}

}  // namespace gradus::onnx
