/// Loop-invariant code motion: values that every iteration would compute again, from nothing but values that all of
/// them see whole, are computed before the loop. A matrix that a product in the loop reads transposed is transposed
/// once: it would be packed in every iteration. Decision 100 has the reasons.
#include <algorithm>
#include <map>
#include "gradus/compiler/passes.h"
#include "gradus/graph/applications.h"
#include "gradus/graph/rewriter.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"
#include "gradus/ops/views.h"

namespace gradus {
namespace {

/// May be computed where no iteration is, any number of times.
bool may_move(const Value& v) {
  return v.op && !v.op.is_control() && !v.op.has_siblings() && !v.op->inlined && !v.op.may_fail() &&
         (!v.op.is_alias() || is_plain_alias(v));
}

/// The body of a loop, and the values that go before the loop.
class Body {
 public:
  /// The inputs from `first_whole` on are the same in all iterations.
  Body(Graph graph, std::size_t first_whole) : graph_(std::move(graph)), kinds_(graph_, Kind::varies) {
    for (std::size_t k = first_whole; k < graph_.inputs.size(); ++k) kinds_[graph_.inputs[k]] = Kind::whole;
    for (int i = 0; i < graph_.size(); ++i)
      if (!graph_[i].is_input()) kinds_[i] = kind_of(graph_[i]);
  }

  /// Appends the hoisted values to the graph around the loop, and to `operands`, whose last ones are those of the
  /// body's inputs.
  void move_out(Graph& around, std::vector<int>& operands) {
    const std::size_t first = operands.size() - graph_.inputs.size();
    for (std::size_t k = 0; k < graph_.inputs.size(); ++k) outside_[graph_.inputs[k]] = operands[first + k];
    const int size = graph_.size();
    for (int i = 0; i < size; ++i)
      if (graph_[i].op && kinds_[i] == Kind::varies) look_at_operands(i);
    std::map<int, int> replaced;
    for (int value : wanted_) replaced[value] = add_input(copy_out(value, around), graph_[value].spec, operands);
    for (const auto& [product, operand] : turned_) {
      const int turned = turn(copy_out(operand, around), graph_[operand].spec, around, operands);
      Matmul op = *graph_[product].op.as<Matmul>();
      op.transpose_b = false;
      graph_[product].op = AnyOp::of(op);
      graph_[product].in[1] = turned;
    }
    for (int i = 0; i < size; ++i)
      for (int& operand : graph_[i].in)
        if (const auto found = replaced.find(operand); found != replaced.end() && kinds_[i] == Kind::varies)
          operand = found->second;
    sort();
  }
  bool changed() const { return !wanted_.empty() || !turned_.empty(); }
  Graph take() { return std::move(graph_); }

 private:
  enum class Kind { varies, whole, fixed };  // fixed: made of nothing at all, computed where it is read

  Kind kind_of(const Value& v) const {
    if (v.is_constant) return Kind::fixed;
    if (!may_move(v)) return Kind::varies;
    Kind kind = Kind::fixed;
    for (int operand : v.in) {
      if (kinds_[operand] == Kind::varies) return Kind::varies;
      if (kinds_[operand] == Kind::whole) kind = Kind::whole;
    }
    return kind;
  }

  void look_at_operands(int i) {
    const Value& v = graph_[i];
    const bool in_memory = v.op.is_library_call() || v.op.is_control();
    for (std::size_t k = 0; k < v.in.size(); ++k) {
      const Matmul* product = v.op.as<Matmul>();
      if (product && k == 1 && product->transpose_b && kinds_[v.in[1]] == Kind::whole) turned_.emplace_back(i, v.in[1]);
      else want(v.in[k], in_memory);
    }
  }

  /// `value` is read in the loop. A view that is read in place stays at its reader; its source is hoisted.
  void want(int value, bool in_memory) {
    const Value& v = graph_[value];
    if (kinds_[value] != Kind::whole || v.is_input()) return;
    if (is_plain_alias(v) || (v.op.is_view() && !in_memory)) {
      kinds_[value] = Kind::varies;  // from now on it is read like the rest of the body
      for (int operand : v.in) want(operand, in_memory);
    } else if (std::ranges::find(wanted_, value) == wanted_.end()) {
      wanted_.push_back(value);
    }
  }

