/// The walk: find what lies between the sources and y, then hand cotangents back in reverse order. Linear in the number
/// of nodes; marks stand beside the graph, never in it.
#include "gradus/autodiff/vjp.h"
#include <algorithm>
#include <unordered_map>
#include "gradus/graph/context.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"

namespace gradus {
namespace {

/// The part of the graph on which y's gradient can depend, operands first.
class Region {
 public:
  Region(Node* y, std::span<const Tensor> sources, const Stops& stops) : stops_(stops) {
    for (const Tensor& source : sources) places_[source.node().get()] = Place{.is_source = true, .leads = true};
    enter(y);
    while (!stack_.empty()) {
      auto& [node, next] = stack_.back();
      if (next < node->inputs.size()) {
        enter(node->inputs[next++].get());
        continue;
      }
      finish(node);
      stack_.pop_back();
    }
  }

  struct Place {
    bool is_source = false, leads = false, done = false;
    Tensor cotangent;
  };
  Place* find(Node* node) {
    const auto it = places_.find(node);
    return it == places_.end() || !it->second.leads ? nullptr : &it->second;
  }
  const std::vector<Node*>& order() const { return order_; }

 private:
  void enter(Node* node) {
    const auto [it, fresh] = places_.try_emplace(node);
    if (!fresh && (it->second.is_source || it->second.done)) return;
    if (fresh && (node->is_leaf() || (stops_ && stops_(*node)))) {
      it->second.done = true;
      return;
    }
    stack_.emplace_back(node, 0);
  }
  void finish(Node* node) {
    Place& place = places_[node];
    if (std::exchange(place.done, true)) return;
    if (is_floating(node->spec.dtype))  // integers and booleans have no gradient
      for (const Ref<Node>& operand : node->inputs) place.leads = place.leads || places_[operand.get()].leads;
    if (place.leads) order_.push_back(node);
  }

  const Stops& stops_;
  std::unordered_map<Node*, Place> places_;
  std::vector<Node*> order_;
  std::vector<std::pair<Node*, int>> stack_;
};

void hand_back(Region& region, Node* node, const Tensor& cotangent) {
  const NameScope scope(node->scope);  // a gradient belongs to the layer of what it is of
  // The operands are held here: a rule may be the last to use them.
  Tensors in;
  for (const Ref<Node>& operand : node->inputs) in.emplace_back(operand);
  const Tensors terms = node->op->vjp(node->op.attributes(), in, Tensor(Ref<Node>(node)), cotangent);
  internal_check(terms.empty() || terms.size() == in.size(), "the gradient of ", node->op, " has ", terms.size(),
                 " parts for ", in.size(), " operands");
  for (std::size_t i = 0; i < terms.size(); ++i) {
    Region::Place* place = terms[i].defined() ? region.find(in[i].node().get()) : nullptr;
    if (!place) continue;
    internal_check(terms[i].spec() == in[i].spec(), "the gradient of ", node->op, " by operand ", i, " is ",
                   terms[i].spec(), ", not ", in[i].spec());
    place->cotangent = place->cotangent.defined() ? place->cotangent + terms[i] : terms[i];
  }
}

}  // namespace

Tensors vjp(const Tensor& y, std::span<const Tensor> sources, const Tensor& seed, const Stops& stops) {
  y.spec();                   // says so if it is empty
  const RecordingScope keep;  // should pending work be computed in the midst of the walk
  Region region(y.node().get(), sources, stops);
  if (Region::Place* target = region.find(y.node().get()))
    target->cotangent = seed.defined() ? seed : fill(y.shape(), 1, y.dtype());
  for (std::size_t k = region.order().size(); k-- > 0;) {
    Region::Place& place = *region.find(region.order()[k]);
    if (place.cotangent.defined()) hand_back(region, region.order()[k], std::exchange(place.cotangent, {}));
  }
  Tensors result;
  for (const Tensor& source : sources) result.push_back(region.find(source.node().get())->cotangent);
  return result;
}

}  // namespace gradus
