/// The backward walk: find the nodes between the sources and y, then hand cotangents back in reverse order. Linear in
/// the number of nodes. Marks stand beside the graph, never in it.
#include "gradus/autodiff/vjp.h"
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/hash.h"
#include "gradus/graph/applications.h"
#include "gradus/graph/context.h"
#include "gradus/graph/copy.h"
#include "gradus/graph/scope.h"
#include "gradus/graph/transforms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/gradient_sum.h"

namespace gradus {
namespace {

/// The part of the graph on which the gradient can depend, operands first.
class Between {
 public:
  Between(In ys, std::span<const Tensor> sources, const Stops& stops) : stops_(stops) {
    for (const Tensor& source : sources) places_[source.node().get()] = Place{.is_source = true, .leads = true};
    for (const Tensor& y : ys) walk(y.node().get());
  }

  struct Place {
    bool is_source = false, leads = false, done = false;
    GradientSum cotangent;
    Tensors terms;  // of a source, if they are kept apart
  };
  Place* find(Node* node) {
    const auto it = places_.find(node);
    return it == places_.end() || !it->second.leads ? nullptr : &it->second;
  }
  const std::vector<Node*>& order() const { return order_; }

 private:
  void walk(Node* y) {
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

/// Nodes that are the results of one application: of one op but for `output`, with the same operands. Their rule is
/// asked once, when the first of them comes up: by then nothing is left that depends on any.
class Siblings {
 public:
  explicit Siblings(const std::vector<Node*>& order) {
    for (Node* node : order)
      if (node->op.has_siblings()) place(node);
  }
  /// The application that `node` begins, by output, or null if it is not the first of its kind.
  const std::vector<Node*>* begun_by(Node* node) const {
    const auto it = begins_.find(node);
    return it == begins_.end() ? nullptr : &groups_[it->second];
  }

 private:
  void place(Node* node) {
    std::vector<const Node*> operands;
    for (const Ref<Node>& operand : node->inputs) operands.push_back(operand.get());
    const auto [number, is_new] = applications_.find_or_add_result(node->op, operands);
    if (is_new) {
      begins_.emplace(node, groups_.size());
      groups_.emplace_back(static_cast<std::size_t>(node->op->outputs(node->op.attributes())));
    }
    groups_[static_cast<std::size_t>(number)][static_cast<std::size_t>(node->op.output())] = node;
  }

  std::vector<std::vector<Node*>> groups_;
  Applications<const Node*> applications_;
  std::unordered_map<Node*, std::size_t> begins_;
};

class Walk {
 public:
  Walk(In ys, std::span<const Tensor> sources, const Stops& stops, bool keeps_apart)
      : between_(ys, sources, stops), siblings_(between_.order()), keeps_apart_(keeps_apart) {}

  void seed(const Tensor& y, const Tensor& cotangent) {
    if (Between::Place* target = between_.find(y.node().get())) add(*target, cotangent);
  }
  void run() {
    for (std::size_t k = between_.order().size(); k-- > 0;) {
      Node* node = between_.order()[k];
      if (node->op.has_siblings()) hand_back_of_all(node);
      else if (Tensor cotangent = taken(node); cotangent.defined()) hand_back(node, cotangent);
    }
  }
  Tensor result(const Tensor& source) { return between_.find(source.node().get())->cotangent.value(); }
  const Tensors& terms(const Tensor& source) { return between_.find(source.node().get())->terms; }

 private:
  void add(Between::Place& place, const Tensor& term) const {
    if (keeps_apart_ && place.is_source) place.terms.push_back(term);
    else place.cotangent.add(term);
  }
  Tensor taken(Node* node) { return std::exchange(between_.find(node)->cotangent, {}).value(); }

  /// The operands are held: a rule may be the last to use them.
  static Tensors operands_of(const Node& node) {
    Tensors in;
    for (const Ref<Node>& operand : node.inputs) in.emplace_back(operand);
    return in;
  }

  /// A gradient is computed where the value is that it is of.
  static Tensors on_device_of(const Node& node, const auto& rule) {
    const DeviceScope there(node.spec.device);
    return rule();
  }

  void hand_back(Node* node, const Tensor& cotangent) {
    const NameScope scope(node->scope | gradient_scope);  // a gradient belongs to the layer of what it is of
    const Tensors in = operands_of(*node);
    pass_on(*node, in, on_device_of(*node, [&] {
      return node->op->vjp(node->op.attributes(), in, Tensor(Ref<Node>(node)), cotangent);
    }));
  }

  void hand_back_of_all(Node* node) {
    const std::vector<Node*>* group = siblings_.begun_by(node);
    if (!group) return;
    Cotangents dy;
    bool any = false;
    for (Node* member : *group) {
      dy.of.push_back(member ? taken(member) : Tensor());
      any = any || dy.of.back().defined();
    }
    if (!any) return;
    const NameScope scope(node->scope | gradient_scope);
    const Tensors in = operands_of(*node);
    for (const Tensor& operand : in) dy.wanted.push_back(between_.find(operand.node().get()) != nullptr);
    pass_on(*node, in, on_device_of(*node, [&] { return node->op->vjp_of_all(node->op.attributes(), in, dy); }));
  }

  void pass_on(const Node& node, In in, const Tensors& terms) {
    internal_check(terms.empty() || terms.size() == in.size(), "the gradient of ", node.op, " has ", terms.size(),
                   " parts for ", in.size(), " operands");
    for (std::size_t i = 0; i < terms.size(); ++i) {
      if (!terms[i].defined()) continue;
      internal_check(terms[i].spec() == in[i].spec(), "the gradient of ", node.op, " by operand ", i, " is ",
                     terms[i].spec(), ", not ", in[i].spec());
      add_behind_copies(in[i].node().get(), terms[i]);
    }
  }
  /// Copies between devices hand each term on as it comes: terms add up in the order that they have without copies.
  void add_behind_copies(Node* node, Tensor term) {
    Between::Place* place = between_.find(node);
    for (; place && !place->is_source && node->op.is_copy(); place = between_.find(node)) {
      node = node->inputs[0].get();
      term = copy_to(term, node->spec.device);
    }
    if (place) add(*place, term);
  }

  Between between_;
  Siblings siblings_;
  bool keeps_apart_;
};

Tensor seed_for(const Tensor& y, const Tensor& given) {
  return given.defined() ? given : fill(y.shape(), 1, y.dtype());
}

}  // namespace

Tensors vjp(const Tensor& y, std::span<const Tensor> sources, const Tensor& seed, const Stops& stops) {
  const Tensor seeds[] = {seed_for(y, seed)};
  return vjp({&y, 1}, sources, seeds, stops);
}

Tensors vjp(In ys, std::span<const Tensor> sources, In seeds, const Stops& stops) {
  const HostFloats floats;
  for (const Tensor& y : ys) y.spec();  // says so if it is empty
  const RecordingScope keep;            // should pending work be computed in the midst of the walk
  const DeviceScope none{Placement()};  // gradients are computed where values were
  Walk walk(ys, sources, stops, false);
  for (std::size_t k = 0; k < ys.size(); ++k)
    if (seeds[k].defined()) walk.seed(ys[k], seeds[k]);
  walk.run();
  Tensors result;
  for (const Tensor& source : sources) result.push_back(walk.result(source));
  return result;
}

std::vector<Tensors> vjp_terms(const Tensor& y, std::span<const Tensor> sources, const Tensor& seed,
                               const Stops& stops) {
  const RecordingScope keep;
  const DeviceScope none{Placement()};
  Walk walk({&y, 1}, sources, stops, true);
  walk.seed(y, seed_for(y, seed));
  walk.run();
  std::vector<Tensors> result;
  for (const Tensor& source : sources) result.push_back(walk.terms(source));
  return result;
}

bool reads_all_shards(const Tensor& y, const Stops& stops) {
  std::vector<const Node*> waiting{y.node().get()};
  std::unordered_set<const Node*> seen(waiting.begin(), waiting.end());
  while (!waiting.empty()) {
    const Node* const node = waiting.back();
    waiting.pop_back();
    if (node->op.joins_shards()) return true;
    if (node->is_leaf() || (stops && stops(*node))) continue;
    for (const Ref<Node>& operand : node->inputs)
      if (seen.insert(operand.get()).second) waiting.push_back(operand.get());
  }
  return false;
}

Tensors (*Transforms::vjp)(In, In, In, In) = [](In ys, In sources, In seeds, In ends) {
  std::unordered_set<const Node*> known;
  for (const Tensor& end : ends) known.insert(end.node().get());
  return gradus::vjp(ys, sources, seeds, [&](const Node& node) { return known.contains(&node); });
};

}  // namespace gradus
