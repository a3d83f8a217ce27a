#include "gradus/onnx/model.h"
#include <algorithm>
#include <unordered_set>
#include "gradus/graph/context.h"
#include "gradus/nn/layer.h"
#include "gradus/onnx/placed.h"
#include "gradus/onnx/resolve.h"
#include "gradus/onnx/row.h"
#include "gradus/onnx/scope.h"

namespace gradus::onnx {

/// A copy has variables of its own.
struct Model::State {
  std::shared_ptr<const ModelFile> file;
  std::vector<Port> inputs, outputs;
  std::vector<const ValueInfo*> declared;  // of the inputs, within the file
  std::vector<Variable> variables;
  std::vector<std::string> variable_names;  // of their initializers
  std::vector<NamedTensor> constants;
  Tensors run(In given) const;
  std::string name;            // opens the errors
  bool keeps_history = false;  // a Gradient walks back over the computation
};

namespace {

const Model::State& living(const std::shared_ptr<const Model::State>& state) {
  require(static_cast<bool>(state), "this ONNX model is empty: it was moved from; use the one that it was moved to");
  return *state;
}

bool has_gradient(const GraphDefinition& graph) {
  return std::ranges::any_of(graph.nodes, [](const NodeDefinition& node) {
    return node.op == "Gradient" || (node.function && has_gradient(node.function->body)) ||
           std::ranges::any_of(node.attributes, [](const Attribute& a) { return a.graph && has_gradient(*a.graph); });
  });
}

/// Inputs against what the file declares of them: dtype, rank, extents, and dimensions of one name that must agree.
void check_inputs(const std::vector<const ValueInfo*>& declared, In inputs) {
  require(inputs.size() == declared.size(), "the ONNX model takes ", declared.size(), " inputs, given ", inputs.size());
  std::map<std::string, std::int64_t> named;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo& port = *declared[i];
    const Spec& given = inputs[i].spec();
    require(given.dtype == port.dtype, "the ONNX model's input `", port.name, "` is of ", port.dtype, ", given ",
            given);
    if (!port.shape) continue;
    require(given.shape.rank() == port.shape->rank(), "the ONNX model's input `", port.name, "` has ",
            port.shape->rank(), " dimensions, given ", given);
    for (int d = 0; d < given.shape.rank(); ++d) {
      const std::int64_t extent = (*port.shape)[d];
      require(extent == any_size || extent == given.shape[d] || dimension::is_symbolic(given.shape[d]),
              "the ONNX model's input `", port.name, "` is ", Spec{port.dtype, *port.shape}, ", given ", given);
      const std::string& name = port.dimension_names[static_cast<std::size_t>(d)];
      if (name.empty()) continue;
      const auto [known, is_new] = named.emplace(name, given.shape[d]);
      require(is_new || known->second == given.shape[d], "the ONNX model's input `", port.name, "`: dimension `", name,
              "` is ", given.shape[d], ", but ", known->second, " in another place");
    }
  }
}

/// The values that some node computes with, rather than being steered by them.
std::unordered_set<std::string> computed_with(const GraphDefinition& graph) {
  std::unordered_set<std::string> names;
  for (const ValueInfo& output : graph.outputs) names.insert(output.name);
  for (const NodeDefinition& node : graph.nodes) {
    for (const std::string& name : captured_names(node)) names.insert(name);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (!node.row || !std::ranges::count(node.row->steering, static_cast<int>(i))) names.insert(node.inputs[i]);
  }
  return names;
}

Port port_of(const ValueInfo& info) { return {info.name, info.dtype, info.shape}; }

std::shared_ptr<const Model::State> prepared(ModelFile file, const std::string& name, const LoadOptions& options) {
  auto state = std::make_shared<Model::State>();
  const auto read = std::make_shared<ModelFile>(std::move(file));
  state->file = read;
  state->name = name;
  resolve(*read, name);
  GraphDefinition& graph = read->graph;
  const auto is_made = [&](const ValueInfo& input) {
    return std::ranges::any_of(graph.initializers, [&](const NamedTensor& t) { return t.name == input.name; });
  };
  for (const ValueInfo& input : graph.inputs) {
    if (is_made(input)) continue;
    state->inputs.push_back(port_of(input));
    state->declared.push_back(&input);
  }
  for (const ValueInfo& output : graph.outputs) state->outputs.push_back(port_of(output));
  const std::unordered_set<std::string> data = computed_with(graph);
  for (NamedTensor& made : graph.initializers) {
    if (is_floating(made.value.dtype()) && data.contains(made.name)) {
      state->variables.emplace_back(made.value, made.name);
      if (!options.trainable) state->variables.back().set_trainable(false);
      state->variable_names.push_back(made.name);
    } else {
      state->constants.push_back(made);
    }
  }
  graph.initializers.clear();
  state->keeps_history = has_gradient(graph);
  return state;
}

}  // namespace

