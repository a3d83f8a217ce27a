/// Calls of a graph of layers.
#include "gradus/nn/functional.h"
#include <algorithm>
#include <atomic>
#include "gradus/base/numbered.h"
#include "gradus/nn/cloned.h"
#include "gradus/nn/copying.h"
#include "gradus/nn/functional_layer.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

std::uint64_t next_identity() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

const Module& module_of(const GraphLayer& layer) {
  return std::visit([](const Module& module) -> const Module& { return module; }, layer);
}

/// `x` as the input of that spec: in its dtype, and with its rank, if a last dimension of 1 is all that differs.
Tensor as_input(const Tensor& x, const std::string& name, const Spec& wanted) {
  const int rank = wanted.shape.rank();
  Tensor y = x;
  if (y.shape().rank() == rank + 1 && y.shape()[rank] == 1) y = squeeze(y, {-1});
  else if (y.shape().rank() == rank - 1 && wanted.shape[rank - 1] == 1) y = expand_dims(y, -1);
  bool fits = y.shape().rank() == rank;
  for (int axis = 0; fits && axis < rank; ++axis) {
    const std::int64_t given = y.shape()[axis], known = wanted.shape[axis];
    fits = known < 0 || given < 0 || given == known;
  }
  require(fits, "Functional: input `", name, "` is ", x.spec(), ", expected ", wanted);
  return cast(y, wanted.dtype);
}

}  // namespace

FunctionalLayer::FunctionalLayer(LayerGraph graph) : graph_(std::move(graph)), identity_(next_identity()) {
  adopt_fields();
}

std::shared_ptr<Layer> FunctionalLayer::clone() const {
  const Copying copying;
  return std::make_shared<FunctionalLayer>(*this);
}

void FunctionalLayer::visit(const FieldVisitor& visitor) const {
  for (const auto& [name, layer] : graph_.layers) visitor.layer(name, module_of(layer));
  visitor.plain("graph", std::to_string(identity_));
}

void FunctionalLayer::add_parts_to(Structure& structure) const {
  structure.note_model();
  add_own_to(structure);
  for (const auto& each : graph_.layers) structure.add(module_of(each.second));
}

Tensor FunctionalLayer::call(const Tensor& x) const {
  if (graph_.input_names.size() != 1 || graph_.outputs.size() != 1) fail_as_module(*this);
  return call_graph(In(&x, 1))[0];
}

Tensors FunctionalLayer::call_graph(In inputs) const {
  const std::size_t n = graph_.input_names.size();
  require(inputs.size() == n, "Functional: ", inputs.size(), " inputs were given, expected ", n);
  Tensors values;
  for (std::size_t i = 0; i < n; ++i)
    values.push_back(as_input(inputs[i], graph_.input_names[i], graph_.input_specs[i]));
  for (const GraphStep& step : graph_.steps) {
    Tensors taken;
    for (const int value : step.inputs) taken.push_back(values[at(value)]);
    Tensors results = step.run(step.layer < 0 ? nullptr : &graph_.layers[at(step.layer)].second, taken);
    require<InternalError>(results.size() == at(step.results), "a step of a Functional gave another number of results");
    std::ranges::move(results, std::back_inserter(values));
  }
  Tensors outputs;
  for (const int value : graph_.outputs) outputs.push_back(values[at(value)]);
  return outputs;
}

namespace {
const FunctionalLayer& behind(const Functional& model) { return layer_as<FunctionalLayer>(model, "Functional"); }
}  // namespace

std::vector<Tensor> Functional::operator()(const std::vector<Tensor>& inputs) const {
  behind(*this);
  const NetCall entered(*this);
  const auto& layer = static_cast<const FunctionalLayer&>(entered.layer());
  Tensors computed;
  std::vector<Spec> specs;
  for (const Tensor& x : inputs) {
    computed.push_back(layer.computed(x));
    specs.push_back(x.spec());
  }
  Tensors outputs = layer.call_graph(computed);
  entered.finish(std::move(specs));
  return {outputs.begin(), outputs.end()};
}
std::vector<Tensor> Functional::operator()(const std::vector<Tensor>& inputs, training_t) const {
  const ModeScope mode(CallMode::training);
  return (*this)(inputs);
}
std::vector<Tensor> Functional::operator()(const std::vector<Tensor>& inputs, inference_t) const {
  const ModeScope mode(CallMode::inference);
  return (*this)(inputs);
}
const std::vector<std::string>& Functional::input_names() const { return behind(*this).graph().input_names; }
const std::vector<Spec>& Functional::input_specs() const { return behind(*this).graph().input_specs; }
const std::vector<std::string>& Functional::output_names() const { return behind(*this).graph().output_names; }

}  // namespace gradus
