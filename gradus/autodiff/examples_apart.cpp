/// A walk from x to y that keeps, for each node, where the number of the example stands in an element's flat index f:
/// it is (f / inner) % n, where `inner` elements lie next to each other. A reshape so changes nothing, and an axis that
/// examples share with another dimension, as the rows of a tall product, needs no special care.
#include "gradus/autodiff/examples_apart.h"
#include <optional>
#include <unordered_map>
#include "gradus/graph/scope.h"
#include "gradus/ops/constant.h"

namespace gradus {
namespace {

using Inner = std::optional<std::int64_t>;

bool divides(std::int64_t divisor, std::int64_t d) { return dimension::divide(d, divisor).has_value(); }

/// What a node's elements know of examples.
struct Knowledge {
  enum { independent, apart, mixed } kind = independent;
  std::int64_t inner = 0;         // if apart
  const Node* culprit = nullptr;  // if mixed
};

/// The axis, counted from the end, along which examples lie, `sub` elements of it for each.
struct Place {
  int axis;
  std::int64_t sub;
};
std::optional<Place> place_of(const Shape& shape, std::int64_t inner, std::int64_t n) {
  std::int64_t dense = 1;
  for (int axis = -1; axis >= -shape.rank(); --axis) {
    const std::int64_t whole = dimension::multiply(dense, shape[axis]);
    if (divides(dense, inner) && divides(dimension::multiply(inner, n), whole))
      return Place{axis, *dimension::divide(inner, dense)};
    dense = whole;
  }
  return {};
}

std::int64_t elements_behind(const Shape& shape, int axis) {
  std::int64_t product = 1;
  for (int i = axis + 1; i < 0; ++i) product = dimension::multiply(product, shape[i]);
  return product;
}

Inner through_reduction(const Shape& shape, int axis, std::int64_t inner, std::int64_t n) {
  const std::int64_t behind = elements_behind(shape, axis), whole = dimension::multiply(behind, shape[axis]);
  if (divides(whole, inner)) return dimension::divide(inner, shape[axis]);  // within each example
  if (divides(dimension::multiply(inner, n), behind)) return inner;         // over what stands in front
  return {};
}

bool less(std::int64_t a, std::int64_t b) { return dimension::subtract(dimension::subtract(b, a), 1) >= 0; }

/// One dimension of the view has to walk through the examples, in steps of whole ones or of an equal part of each; what
/// the others walk through has to lie within an example, or to skip all of them.
Inner through_view(const View& view, const Shape& out, std::int64_t inner, std::int64_t n) {
  const std::int64_t all = dimension::multiply(inner, n);
  std::optional<int> along;
  std::int64_t reach = 0, before = 0;  // how far the others reach within an example
  for (int i = 0; i < out.rank(); ++i) {
    const std::int64_t stride = view.strides[i];
    const bool backwards = view.backwards >> i & 1;
    if (out[i] == 1 || stride == 0 || divides(all, stride)) continue;
    const std::int64_t last = dimension::multiply(dimension::subtract(out[i], 1), stride);
    if (less(last, inner)) {
      (backwards ? before : reach) = dimension::add(backwards ? before : reach, last);
      continue;
    }
    const bool walks = divides(stride, inner) && divides(all, dimension::multiply(stride, out[i]));
    if (along || backwards || !walks) return {};
    along = i;
  }
  if (!along) return {};
  std::int64_t start = view.offset;  // within the first example
  if (start >= 0 && inner > 0) {
    if (start / inner != 0 && (n < 0 || start / inner % n != 0)) return {};
    start %= inner;
  } else if (divides(all, start)) {
    start = 0;
  }
  const std::int64_t step = view.strides[*along];
  if (!less(dimension::add(start, reach), step) || less(start, before)) return {};
  return dimension::multiply(elements_behind(out, *along - out.rank()), *dimension::divide(inner, step));
}

class Examples {
 public:
  Examples(const Tensor& x, const Stops& stops) : n_(x.shape()[0]), stops_(stops) {
    known_[x.node().get()] = {Knowledge::apart, elements_behind(x.shape(), -x.shape().rank())};
  }