  /// The value around the loop that is `value`.
  int copy_out(int value, Graph& around) {
    if (const auto found = outside_.find(value); found != outside_.end()) return found->second;
    Value v = graph_[value];
    for (int& operand : v.in) operand = copy_out(operand, around);
    return outside_[value] = around.add(std::move(v));
  }

  int add_input(int outside, const Spec& spec, std::vector<int>& operands) {
    graph_.inputs.push_back(graph_.add({.spec = spec}));
    operands.push_back(outside);
    return graph_.inputs.back();
  }

  /// The matrices `outside` with rows and columns exchanged.
  int turn(int outside, Spec spec, Graph& around, std::vector<int>& operands) {
    if (const auto known = turned_inputs_.find(outside); known != turned_inputs_.end()) return known->second;
    Shape order;
    for (int i = spec.shape.rank() - 1; i >= 0; --i) order.push_back(i < 2 ? 1 - i : i);
    const Spec source = spec;
    spec.shape.set(-1, source.shape[-2]);
    spec.shape.set(-2, source.shape[-1]);
    const int value = around.add({.op = AnyOp::of(Transpose{order}), .in = {outside}, .spec = spec});
    return turned_inputs_[outside] = add_input(value, spec, operands);
  }

  /// Inputs first, as operands have to be.
  void sort() {
    Graph sorted;
    GraphRewriter places(graph_, sorted);
    for (int i : graph_.inputs) places.keep(i);
    for (int i = 0; i < graph_.size(); ++i)
      if (!graph_[i].is_input()) places.keep(i);
    places.finish();
    graph_ = std::move(sorted);
  }

  Graph graph_;
  PerValue<Kind> kinds_;
  std::vector<int> wanted_;                  // values of the body
  std::vector<std::pair<int, int>> turned_;  // products and the operands that they read transposed
  std::map<int, int> outside_;               // by value of the body: its value around the loop
  std::map<int, int> turned_inputs_;         // by value around the loop
};

Region hoisted(const Region& region) {
  Graph graph = region.graph();
  hoist(graph);
  return Region(std::move(graph));
}

/// Loops of a graph, one by one.
class Hoister {
 public:
  explicit Hoister(const Graph& graph) : graph_(graph) {}
  Graph run() {
    GraphRewriter places(graph_, made_);
    for (int i = 0; i < graph_.size(); ++i) {
      Value v = places.renamed(i);
      if (v.op.is_control()) rewrite(v);
      places.replace(i, std::move(v));
    }
    places.finish();
    return std::move(made_);
  }

 private:
  struct Rewritten {
    AnyOp op;
    std::vector<int> in;
  };

  void rewrite(Value& v) {
    const auto [number, is_new] = applications_.find_or_add(v.op, v.in);
    if (is_new) {
      const AnyOp first = v.op.sibling(0);
      Rewritten made{first, v.in};
      if (const Cond* branch = first.as<Cond>()) rewrite(*branch, made);
      else if (const Scan* scan = first.as<Scan>()) rewrite(*scan, made);
      else if (const While* loop = first.as<While>()) rewrite(*loop, made);
      rewritten_.push_back(std::move(made));
    }
    const Rewritten& made = rewritten_[number];
    v.op = made.op.sibling(v.op.output());
    v.in = made.in;
  }
  void rewrite(Cond branch, Rewritten& made) {
    branch.if_true = hoisted(branch.if_true);
    branch.if_false = hoisted(branch.if_false);
    made.op = AnyOp::of(branch);
  }
  void rewrite(While loop, Rewritten& made) {
    loop.condition = hoisted(loop.condition);
    loop.body = hoisted(loop.body);
    made.op = AnyOp::of(loop);
  }
  void rewrite(Scan scan, Rewritten& made) {
    scan.body = hoisted(scan.body);
    if (scan.last) {
      scan.last = hoisted(scan.last);
    } else {
      Body body(scan.body.graph(), at(scan.first_whole() - scan.first_carry()));
      body.move_out(made_, made.in);
      if (body.changed()) scan.body = Region(body.take());
    }
    made.op = AnyOp::of(scan);
  }

  const Graph& graph_;
  Graph made_;
  Applications<int> applications_;
  Numbered<Rewritten> rewritten_;  // per application
};

}  // namespace

void hoist(Graph& graph) {
  if (std::ranges::any_of(graph.values, [](const Value& v) { return v.op.is_control(); })) graph = Hoister(graph).run();
}

}  // namespace gradus
