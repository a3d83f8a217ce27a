/// ONNX's training ops: Gradient, and updates of the optimizers. The formulas are those of the operators' own
/// documents.
#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include "gradus/autodiff/vjp.h"
#include "gradus/onnx/row.h"
#include "gradus/onnx/scope.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"

namespace gradus::onnx {
namespace {

using NameSet = std::unordered_set<std::string>;

// ---------------------------------------------------------------- Gradient

bool has_graph(const NodeDefinition& node, const GraphDefinition& graph) {
  return std::ranges::any_of(node.attributes, [&](const Attribute& a) { return a.graph.get() == &graph; });
}

/// The nodes of a graph, and of those around it, by what they make, as far as they come before one of them.
class Producers {
 public:
  Producers(const Scope& scope, const NodeDefinition& before) {
    add(scope, [&](const NodeDefinition& node) { return !node.outputs.empty() && node.outputs == before.outputs; });
  }

  /// The nodes between the `fed` values and `y`, in order; the other values that they use are added to `outside`.
  std::vector<const NodeDefinition*> between(const NameSet& fed, const std::string& y, NameSet& outside) const {
    std::vector<bool> needed(order_.size());
    const auto need = [&](const std::string& name) {
      if (name.empty() || fed.contains(name)) return;
      const auto found = by_output_.find(name);
      if (found == by_output_.end()) outside.insert(name);
      else needed[found->second] = true;
    };
    need(y);
    for (std::size_t i = order_.size(); i-- > 0;)
      if (needed[i])
        for (const std::string& name : used_by(*order_[i])) need(name);
    std::vector<const NodeDefinition*> nodes;
    for (std::size_t i = 0; i < order_.size(); ++i)
      if (needed[i]) nodes.push_back(order_[i]);
    return nodes;
  }

  /// Inputs, what graphs among the attributes capture, the targets of Gradients in these, and of a Gradient what its
  /// own subgraph takes from outside.
  std::vector<std::string> used_by(const NodeDefinition& node) const;

 private:
  /// The nodes of the graphs around come first.
  void add(const Scope& scope, const std::function<bool(const NodeDefinition&)>& is_last) {
    const GraphDefinition& graph = scope.graph();
    const Scope* around = scope.outer();
    while (around && &around->graph() == &graph) around = around->outer();  // of a Gradient that runs this one again
    if (around) add(*around, [&](const NodeDefinition& node) { return has_graph(node, graph); });
    for (const ValueInfo& input : graph.inputs) by_output_.erase(input.name);
    for (const NodeDefinition& node : graph.nodes) {
      if (is_last(node)) return;
      order_.push_back(&node);
      for (const std::string& name : node.outputs)
        if (!name.empty()) by_output_.insert_or_assign(name, order_.size() - 1);
    }
  }

  std::vector<const NodeDefinition*> order_;
  std::unordered_map<std::string, std::size_t> by_output_;
};

const Attribute* attribute_of(const NodeDefinition& node, std::string_view name) {
  const auto found = std::ranges::find(node.attributes, name, &Attribute::name);
  return found == node.attributes.end() ? nullptr : &*found;
}

NameSet fed_names(const NodeDefinition& node) {
  NameSet fed;
  for (const char* name : {"xs", "zs"})
    if (const Attribute* a = attribute_of(node, name)) fed.insert(a->words.begin(), a->words.end());
  return fed;
}

void add_targets(const GraphDefinition& graph, std::vector<std::string>& names) {
  for (const NodeDefinition& node : graph.nodes) {
    const Attribute* y = attribute_of(node, "y");
    if (node.op == "Gradient" && y) names.push_back(y->word);
    for (const Attribute& a : node.attributes)
      if (a.graph) add_targets(*a.graph, names);
  }
}

std::vector<std::string> Producers::used_by(const NodeDefinition& node) const {
  std::vector<std::string> used = captured_names(node);
  for (const Attribute& a : node.attributes)
    if (a.graph) add_targets(*a.graph, used);
  used.insert(used.end(), node.inputs.begin(), node.inputs.end());
  const Attribute* y = attribute_of(node, "y");
  if (node.op != "Gradient" || !y) return used;
  NameSet outside;
  between(fed_names(node), y->word, outside);
  used.insert(used.end(), outside.begin(), outside.end());
  return used;
}

/// The value of `y` when the values in `scope` take the place of those around it: nodes that depend on them run again.
Tensor run_again(const Call& c, Scope& scope, NameSet changed, const std::string& y) {
  const Producers producers(c.scope(), c.node());
  NameSet outside;
  for (const NodeDefinition* node : producers.between(changed, y, outside)) {
    const std::vector<std::string> used = producers.used_by(*node);
    if (std::ranges::none_of(used, [&](const std::string& name) { return changed.contains(name); })) continue;
    scope.run(*node);
    changed.insert(node->outputs.begin(), node->outputs.end());
  }
  return scope.get(y);
}

/// The partial derivatives of the value named y by those named xs, at the inputs, which stand for xs and then for zs: a
/// tape over the subgraph from them to y. Zeros where y does not depend on one. With narrow floats all of it computes
/// in f32, so that only the derivatives are rounded.
Tensors gradient(const Call& c) {
  const std::vector<std::string> xs = c.words("xs", {}), zs = c.words("zs", {});
  const std::string y = c.word("y", "");
  c.require(!xs.empty() && !y.empty(), "attributes `xs` and `y` must name values");
  c.require(static_cast<std::size_t>(c.inputs()) == xs.size() + zs.size(), "xs and zs name ", xs.size() + zs.size(),
            " values, there are ", c.inputs(), " inputs");
  const std::uint64_t start = new_sequence();
  Scope scope(c.scope().graph(), &c.scope());
  scope.widen();
  NameSet fed;
  Tensors sources;
  for (std::size_t i = 0; i < xs.size() + zs.size(); ++i) {
    const std::string& name = i < xs.size() ? xs[i] : zs[i - xs.size()];
    c.require(fed.insert(name).second, "`", name, "` stands twice among xs and zs");
    const Tensor value = as_argument(c[static_cast<int>(i)]);
    if (i < xs.size()) sources.push_back(value);
    scope.set(name, value);
  }
  const Tensor target = run_again(c, scope, std::move(fed), y);
  c.require(is_floating(target.dtype()) && target.shape().size() == 1, "y must be one floating number, `", y, "` is ",
            target.spec());
  Tensors gradients =
      vjp(target, sources, ones_like(target), [start](const Node& node) { return node.sequence < start; });
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (!gradients[i].defined()) gradients[i] = zeros_like(sources[i]);
  return gradients;
}

// ---------------------------------------------------------------- optimizers

/// Inputs: the rate, the number of the update, then lists of equal length: the variables, their gradients, slots.
struct Update {
  Update(const Call& call, int lists) : c(call), count((call.inputs() - 2) / lists) {
    c.require(count > 0 && call.inputs() == 2 + lists * count, "besides R and T there are ", call.inputs() - 2,
              " inputs; they must be ", lists, " lists of equal length");
    c.require(is_floating(c[0].dtype()) && c[0].shape().size() == 1, "R must be one floating number, it is ",
              c[0].spec());
    c.require(is_integer(c[1].dtype()) && c[1].shape().size() == 1, "T must be one integer, it is ", c[1].spec());
  }
  const Tensor& given(int list, int i) const { return c[2 + list * count + i]; }
  Tensor of(int list, int i) const { return wide(given(list, i)); }
  Tensor rate(DType dtype) const { return cast(reshape(c[0], {}), dtype); }
  Tensor steps(DType dtype) const { return cast(reshape(c[1], {}), dtype); }
  /// The gradient with its share of the variable.
  Tensor regularized(int i) const { return of(1, i) + of(0, i) * c.number("norm_coefficient", 0); }

