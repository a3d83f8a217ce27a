/// Conversion from our own types to the wire format.
#include <onnx.pb.h>
#include "gradus/onnx/model_file.h"

namespace gradus::onnx {
namespace {

void write_tensor(const NamedTensor& tensor, wire::Tensor& out) {
  out.set_name(tensor.name);
  out.set_data_type(static_cast<std::int32_t>(code_of(tensor.value.dtype())));
  for (const std::int64_t extent : tensor.value.shape()) out.add_dims(extent);
  out.set_raw_data(tensor.value.host<char>(), static_cast<std::size_t>(bytes_of(tensor.value.spec())));
}

void write_graph(const GraphDefinition& graph, wire::Graph& out);

void write_attribute(const Attribute& attribute, wire::Attribute& out) {
  using Kind = Attribute::Kind;
  out.set_name(attribute.name);
  out.set_type(static_cast<int>(attribute.kind));  // our kinds are in the order of ONNX's
  if (!attribute.reference.empty()) out.set_ref_attr_name(attribute.reference);
  if (attribute.kind == Kind::number) out.set_f(static_cast<float>(attribute.number));
  if (attribute.kind == Kind::integer) out.set_i(attribute.integer);
  if (attribute.kind == Kind::word) out.set_s(attribute.word);
  if (attribute.kind == Kind::tensor && attribute.tensor.defined())
    write_tensor({"", attribute.tensor}, *out.mutable_t());
  if (attribute.kind == Kind::graph && attribute.graph) write_graph(*attribute.graph, *out.mutable_g());
  for (const double each : attribute.numbers) out.add_floats(static_cast<float>(each));
  for (const std::int64_t each : attribute.integers) out.add_ints(each);
  for (const std::string& each : attribute.words) out.add_strings(each);
}

void write_node(const NodeDefinition& node, wire::Node& out) {
  out.set_name(node.name);
  out.set_op_type(node.op);
  out.set_domain(node.domain);
  out.set_overload(node.overload);
  for (const std::string& name : node.inputs) out.add_input(name);
  for (const std::string& name : node.outputs) out.add_output(name);
  for (const Attribute& attribute : node.attributes) write_attribute(attribute, *out.add_attribute());
}

void write_value_info(const ValueInfo& info, wire::ValueInfo& out) {
  out.set_name(info.name);
  wire::TensorType& type = *out.mutable_type()->mutable_tensor_type();
  type.set_elem_type(static_cast<std::int32_t>(code_of(info.dtype)));
  if (!info.shape) return;
  wire::TensorShape& shape = *type.mutable_shape();
  for (int d = 0; d < info.shape->rank(); ++d) {
    wire::Dimension& dim = *shape.add_dim();
    if ((*info.shape)[d] >= 0) dim.set_dim_value((*info.shape)[d]);
    else dim.set_dim_param(info.dimension_names[static_cast<std::size_t>(d)]);
  }
}

void write_graph(const GraphDefinition& graph, wire::Graph& out) {
  out.set_name(graph.name);
  for (const NodeDefinition& node : graph.nodes) write_node(node, *out.add_node());
  for (const NamedTensor& tensor : graph.initializers) write_tensor(tensor, *out.add_initializer());
  for (const ValueInfo& input : graph.inputs) write_value_info(input, *out.add_input());
  for (const ValueInfo& output : graph.outputs) write_value_info(output, *out.add_output());
}

void write_opsets(const std::vector<OperatorSet>& opsets, auto& out) {
  for (const OperatorSet& set : opsets) {
    wire::OperatorSet& import = *out.add_opset_import();
    import.set_domain(set.domain);
    import.set_version(set.version);
  }
}

void write_function(const FunctionDefinition& function, wire::Function& out) {
  out.set_name(function.name);
  out.set_domain(function.domain);
  for (const std::string& name : function.inputs) out.add_input(name);
  for (const std::string& name : function.outputs) out.add_output(name);
  for (const std::string& name : function.attributes) out.add_attribute(name);
  for (const Attribute& attribute : function.defaults) write_attribute(attribute, *out.add_attribute_proto());
  for (const NodeDefinition& node : function.body.nodes) write_node(node, *out.add_node());
  write_opsets(function.opsets, out);
}

}  // namespace

std::string written(const ModelFile& model, const std::string& name) {
  wire::Model out;
  out.set_ir_version(model.ir_version);
  out.set_producer_name("gradus");
  write_opsets(model.opsets, out);
  write_graph(model.graph, *out.mutable_graph());
  for (const auto& function : model.functions) write_function(*function, *out.add_functions());
  require<ResourceExhausted>(out.ByteSizeLong() < (std::size_t{1} << 31), name,
                             ": the model has 2 GiB or more, which one ONNX file cannot hold");
  return out.SerializeAsString();
}

}  // namespace gradus::onnx
