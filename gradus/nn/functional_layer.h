/// FunctionalLayer: layers that are called by a list of steps.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include "gradus/nn/attention.h"
#include "gradus/nn/dot_attention.h"
#include "gradus/nn/functional.h"
#include "gradus/nn/net_layer.h"
#include "gradus/nn/recurrent.h"

namespace gradus {

namespace detail::inline rooms {

/// A layer of a graph, by the calls that it takes besides those of a Module.
using GraphLayer = std::variant<Module, MultiHeadAttention, AttentionModule, RecurrentModule, Functional>;

/// One call of a layer, or an op.
struct GraphStep {
  /// The results for these inputs. `layer`: null for an op.
  std::function<Tensors(const GraphLayer* layer, In inputs)> run;
  int layer = -1;           // index into LayerGraph::layers; -1: an op
  std::vector<int> inputs;  // values: first the inputs of the model, then the results of the steps in their order
  int results = 1;          // number of results
};

/// The description of a model.
struct LayerGraph {
  std::vector<std::string> input_names;
  std::vector<Spec> input_specs;
  std::vector<std::pair<std::string, GraphLayer>> layers;  // with their names
  std::vector<GraphStep> steps;                            // each after those whose results it takes
  std::vector<std::string> output_names;
  std::vector<int> outputs;  // values
};

/// The layer behind a Functional.
class FunctionalLayer final : public NetLayer {
 public:
  explicit FunctionalLayer(LayerGraph graph);
  std::shared_ptr<Layer> clone() const override;
  std::string_view kind() const override { return "functional"; }
  std::string type() const override { return struct_name(); }
  std::string struct_name() const override { return "Functional"; }
  void visit(const FieldVisitor& visitor) const override;
  void add_parts_to(Structure& structure) const override;
  Tensor call(const Tensor& x) const override;
  /// The outputs for these inputs.
  Tensors call_graph(In inputs) const;
  const LayerGraph& graph() const { return graph_; }

 protected:
  void run_on(In inputs) const override { call_graph(inputs); }

 private:
  LayerGraph graph_;
  std::uint64_t identity_;  // of the steps; a copy has the same
};

}  // namespace detail::inline rooms

}  // namespace gradus
