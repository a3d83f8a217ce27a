/// Both modes as linear functions, built from vjp alone.
#include "gradus/autodiff/jvp.h"
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include "gradus/autodiff/trace_nodes.h"
#include "gradus/graph/scope.h"
#include "gradus/graph/shard_context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/views.h"

namespace gradus {

/// The cotangent's symbol is zero: whatever of the walk back is computed before it is dropped, is computed of numbers.
/// It is a node that no rule looks through.
Pushforward::Pushforward(const Tensor& y, const Tensor& x, const Stops& stops)
    : cotangent_(apply(ReshapeOp{y.shape()}, fill(y.shape(), 0, y.dtype()))),
      gradient_(vjp(y, {&x, 1}, cotangent_, stops)[0]) {}

Tensor Pushforward::operator()(const Tensor& tangent) const {
  if (!gradient_.defined()) return {};
  // Nothing older than the symbol depends on it.
  const Stops stops = [first = cotangent_.node()->sequence](const Node& node) { return node.sequence < first; };
  return vjp(gradient_, {&cotangent_, 1}, tangent, stops)[0];
}

namespace {

/// An op that joins shards does so when it is applied.
class ShardsOfWalk final : public ShardContext {
 public:
  explicit ShardsOfWalk(ShardContext& around) : ShardContext(around), around_(around) {}
  Tensor sum(const Tensor& part) override { return around_.sum(part); }
  Tensor over(const AnyOp& op, const Tensor& part) override { return make_node(op, {&part, 1}); }

 private:
  ShardContext& around_;
};

/// The context of the walk back for a symbol.
class WalkTrace final : public Context {
 public:
  WalkTrace() {
    if (ShardContext* const around = Context::shards()) shards_.emplace(*around);
  }
  ShardContext* shards() override { return shards_ ? &*shards_ : nullptr; }

 private:
  std::optional<ShardsOfWalk> shards_;
};

Tensor applied(const AnyOp& op, In in) { return op.joins_shards() ? over_shards(op, in[0]) : make_node(op, in); }

}  // namespace

/// Takes apart what a trace recorded of a linear function of `symbol`.
class PullbackBuilder {
 public:
  PullbackBuilder(Pullback& pullback, const Tensor& symbol, const Tensor& gradient) : pullback_(pullback) {
    places_[symbol.node().get()] = 0;
    std::vector<const Node*> steps;
    const std::vector<Ref<Node>> nodes = nodes_of_trace({&gradient, 1}, symbol.node()->trace);
    depends_.insert(symbol.node().get());
    for (const Ref<Node>& node : nodes)
      if (depends(*node)) steps.push_back(node.get());
      else made_[node.get()] = outside(*node);
    for (const Node* step : steps)
      for (const Ref<Node>& operand : step->inputs) fix(operand);
    fix(gradient.node());
    for (const Node* step : steps) add_step(*step);
    pullback_.result_ = places_.at(gradient.node().get());
  }

 private:
  bool depends(const Node& node) {
    for (const Ref<Node>& operand : node.inputs)
      if (depends_.contains(operand.get())) return depends_.insert(&node), true;
    return false;
  }

  /// A value that does not depend on the symbol, in the context around.
  Tensor outside(const Node& node) const {
    const NameScope scope(node.scope);
    Tensors in;
    for (const Ref<Node>& operand : node.inputs) in.push_back(standing_for(operand));
    return applied(node.op, in);
  }
  Tensor standing_for(const Ref<Node>& node) const {
    const auto it = made_.find(node.get());
    return it == made_.end() ? Tensor(node) : it->second;
  }
  void fix(const Ref<Node>& node) {
    if (depends_.contains(node.get()) || places_.contains(node.get())) return;
    pullback_.fixed_.push_back(standing_for(node));
    places_[node.get()] = pullback_.fixed_.size();
  }
  void add_step(const Node& node) {
    Pullback::Step step{.op = node.op, .scope = node.scope};
    for (const Ref<Node>& operand : node.inputs) step.in.push_back(places_.at(operand.get()));
    pullback_.steps_.push_back(std::move(step));
    places_[&node] = pullback_.fixed_.size() + pullback_.steps_.size();
  }

  Pullback& pullback_;
  std::unordered_set<const Node*> depends_;
  std::unordered_map<const Node*, Tensor> made_;
  std::unordered_map<const Node*, std::size_t> places_;
};

Pullback::Pullback(const Tensor& y, const Tensor& x, const Stops& stops) {
  Tensor symbol, gradient;
  {
    WalkTrace context;
    symbol = Tensor::parameter(y.spec(), context.id());
    gradient = vjp(y, {&x, 1}, symbol, stops)[0];
  }
  if (gradient.defined()) const PullbackBuilder take_apart(*this, symbol, gradient);
}

Tensor Pullback::operator()(const Tensor& cotangent) const {
  if (!result_) return {};
  Tensors values{cotangent};
  values.insert(values.end(), fixed_.begin(), fixed_.end());
  for (const Step& step : steps_) {
    const NameScope scope(step.scope);
    Tensors in;
    for (std::size_t i : step.in) in.push_back(values[i]);
    values.push_back(applied(step.op, in));
  }
  return values[*result_];
}

}  // namespace gradus
