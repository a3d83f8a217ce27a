/// A walk from x to y. For each value it keeps where the number of the example stands in an element's flat index f: it
/// is (f / inner) % n, where `inner` elements lie next to each other. So a reshape changes nothing. An axis that
/// examples share with another dimension, as the rows of a tall product, needs no special care.
#include "gradus/autodiff/examples_apart.h"
#include <algorithm>
#include <optional>
#include <unordered_map>
#include "gradus/graph/per_value.h"
#include "gradus/graph/region.h"
#include "gradus/graph/same_value.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/views.h"

namespace gradus {
namespace {

using Inner = std::optional<std::int64_t>;

bool divides(std::int64_t divisor, std::int64_t d) { return dimension::divide(d, divisor).has_value(); }

/// The dependence of a value's elements on examples.
struct Knowledge {
  enum { independent, apart, mixed } kind = independent;
  std::int64_t inner = 0;  // if apart
  std::string culprit;     // if mixed
  bool operator==(const Knowledge&) const = default;
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

/// One dimension of the view has to walk through the examples, in steps of whole ones or of an equal part of each; the
/// others have to walk within an example, or to skip all of them.
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

std::string described(const AnyOp& op, std::span<const Spec> in, std::uint32_t scope) {
  const std::string layer = scope_path(scope);
  std::string operands;
  for (const Spec& spec : in) operands += text(operands.empty() ? "" : ", ", spec);
  // A region says too much.
  const std::string name = op->regions ? std::string(op->name) : text(op);
  return text("`", name, "` of ", operands, layer.empty() ? "" : ", in " + layer);
}

/// One application of an op, in the graph of nodes or in a region.
struct Application {
  const AnyOp& op;
  std::vector<Spec> in;
  const Spec& out;
  std::uint32_t scope;
};

Knowledge through(const Application& a, std::span<const Knowledge> operands, std::int64_t n);

/// The dependence of output k of a region, given those of its inputs.
Knowledge through_region(const Graph& graph, int k, std::span<const Knowledge> inputs, std::int64_t n) {
  PerValue<Knowledge> known(graph);
  for (std::size_t i = 0; i < inputs.size(); ++i) known[graph.inputs[i]] = inputs[i];
  for (int i = 0; i < graph.size(); ++i) {
    const Value& v = graph[i];
    if (!v.op || !is_floating(v.spec.dtype)) continue;
    Application a{v.op, {}, v.spec, v.scope};
    std::vector<Knowledge> operands;
    for (int operand : v.in) {
      a.in.push_back(graph[operand].spec);
      operands.push_back(known[operand]);
    }
    known[i] = through(a, operands, n);
  }
  return known[graph.outputs[static_cast<std::size_t>(k)]];
}

// ---------------------------------------------------------------- branches and loops

/// The dependence of a value that is one or the other.
Knowledge joined(const Knowledge& a, const Knowledge& b, const Application& at) {
  if (a.kind == Knowledge::independent || a == b) return b;
  if (b.kind == Knowledge::independent || a.kind == Knowledge::mixed) return a;
  return b.kind == Knowledge::mixed ? b
                                    : Knowledge{.kind = Knowledge::mixed, .culprit = described(at.op, at.in, at.scope)};
}

/// The dependence of contiguous parts of `elements` elements each: each must hold all examples.
Knowledge in_parts(const Knowledge& k, std::int64_t elements, std::int64_t n, const Application& at) {
  if (k.kind != Knowledge::apart || divides(dimension::multiply(k.inner, n), elements)) return k;
  return {.kind = Knowledge::mixed, .culprit = described(at.op, at.in, at.scope)};
}

/// The dependences of the carries after any number of iterations of a body that takes them first, and after them
/// `others`.
std::vector<Knowledge> after_iterations(const Graph& body, std::vector<Knowledge> carries,
                                        std::span<const Knowledge> others, std::int64_t n, const Application& at) {
  for (bool changes = true; changes;) {
    changes = false;
    std::vector<Knowledge> inputs = carries;
    inputs.insert(inputs.end(), others.begin(), others.end());
    for (std::size_t k = 0; k < carries.size(); ++k) {
      Knowledge next = joined(carries[k], through_region(body, static_cast<int>(k), inputs, n), at);
      changes = changes || next.kind != carries[k].kind;
      carries[k] = std::move(next);
    }
  }
  return carries;
}

Knowledge through_cond(const Cond& op, const Application& a, std::span<const Knowledge> operands, std::int64_t n) {
  return joined(through_region(op.if_true.graph(), op.output, operands.subspan(1), n),
                through_region(op.if_false.graph(), op.output, operands.subspan(1), n), a);
}

Knowledge through_while(const While& op, const Application& a, std::span<const Knowledge> operands, std::int64_t n) {
  const auto carries = static_cast<std::size_t>(op.carries);
  const std::vector<Knowledge> last = after_iterations(
      op.body.graph(), {operands.begin(), operands.begin() + op.carries}, operands.subspan(carries), n, a);
  const auto output = static_cast<std::size_t>(op.output);
  return output == carries ? Knowledge() : last[output < carries ? output : output - carries - 1];
}

Knowledge through_scan(const Scan& op, const Application& a, std::span<const Knowledge> operands, std::int64_t n) {
  std::vector<Knowledge> given(operands.begin() + op.first_carry(), operands.end());
  for (int i = op.first_single(); i < op.first_whole(); ++i) {
    const Shape& shape = a.in[static_cast<std::size_t>(i)].shape;
    Knowledge& part = given[static_cast<std::size_t>(i - op.first_carry())];
    part = in_parts(part, elements_behind(shape, -shape.rank()), n, a);
  }
  const auto carries = static_cast<std::size_t>(op.carries), output = static_cast<std::size_t>(op.output);
  const std::span<const Knowledge> others = std::span(given).subspan(carries);
  std::vector<Knowledge> state =
      after_iterations(op.body.graph(), {given.begin(), given.begin() + op.carries}, others, n, a);
  const std::size_t results = op.body.outputs();
  if (output < carries || output >= results) return state[output < carries ? output : output - results];
  state.insert(state.end(), others.begin(), others.end());
  Knowledge made =
      in_parts(through_region(op.body.graph(), op.output, state, n), op.body.output(output).shape.size(), n, a);
  if (op.last) made = joined(made, through_region(op.last.graph(), op.output, state, n), a);
  return made;
}

/// From operand i of an op without regions.
Inner through_operand(const Application& a, int i, std::int64_t inner, std::int64_t n) {
  const Shape& shape = a.in[static_cast<std::size_t>(i)].shape;
  if (a.op.is_elementwise() || a.op.is_alias()) return inner;
  if (a.op.is_reduction()) return through_reduction(shape, a.op.axis(), inner, n);
  if (a.op.is_view() && a.in.size() == 1)
    return through_view(a.op->view(a.op.attributes(), shape, a.out.shape), a.out.shape, inner, n);
  const std::optional<Place> place = place_of(shape, inner, n);
  if (!a.op->carries || !place) return {};
  const int axis = a.op->carries(a.op.attributes(), a.in, i, place->axis);
  if (axis == 0 || a.out.shape[axis] != shape[place->axis]) return {};
  return dimension::multiply(elements_behind(a.out.shape, axis), place->sub);
}

/// The dependence of an op without regions.
Knowledge through_op(const Application& a, std::span<const Knowledge> operands, std::int64_t n) {
  Knowledge result;
  const std::size_t count = a.op.is_alias() ? 1 : operands.size();  // the others of an alias only come before it
  for (std::size_t i = 0; i < count; ++i) {
    if (operands[i].kind == Knowledge::mixed) return operands[i];
    if (operands[i].kind == Knowledge::independent) continue;
    const Inner inner = through_operand(a, static_cast<int>(i), operands[i].inner, n);
    if (!inner || (result.kind == Knowledge::apart && result.inner != *inner))
      return {.kind = Knowledge::mixed, .culprit = described(a.op, a.in, a.scope)};
    result = {.kind = Knowledge::apart, .inner = *inner};
  }
  return result;
}

Knowledge through(const Application& a, std::span<const Knowledge> operands, std::int64_t n) {
  if (a.op->inlined)
    return through_region(a.op->inlined(a.op.attributes()).graph(), a.op.has_siblings() ? a.op.output() : 0, operands,
                          n);
  if (const auto* cond = a.op.as<Cond>()) return through_cond(*cond, a, operands, n);
  if (const auto* loop = a.op.as<While>()) return through_while(*loop, a, operands, n);
  if (const auto* scan = a.op.as<Scan>()) return through_scan(*scan, a, operands, n);
  return through_op(a, operands, n);
}

class Examples {
 public:
  Examples(const Tensor& x, const Stops& stops) : n_(x.shape()[0]), stops_(stops) {
    known_[x.node().get()] = {Knowledge::apart, elements_behind(x.shape(), -x.shape().rank()), {}};
  }