  Knowledge of(Node* y) {
    enter(y);
    while (!stack_.empty()) {
      auto& [node, next] = stack_.back();
      if (next < node->inputs.size()) {
        enter(node->inputs[next++].get());
        continue;
      }
      Node* const done = node;
      stack_.pop_back();
      known_[done] = found(*done);
    }
    return known_.at(y);
  }

 private:
  void enter(Node* node) {
    if (!known_.try_emplace(node).second || node->is_leaf() || (stops_ && stops_(*node))) return;
    stack_.emplace_back(node, 0);
  }

  Knowledge found(Node& node) {
    if (!is_floating(node.spec.dtype)) return {};  // no gradient flows through integers and booleans
    std::vector<Knowledge> operands;
    for (const Ref<Node>& operand : node.inputs) operands.push_back(known_.at(operand.get()));
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].kind == Knowledge::mixed) {
        if (has_gradient_by(node, i)) return operands[i];
        operands[i] = {};
      }
    Knowledge result;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].kind == Knowledge::independent) continue;
      const Inner inner = through(node, static_cast<int>(i), operands[i].inner);
      if (!inner || (result.kind == Knowledge::apart && result.inner != *inner))
        return {.kind = Knowledge::mixed, .culprit = &node};
      result = {.kind = Knowledge::apart, .inner = *inner};
    }
    return result;
  }

  Inner through(const Node& node, int i, std::int64_t inner) const {
    const Shape& shape = node.inputs[i]->spec.shape;
    if (node.op.is_elementwise() || node.op.is_alias()) return inner;
    if (node.op.is_reduction()) return through_reduction(shape, node.op.axis(), inner, n_);
    if (node.op.is_view())
      return through_view(node.op->view(node.op.attributes(), shape, node.spec.shape), node.spec.shape, inner, n_);
    const std::optional<Place> place = place_of(shape, inner, n_);
    if (!node.op->carries || !place) return {};
    std::vector<Spec> specs;
    for (const Ref<Node>& operand : node.inputs) specs.push_back(operand->spec);
    const int axis = node.op->carries(node.op.attributes(), specs, i, place->axis);
    if (axis == 0 || node.spec.shape[axis] != shape[place->axis]) return {};
    return dimension::multiply(elements_behind(node.spec.shape, axis), place->sub);
  }

  /// Whether a gradient flows back from the node to operand i, as its rule says.
  static bool has_gradient_by(Node& node, std::size_t i) {
    if (!node.op->vjp) return true;
    Tensors in;
    for (const Ref<Node>& operand : node.inputs) in.emplace_back(operand);
    const Tensor y{Ref<Node>(&node)};
    const Tensors terms = node.op->vjp(node.op.attributes(), in, y, fill(y.shape(), 1, y.dtype()));
    return i < terms.size() && terms[i].defined();
  }

  const std::int64_t n_;
  const Stops& stops_;
  std::unordered_map<const Node*, Knowledge> known_;
  std::vector<std::pair<Node*, int>> stack_;
};

std::string described(const Node& node) {
  const std::string layer = scope_path(node.scope);
  std::string operands;
  for (const Ref<Node>& operand : node.inputs) operands += text(operands.empty() ? "" : ", ", operand->spec);
  return text("`", node.op, "` of ", operands, layer.empty() ? "" : ", in " + layer);
}

}  // namespace

void require_examples_apart(std::string_view op, const Tensor& y, const Tensor& x, const Stops& stops) {
  const std::int64_t n = x.shape()[0];
  if (n == 1 || y.shape().size() == 0 || x.shape().size() == 0) return;
  const Knowledge known = Examples(x, stops).of(y.node().get());
  if (known.kind == Knowledge::independent) return;
  constexpr std::string_view advice =
      "; use jacobian, or a function that treats each example on its own (batch normalization does so for inference "
      "only)";
  require(known.kind != Knowledge::mixed, op, ": examples mix, or may mix, in ",
          known.culprit ? described(*known.culprit) : "", advice);
  require(known.inner == elements_behind(y.shape(), -y.shape().rank()), op, ": the examples of the result, ", y.spec(),
          ", do not lie along dimension 0 as those of x, ", x.spec(), ", do", advice);
}

}  // namespace gradus