  const Call& c;
  int count;
};

/// The results of each variable, ordered as in ONNX: all first results, then all second ones ...
Tensors in_lists(const std::vector<Tensors>& of_each) {
  Tensors all;
  for (std::size_t k = 0; k < of_each.front().size(); ++k)
    for (const Tensors& each : of_each) all.push_back(each[k]);
  return all;
}

template <class F> Tensors for_each_variable(const Call& c, int lists, const F& step) {
  const Update update(c, lists);
  std::vector<Tensors> results;
  for (int i = 0; i < update.count; ++i) {
    Tensors& now = results.emplace_back(step(update, i));  // the variable, then its slots: the lists 0, 2, 3 ...
    for (std::size_t k = 0; k < now.size(); ++k)
      now[k] = cast(now[k], update.given(k == 0 ? 0 : static_cast<int>(k) + 1, i).dtype());
  }
  return in_lists(results);
}

Tensors adagrad(const Call& c) {
  return for_each_variable(c, 3, [&](const Update& u, int i) {
    const Tensor x = u.of(0, i), g = u.regularized(i);
    const Tensor rate = u.rate(x.dtype()) / (1 + u.steps(x.dtype()) * c.number("decay_factor", 0));
    const Tensor sum = u.of(2, i) + g * g;
    return Tensors{x - rate * g / (sqrt(sum) + c.number("epsilon", 1e-6)), sum};
  });
}

Tensors adam(const Call& c) {
  const double alpha = c.number("alpha", 0.9), beta = c.number("beta", 0.999);
  return for_each_variable(c, 4, [&](const Update& u, int i) {
    const Tensor x = u.of(0, i), g = u.regularized(i);
    const Tensor v = u.of(2, i) * alpha + g * (1 - alpha), h = u.of(3, i) * beta + g * g * (1 - beta);
    const Tensor t = u.steps(x.dtype()), rate = u.rate(x.dtype());
    const Tensor adjusted = where(t > 0, rate * sqrt(1 - pow(beta, t)) / (1 - pow(alpha, t)), rate);
    const Tensor next = x - adjusted * v / (sqrt(h) + c.number("epsilon", 1e-6));
    return Tensors{next * (1 - c.number("norm_coefficient_post", 0)), v, h};
  });
}

Tensors momentum(const Call& c) {
  const double alpha = c.number("alpha"), beta = c.number("beta");
  const std::string mode = c.word("mode", "standard");
  c.require(mode == "standard" || mode == "nesterov", "attribute `mode` is `", mode,
            "`, it must be standard or nesterov");
  return for_each_variable(c, 3, [&](const Update& u, int i) {
    const Tensor x = u.of(0, i), g = u.regularized(i);
    const Tensor share = where(u.steps(x.dtype()) > 0, beta, ones({}, x.dtype()));
    const Tensor v = u.of(2, i) * alpha + share * g;
    return Tensors{x - u.rate(x.dtype()) * (mode == "nesterov" ? g + v * alpha : v), v};
  });
}

constexpr std::string_view domain = "ai.onnx.preview.training";
const Table training_table{
    {"Adagrad", {1}, adagrad, domain},
    {"Adam", {1}, adam, domain},
    {"Gradient", {1}, gradient, domain},
    {"Momentum", {1}, momentum, domain},
};

}  // namespace
}  // namespace gradus::onnx
