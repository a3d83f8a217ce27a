/// Conversion from the wire format to our own types. Every size in the file is checked against the existing bytes
/// before anything is allocated.
#include <climits>
#include <cstring>
#include "gradus/base/input_file.h"
#include "gradus/base/rooms.h"
#include "gradus/onnx/external_data.h"
#include "gradus/onnx/model_file.h"
#include "gradus/onnx/placed.h"
#include <onnx.pb.h>

namespace gradus::onnx {
namespace {

/// Graphs within graphs; protobuf itself stops at a hundred messages within messages.
constexpr int max_depth = 16;

class Parser {
 public:
  explicit Parser(std::filesystem::path folder) : external_(std::move(folder)) {}

  ModelFile model(const wire::Model& message);
  NamedTensor tensor(const wire::Tensor& message);

 private:
  template <class... Parts> void expect(bool ok, const Parts&... parts) const { require<DataError>(ok, parts...); }
  Shape shape_of(const wire::Tensor& message) const;
  Tensor contents(const wire::Tensor& message, const Spec& spec);
  GraphDefinition graph(const wire::Graph& message, int depth);
  NodeDefinition node(const wire::Node& message, int depth);
  Attribute attribute(const wire::Attribute& message, const std::string& place, int depth);
  std::unique_ptr<FunctionDefinition> function(const wire::Function& message);
  ValueInfo value_info(const wire::ValueInfo& message) const;
  ExternalData external_;
};

std::string domain_of(const std::string& written) { return written == "ai.onnx" ? "" : written; }

Tensor tensor_of_bytes(const Spec& spec, const void* source, std::size_t bytes) {
  Ref<Buffer> buffer = Buffer::allocate(static_cast<std::int64_t>(bytes), "ONNX tensor");
  if (bytes) std::memcpy(buffer->data(), source, bytes);
  if (spec.dtype == boolean) {
    auto* values = buffer->data<std::uint8_t>();
    for (std::size_t i = 0; i < bytes; ++i) values[i] = values[i] != 0;
  }
  return Tensor::of_buffer(spec, std::move(buffer));
}

/// The numbers of a typed field, each of which holds an element in its low bytes.
template <class Field> Tensor tensor_of_field(const Spec& spec, const Field& field) {
  const auto width = static_cast<std::size_t>(size_of(spec.dtype));
  std::string bytes(static_cast<std::size_t>(field.size()) * width, '\0');
  for (int i = 0; i < field.size(); ++i) {
    const auto value = field.Get(i);
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * width, &value, width);
  }
  return tensor_of_bytes(spec, bytes.data(), bytes.size());
}

Shape Parser::shape_of(const wire::Tensor& message) const {
  expect(message.dims_size() <= Shape::max_rank, message.dims_size(), " dimensions, at most ", Shape::max_rank,
         " are supported");
  Shape shape;
  for (const std::int64_t dim : message.dims()) {
    expect(dim >= 0, "a dimension of ", dim);
    shape.push_back(dim);
  }
  return shape;
}

Tensor Parser::contents(const wire::Tensor& message, const Spec& spec) {
  const std::int64_t bytes = bytes_of(spec);
  if (message.data_location() == 1) {
    std::vector<std::pair<std::string, std::string>> entries;
    for (const wire::Entry& entry : message.external_data()) entries.emplace_back(entry.key(), entry.value());
    const std::string data = external_.read(entries, bytes);
    return tensor_of_bytes(spec, data.data(), data.size());
  }
  if (message.has_raw_data()) {
    require<DataError>(static_cast<std::int64_t>(message.raw_data().size()) == bytes, "raw_data has ",
                       message.raw_data().size(), " bytes, ", spec, " needs ", bytes);
    return tensor_of_bytes(spec, message.raw_data().data(), message.raw_data().size());
  }
  const auto counted = [&](const auto& field) {
    require<DataError>(field.size() == spec.shape.size(), field.size(), " elements are there, ", spec, " needs ",
                       spec.shape.size());
    return tensor_of_field(spec, field);
  };
  if (spec.dtype == f32) return counted(message.float_data());
  if (spec.dtype == f64) return counted(message.double_data());
  if (spec.dtype == i64) return counted(message.int64_data());
  const bool is_wide = spec.dtype == u32 || spec.dtype == u64;
  return is_wide ? counted(message.uint64_data()) : counted(message.int32_data());
}

NamedTensor Parser::tensor(const wire::Tensor& message) {
  return placed([&] { return "tensor " + named(message.name()); },
                [&]() -> NamedTensor {
                  const Spec spec{dtype_of_code(message.data_type()), shape_of(message)};
                  return {message.name(), contents(message, spec)};
                });
}

ValueInfo Parser::value_info(const wire::ValueInfo& message) const {
  ValueInfo info{.name = message.name()};
  const wire::Type& type = message.type();
  if (type.has_sequence_type()) throw Unsupported(text("`", info.name, "` is a sequence"));
  if (type.has_optional_type()) throw Unsupported(text("`", info.name, "` is an optional"));
  if (type.has_map_type()) throw Unsupported(text("`", info.name, "` is a map"));
  if (type.has_sparse_tensor_type()) throw Unsupported(text("`", info.name, "` is a sparse tensor"));
  if (type.has_opaque_type()) throw Unsupported(text("`", info.name, "` is of an opaque type"));
  if (!type.has_tensor_type() || type.tensor_type().elem_type() == 0) return info;
  info.dtype = placed([&] { return named(info.name); }, [&] { return dtype_of_code(type.tensor_type().elem_type()); });
  if (!type.tensor_type().has_shape()) return info;
  const auto& dims = type.tensor_type().shape().dim();
  expect(dims.size() <= Shape::max_rank, "`", info.name, "` has ", dims.size(), " dimensions, at most ",
         Shape::max_rank, " are supported");
  info.shape.emplace();
  for (const wire::Dimension& dim : dims) {
    expect(!dim.has_dim_value() || dim.dim_value() >= 0 || dim.dim_value() == -1, "`", info.name,
           "` has a dimension of ", dim.dim_value());
    info.shape->push_back(dim.has_dim_value() ? dim.dim_value() : any_size);
    info.dimension_names.push_back(dim.dim_param());
  }
  return info;
}

Attribute Parser::attribute(const wire::Attribute& message, const std::string& place, int depth) {
  using Kind = Attribute::Kind;
  Attribute a{.name = message.name(), .reference = message.ref_attr_name()};
  constexpr Kind kinds[] = {Kind::none,  Kind::number,  Kind::integer,  Kind::word,  Kind::tensor,
                            Kind::graph, Kind::numbers, Kind::integers, Kind::words, Kind::other,
                            Kind::other, Kind::other,   Kind::other,    Kind::other, Kind::other};
  const int type = message.type();
  expect(type >= 0 && type < static_cast<int>(std::size(kinds)), place, ": attribute `", a.name, "` is of type ", type,
         ", which is none of ONNX");
  a.kind = kinds[type];
  if (a.kind == Kind::none && a.reference.empty()) {  // files of the first days do not say
    a.kind = message.has_f()          ? Kind::number
             : message.has_i()        ? Kind::integer
             : message.has_s()        ? Kind::word
             : message.has_t()        ? Kind::tensor
             : message.has_g()        ? Kind::graph
             : message.floats_size()  ? Kind::numbers
             : message.strings_size() ? Kind::words
                                      : Kind::integers;
  }
  if (a.kind == Kind::other)
    throw Unsupported(text(place, ": attribute ", named(a.name), " holds sparse tensors or types"));
  a.number = message.f();
  a.integer = message.i();
  a.word = message.s();
  a.numbers.assign(message.floats().begin(), message.floats().end());
  a.integers.assign(message.ints().begin(), message.ints().end());
  a.words.assign(message.strings().begin(), message.strings().end());
  if (!a.reference.empty()) return a;
  const auto in_attribute = [&] { return place + ": attribute " + named(a.name); };
  if (a.kind == Kind::tensor) a.tensor = placed(in_attribute, [&] { return tensor(message.t()).value; });
  if (a.kind == Kind::graph)
    a.graph = placed(in_attribute, [&] { return std::make_shared<GraphDefinition>(graph(message.g(), depth + 1)); });
  return a;
}

NodeDefinition Parser::node(const wire::Node& message, int depth) {
  NodeDefinition n{.name = message.name(),
                   .op = message.op_type(),
                   .domain = domain_of(message.domain()),
                   .overload = message.overload()};
  n.inputs.assign(message.input().begin(), message.input().end());
  n.outputs.assign(message.output().begin(), message.output().end());
  for (const wire::Attribute& a : message.attribute()) {
    for (const Attribute& other : n.attributes)
      expect(other.name != a.name(), n.where(), ": two attributes are named `", a.name(), "`");
    n.attributes.push_back(attribute(a, n.where(), depth));
  }
  return n;
}

GraphDefinition Parser::graph(const wire::Graph& message, int depth) {
  expect(depth <= max_depth, "graphs are nested more than ", max_depth, " deep");
  if (message.sparse_initializer_size())
    throw Unsupported(text("graph ", named(message.name()), ": initializer ",
                           named(message.sparse_initializer(0).values().name()), " is a sparse tensor"));
  GraphDefinition g{.name = message.name()};
  for (const wire::Node& n : message.node()) g.nodes.push_back(node(n, depth));
  for (const wire::ValueInfo& v : message.input()) g.inputs.push_back(value_info(v));
  for (const wire::ValueInfo& v : message.output()) g.outputs.push_back(value_info(v));
  for (const wire::Tensor& t : message.initializer()) g.initializers.push_back(tensor(t));
  return g;
}

std::vector<OperatorSet> opsets_of(const auto& imports) {
  std::vector<OperatorSet> opsets;
  for (const wire::OperatorSet& set : imports) opsets.push_back({domain_of(set.domain()), set.version()});
  return opsets;
}

std::unique_ptr<FunctionDefinition> Parser::function(const wire::Function& message) {
  auto f = std::make_unique<FunctionDefinition>();
  f->name = message.name();
  f->domain = domain_of(message.domain());
  f->overload = message.overload();
  f->inputs.assign(message.input().begin(), message.input().end());
  f->outputs.assign(message.output().begin(), message.output().end());
  f->attributes.assign(message.attribute().begin(), message.attribute().end());
  for (const wire::Attribute& a : message.attribute_proto())
    f->defaults.push_back(attribute(a, text("function `", f->name, "`"), 0));
  f->opsets = opsets_of(message.opset_import());
  f->body.name = f->name;
  for (const wire::Node& n : message.node()) f->body.nodes.push_back(node(n, 0));
  return f;
}

ModelFile Parser::model(const wire::Model& message) {
  expect(message.has_graph(), "no ONNX model: there is no graph in it");
  ModelFile m{.ir_version = message.ir_version(), .opsets = opsets_of(message.opset_import())};
  if (m.opsets.empty()) m.opsets.push_back({"", 1});
  for (const wire::Function& f : message.functions()) m.functions.push_back(function(f));
  m.graph = graph(message.graph(), 0);
  return m;
}

template <class Message> Message decoded(std::span<const std::byte> bytes) {
  require<DataError>(bytes.size() <= INT_MAX, "more than 2 GiB in one file");
  Message message;
  require<DataError>(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
                     "truncated, or no ONNX file");
  return message;
}

}  // namespace

std::string_view name_of(Attribute::Kind kind) {
  constexpr std::string_view names[] = {"nothing", "a float", "an int", "a string", "a tensor",
                                        "a graph", "floats",  "ints",   "strings",  "something else"};
  return names[static_cast<int>(kind)];
}

std::string NodeDefinition::where() const {
  std::string called = name;
  if (called.empty() && !outputs.empty()) called = outputs.front();
  return text("node ", named(called), " (", printable((domain.empty() ? "" : domain + ".") + op, true), ")");
}

ModelFile parse_model(std::span<const std::byte> bytes, const std::filesystem::path& folder, const std::string& name) {
  return placed([&] { return name; }, [&] { return Parser(folder).model(decoded<wire::Model>(bytes)); });
}

NamedTensor parse_tensor(std::span<const std::byte> bytes, const std::string& name) {
  return placed([&] { return name; }, [&] { return Parser({}).tensor(decoded<wire::Tensor>(bytes)); });
}

ModelFile read_model(const std::filesystem::path& file) {
  return parse_model(read_whole_file(file), std::filesystem::absolute(file).parent_path(), file.string());
}

}  // namespace gradus::onnx