const std::vector<Port>& Model::inputs() const { return living(state_).inputs; }
const std::vector<Port>& Model::outputs() const { return living(state_).outputs; }

Variables Model::variables() const {
  Variables all;
  for (const Variable& v : living(state_).variables) all.add(v);
  return all;
}
Variables Model::trainable_variables() const {
  Variables all;
  for (const Variable& v : living(state_).variables)
    if (v.trainable()) all.add(v);
  return all;
}

Tensors Model::operator()(std::span<const Tensor> inputs) const {
  const State& state = living(state_);
  check_inputs(state.declared, inputs);
  std::optional<RecordingScope> recording;
  if (state.keeps_history) recording.emplace();
  return placed([&] { return state.name; }, [&] { return state.run(inputs); });
}

Tensors Model::State::run(In given) const {
  Scope scope(file->graph);
  for (const NamedTensor& constant : constants) scope.set(constant.name, constant.value);
  for (std::size_t i = 0; i < variables.size(); ++i) scope.set(variable_names[i], variables[i].value());
  for (std::size_t i = 0; i < given.size(); ++i) scope.set(declared[i]->name, given[i]);
  return scope.run_all();
}

Tensor Model::operator()(const Tensor& x) const {
  require(inputs().size() == 1 && outputs().size() == 1, "the ONNX model has ", inputs().size(), " inputs and ",
          outputs().size(), " outputs: call it with a list of tensors");
  return (*this)(In(&x, 1)).front();
}

std::map<std::string, Tensor> Model::operator()(const std::map<std::string, Tensor>& given) const {
  Tensors in_order;
  for (const Port& port : inputs()) {
    const auto found = given.find(port.name);
    require(found != given.end(), "the ONNX model's input `", port.name, "` is not given");
    in_order.push_back(found->second);
  }
  require(given.size() == inputs().size(), "the ONNX model takes ", inputs().size(), " inputs, given ", given.size());
  const Tensors results = (*this)(In(in_order));
  std::map<std::string, Tensor> named;
  for (std::size_t i = 0; i < results.size(); ++i) named.insert_or_assign(outputs()[i].name, results[i]);
  return named;
}

namespace {

/// A model of one input and one output behind a Module. Its variables exist from the beginning.
struct ModelLayer final : Layer {
  explicit ModelLayer(std::shared_ptr<Model::State> s) : state(std::move(s)) {}
  ModelLayer(const ModelLayer& other) : Layer(other), state(std::make_shared<Model::State>(*other.state)) {}
  std::shared_ptr<Layer> clone() const override { return std::make_shared<ModelLayer>(*this); }
  std::string_view kind() const override { return "onnx_model"; }
  void build(const Spec&) override {}
  Tensor call(const Tensor& x) const override { return Model(state)(x); }
  Variables variables() const override { return Model(state).variables(); }
  void rebind(const Rebinding& cells) override {
    for (Variable& variable : state->variables)
      if (const auto found = cells.find(variable.cell().get()); found != cells.end()) variable.become(found->second);
  }
  bool has_fixed_setup() const override { return true; }
  void name_variables() override {
    const std::string path = prefix() + (name().empty() ? std::string(kind()) : name());
    for (std::size_t i = 0; i < state->variables.size(); ++i)
      state->variables[i].set_name(path + "/" + state->variable_names[i]);
  }
  std::shared_ptr<Model::State> state;
};

struct ModelModule : Module {
  explicit ModelModule(std::shared_ptr<Layer> layer) : Module(std::move(layer)) {}
};

}  // namespace

Module Model::as_module() const {
  require(inputs().size() == 1 && outputs().size() == 1, "the ONNX model has ", inputs().size(), " inputs and ",
          outputs().size(), " outputs; a module has one of each");
  return ModelModule(std::make_shared<ModelLayer>(std::make_shared<State>(living(state_))));
}

Model load(const std::filesystem::path& file, LoadOptions options) {
  return Model(prepared(read_model(file), file.string(), options));
}
Model parse(std::span<const std::byte> bytes, const std::string& name, LoadOptions options) {
  return Model(prepared(parse_model(bytes, {}, name), name, options));
}

}  // namespace gradus::onnx