  Knowledge of(Node* y) {
    std::vector<std::pair<Node*, int>> stack;
    const auto enter = [&](Node* node) {
      if (known_.try_emplace(node).second && !node->is_leaf() && !(stops_ && stops_(*node)))
        stack.emplace_back(node, 0);
    };
    enter(y);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < node->inputs.size()) {
        enter(node->inputs[next++].get());
        continue;
      }
      Node* const done = node;
      stack.pop_back();
      Knowledge found = knowledge_of(*done);
      known_[done] = std::move(found);
    }
    return known_.at(y);
  }

 private:
  Knowledge knowledge_of(Node& node) {
    if (!is_floating(node.spec.dtype)) return {};  // no gradient flows through integers and booleans
    Application a{node.op, {}, node.spec, node.scope};
    std::vector<Knowledge> operands;
    for (const Ref<Node>& operand : node.inputs) {
      a.in.push_back(operand->spec);
      operands.push_back(known_.at(operand.get()));
    }
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].kind == Knowledge::mixed && !has_gradient_by(node, i)) operands[i] = {};
    const Knowledge result = through(a, operands, n_);
    const bool own_gradient = node.op.regions().size() > 1 && !node.op.is_control();
    if (result.kind != Knowledge::apart || !own_gradient || gradient_is_apart(node, operands, result)) return result;
    return {.kind = Knowledge::mixed, .culprit = "the gradient of " + described(a.op, a.in, a.scope)};
  }

  /// True if a gradient flows back from the node to operand i, by its rule.
  static bool has_gradient_by(Node& node, std::size_t i) {
    if (!node.op->vjp) return true;
    const Tensor y{Ref<Node>(&node)};
    const Tensors terms = node.op->vjp(node.op.attributes(), operands_of(node), y, fill(y.shape(), 1, y.dtype()));
    return i < terms.size() && terms[i].defined();
  }

  /// For an op whose gradient is not that of its formula: true if it keeps examples apart on the way back.
  bool gradient_is_apart(Node& node, std::span<const Knowledge> operands, const Knowledge& of_result) {
    if (!node.op->vjp_of_all) return false;
    const Tensor dy = apply(ReshapeOp{node.spec.shape}, fill(node.spec.shape, 0, node.spec.dtype));
    known_[dy.node().get()] = of_result;
    Cotangents cotangents{Tensors(static_cast<std::size_t>(node.op->outputs(node.op.attributes()))), {}};
    cotangents.of[static_cast<std::size_t>(node.op.output())] = dy;
    cotangents.wanted.assign(operands.size(), true);
    const Tensors terms = node.op->vjp_of_all(node.op.attributes(), operands_of(node), cotangents);
    made_.push_back(dy);
    made_.insert(made_.end(), terms.begin(), terms.end());
    for (std::size_t i = 0; i < terms.size(); ++i) {
      if (!terms[i].defined() || operands[i].kind == Knowledge::independent) continue;
      const Knowledge found = of(terms[i].node().get());
      if (found.kind != Knowledge::independent && found != operands[i]) return false;
    }
    return true;
  }

  static Tensors operands_of(const Node& node) {
    Tensors in;
    for (const Ref<Node>& operand : node.inputs) in.emplace_back(operand);
    return in;
  }

  const std::int64_t n_;
  const Stops& stops_;
  std::unordered_map<const Node*, Knowledge> known_;
  Tensors made_;  // their addresses are keys
};

/// Rows of values: of all types, whether a gradient flows or not.
class RowsOfValues {
 public:
  RowsOfValues(In xs, In others_xs) {
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const Shape& shape = xs[i].shape();
      Known& known = known_[xs[i].node().get()];
      known.other = others_xs[i].node().get();
      if (shape.rank() == 0) continue;
      n_ = shape[0];
      known.rows = {Knowledge::apart, elements_behind(shape, -shape.rank()), {}};
    }
  }

  bool are_apart(const Tensor& y, const Tensor& other) {
    if (!is_made_alike(y.node().get(), other.node().get())) return false;
    const Knowledge& rows = known_.at(y.node().get()).rows;
    const Shape& shape = y.shape();
    if (rows.kind == Knowledge::independent) return shape.rank() == 0;
    return rows.kind == Knowledge::apart && shape.rank() > 0 && shape[0] == n_ &&
           rows.inner == elements_behind(shape, -shape.rank());
  }

 private:
  struct Known {
    const Node* other = nullptr;  // the same value for another number of rows
    Knowledge rows = {};
  };

  /// Also notes what is known of the rows of `root`.
  bool is_made_alike(const Node* root, const Node* other) {
    std::vector<std::pair<const Node*, const Node*>> stack{{root, other}};
    while (!stack.empty()) {
      const auto [a, b] = stack.back();
      if (const auto known = known_.find(a); known != known_.end()) {
        if (known->second.other != b) return false;
        stack.pop_back();
        continue;
      }
      if (a == b || a->is_leaf() || b->is_leaf()) {  // made outside, or a constant
        if (a->trace != 0 || !are_surely_equal(*a, *b)) return false;
        known_[a].other = b;
        continue;
      }
      if (a->op->name != b->op->name || a->inputs.size() != b->inputs.size() || !a->op.regions().empty()) return false;
      const std::size_t before = stack.size();
      for (int i = 0; i < a->inputs.size(); ++i)
        if (!known_.contains(a->inputs[i].get())) stack.emplace_back(a->inputs[i].get(), b->inputs[i].get());
      if (stack.size() > before) continue;
      for (int i = 0; i < a->inputs.size(); ++i)
        if (known_.at(a->inputs[i].get()).other != b->inputs[i].get()) return false;
      std::optional<Knowledge> rows = rows_of(*a, *b);
      if (!rows) return false;
      known_[a] = {b, std::move(*rows)};
    }
    return true;
  }

  /// Nothing: it is not certain that both are made alike.
  std::optional<Knowledge> rows_of(const Node& a, const Node& b) const {
    const bool may_differ = a.op.is_view() || a.op.is_alias();  // by the number of rows
    if ((!may_differ && a.op != b.op) || a.op.joins_shards() || a.op.varies(false)) return {};
    if (!are_alike_but_rows(a.spec, b.spec) || (a.op.is_view() && !is_same_walk(a, b))) return {};
    Application application{a.op, {}, a.spec, a.scope};
    std::vector<Knowledge> operands;
    bool is_of_rows = false;
    for (const Ref<Node>& operand : a.inputs) {
      application.in.push_back(operand->spec);
      operands.push_back(known_.at(operand.get()).rows);
      is_of_rows = is_of_rows || operands.back().kind != Knowledge::independent;
    }
    if (is_of_rows || a.op == b.op) return through_op(application, operands, n_);
    const bool repeats = a.op.is_view() && a.spec.shape[0] == n_ && view_of(a).strides[0] == 0;
    if (!repeats) return {};
    return Knowledge{Knowledge::apart, elements_behind(a.spec.shape, -a.spec.shape.rank()), {}};
  }

  static bool are_alike_but_rows(const Spec& a, const Spec& b) {
    if (a.dtype != b.dtype || a.shape.rank() != b.shape.rank()) return false;
    for (int axis = 1; axis < a.shape.rank(); ++axis)
      if (a.shape[axis] != b.shape[axis]) return false;
    return true;
  }
  static View view_of(const Node& node) {
    return node.op->view(node.op.attributes(), node.inputs[0]->spec.shape, node.spec.shape);
  }
  static bool is_same_walk(const Node& a, const Node& b) {
    const View of_a = view_of(a), of_b = view_of(b);
    return of_a.offset == of_b.offset && of_a.strides == of_b.strides && of_a.backwards == of_b.backwards;
  }

  std::unordered_map<const Node*, Known> known_;
  std::int64_t n_ = 0;
};

}  // namespace

bool are_rows_apart(In ys, In xs, In others, In others_xs) {
  if (ys.size() != others.size()) return false;
  RowsOfValues rows(xs, others_xs);
  for (std::size_t k = 0; k < ys.size(); ++k)
    if (!rows.are_apart(ys[k], others[k])) return false;
  return true;
}

void require_examples_apart(std::string_view op, const Tensor& y, const Tensor& x, const Stops& stops) {
  const std::int64_t n = x.shape()[0];
  if (n == 1 || y.shape().size() == 0 || x.shape().size() == 0) return;
  const Knowledge known = Examples(x, stops).of(y.node().get());
  if (known.kind == Knowledge::independent) return;
  constexpr std::string_view advice =
      "; use jacobian, or a function that treats each example on its own (batch normalization does so for inference "
      "only)";
  require(known.kind != Knowledge::mixed, op, ": examples mix, or may mix, in ", known.culprit, advice);
  require(known.inner == elements_behind(y.shape(), -y.shape().rank()), op, ": the examples of the result, ", y.spec(),
          ", do not lie along dimension 0 as those of x, ", x.spec(), ", do", advice);
}

}  // namespace gradus
