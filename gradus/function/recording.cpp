/// Recording and comparing.
#include "gradus/function/recording.h"
#include <algorithm>
#include <cstring>
#include <functional>
#include "gradus/compiler/passes.h"
#include "gradus/compiler/pipeline.h"
#include "gradus/graph/evaluate.h"
#include "gradus/graph/region.h"
#include "gradus/ops/concat.h"

namespace gradus {
namespace {

Recording::Input input_of(const Trace& trace, const Ref<Node>& node) {
  Recording::Input input{trace.memory().source_of(*node), {}, nullptr};
  if (input.source.kind == Source::Kind::capture) input.node = node;
  for (const auto& cell : trace.cells())
    if (cell->parameter.node() == node) input.cell = cell->cell.get();
  return input;
}

std::string spelt(const Graph& graph, int i) {
  const Value& v = graph[i];
  if (v.is_constant) return text("a constant ", v.spec);
  return v.op ? text(v.op->name, " : ", v.spec) : text("an input ", v.spec);
}

Shape without_leading_ones(Shape shape) {
  while (shape.rank() > 0 && shape[0] == 1) shape.erase(0);
  return shape;
}

bool are_alike(const Spec& a, const Spec& b) {
  return a.dtype == b.dtype && without_leading_ones(a.shape) == without_leading_ones(b.shape);
}

/// How a view walks; where there is one element, the stride says nothing.
View walk_of(const Graph& graph, const Value& v) {
  const View view = v.op->view(v.op.attributes(), graph[v.in[0]].spec.shape, v.spec.shape);
  View walk{view.offset, {}, 0};
  Shape extents;
  for (int i = 0; i < v.spec.shape.rank(); ++i) {
    if (v.spec.shape[i] == 1) continue;
    if (view.backwards >> i & 1) walk.backwards |= 1u << extents.rank();
    extents.push_back(v.spec.shape[i]);
    walk.strides.push_back(view.strides[i]);
  }
  return walk;
}

/// True if the elements are those of the operand in their order.
bool changes_nothing(const Graph& graph, const Value& v) {
  if (v.in.size() != 1) return false;
  if (v.op.is_alias()) return true;
  const Shape& in = graph[v.in[0]].spec.shape;
  if (v.op.is_reduction()) return in[v.op.axis()] == 1;
  if (!v.op.is_view() || in.size() != v.spec.shape.size()) return false;
  Shape extents;
  for (const std::int64_t d : v.spec.shape)
    if (d != 1) extents.push_back(d);
  const View walk = walk_of(graph, v);
  return walk.offset == 0 && walk.backwards == 0 && walk.strides == dense_strides(extents);
}

/// The operands; of a concat those that have elements.
std::vector<int> operands_of(const Graph& graph, const Value& v) {
  std::vector<int> operands(v.in.begin(), v.in.end());
  if (v.op.as<Concat>()) std::erase_if(operands, [&](int i) { return graph[i].spec.shape.size() == 0; });
  return operands;
}

/// The attributes but for regions, which are printed within braces.
std::string attributes_besides_regions(const AnyOp& op) {
  std::string kept;
  int depth = 0;
  for (const char c : text(op)) {
    depth += c == '{';
    if (depth < 2) kept += c;
    depth -= c == '}';
  }
  return kept;
}

/// Two graphs, walked together from their outputs. Ops that library functions leave away where a size is 1, such as
/// broadcasts and sums, or where a part of several is empty, are overlooked, as are shapes where elements are taken one
/// by one.
class Comparison {
 public:
  using Same = std::function<bool(std::size_t a, std::size_t b)>;  // of inputs, by their numbers
  Comparison(Graph open, Graph known, Same same)
      : open_(std::move(open)), known_(std::move(known)), same_(std::move(same)) {
    for (Graph* graph : {&open_, &known_}) run_graph_passes(*graph, {});
    for (std::size_t k = 0; k < open_.inputs.size(); ++k) open_inputs_[open_.inputs[k]] = k;
    for (std::size_t k = 0; k < known_.inputs.size(); ++k) known_inputs_[known_.inputs[k]] = k;
  }

  /// Empty: they are the same.
  std::string run() {
    if (open_.outputs.size() != known_.outputs.size()) return "it returns or assigns something else";
    for (std::size_t k = 0; k < open_.outputs.size(); ++k) {
      const int a = open_.outputs[k], b = known_.outputs[k];
      if (open_[a].spec != known_[b].spec) return how(a, b);
      stack_.emplace_back(a, b);
    }
    while (!stack_.empty()) {
      const auto [a, b] = stack_.back();
      stack_.pop_back();
      if (!step(source(open_, a), source(known_, b))) return how(a, b);
    }
    return {};
  }

 private:
  std::string how(int a, int b) const {
    return text(spelt(known_, b), " with the sizes known, ", spelt(open_, a), " without");
  }
  /// The operand whose value `v` hands on; -1: none.
  static int operand_of_same_value(const Graph& graph, const Value& v) {
    if (!v.op) return -1;
    if (changes_nothing(graph, v)) return v.in[0];
    if (const std::optional<int> operand = operand_passed_on(graph, v)) return *operand;
    if (!v.op.as<Concat>()) return -1;
    const std::vector<int> parts = operands_of(graph, v);
    return parts.size() == 1 ? parts[0] : -1;
  }
  static int source(const Graph& graph, int i) {
    for (int next = i; next >= 0;) {  // operands stand before their readers
      i = next;
      next = operand_of_same_value(graph, graph[i]);
    }
    return i;
  }

  bool step(int a, int b) {
    if (!met_.emplace(a, b).second) return true;
    const Value &x = open_[a], &y = known_[b];
    if (x.spec.dtype != y.spec.dtype || x.spec.shape.size() != y.spec.shape.size()) return false;
    if (x.spec.shape.size() == 0) return true;
    if (x.is_constant || y.is_constant) return x.is_constant && y.is_constant && x.constant == y.constant;
    if (x.is_input() || y.is_input())
      return x.is_input() && y.is_input() && same_(open_inputs_.at(a), known_inputs_.at(b));
    const std::vector<int> of_x = operands_of(open_, x), of_y = operands_of(known_, y);
    if (of_x.size() != of_y.size() || !same_op(x, of_x, y, of_y)) return false;
    for (std::size_t i = 0; i < of_x.size(); ++i) stack_.emplace_back(of_x[i], of_y[i]);
    return true;
  }

  bool same_op(const Value& x, const std::vector<int>& of_x, const Value& y, const std::vector<int>& of_y) const {
    if (x.op.is_view() && y.op.is_view()) {
      const View a = walk_of(open_, x), b = walk_of(known_, y);
      return a.offset == b.offset && a.strides == b.strides && a.backwards == b.backwards;
    }
    if (x.op != y.op && !same_but_in_regions(x.op, y.op)) return false;
    if (x.op.is_elementwise()) return true;
    for (std::size_t i = 0; i < of_x.size(); ++i)
      if (!are_alike(open_[of_x[i]].spec, known_[of_y[i]].spec)) return false;
    return are_alike(x.spec, y.spec);
  }

  static bool same_but_in_regions(const AnyOp& x, const AnyOp& y) {
    const auto a = x.regions(), b = y.regions();
    if (a.empty() || a.size() != b.size() || attributes_besides_regions(x) != attributes_besides_regions(y))
      return false;
    for (std::size_t k = 0; k < a.size(); ++k) {
      if (static_cast<bool>(*a[k]) != static_cast<bool>(*b[k])) return false;
      if (*a[k] && (a[k]->inputs() != b[k]->inputs() ||
                    !Comparison(a[k]->graph(), b[k]->graph(), std::equal_to<>()).run().empty()))
        return false;
    }
    return true;
  }

  Graph open_, known_;
  const Same same_;
  std::set<std::pair<int, int>> met_;
  std::unordered_map<int, std::size_t> open_inputs_, known_inputs_;
  std::vector<std::pair<int, int>> stack_;
};

bool same_input(const Recording::Input& a, const Recording::Input& b) {
  if (a.source.kind != b.source.kind) return false;
  if (a.source.kind == Source::Kind::cell) return a.cell == b.cell;
  if (a.source.kind != Source::Kind::capture) return a.source.index == b.source.index;
  if (a.node == b.node) return true;
  return std::memcmp(Tensor(a.node).host(), Tensor(b.node).host(), static_cast<std::size_t>(bytes_of(a.node->spec))) ==
         0;
}

}  // namespace

Recording record(const Trace& trace, const Called& called) {
  Recording made{.lengths = called.lengths, .applications = trace.applications(), .choices = trace.choices()};
  std::vector<Ref<Node>> roots;
  for (const Trace::Guard& guard : trace.guards()) {
    roots.push_back(guard.predicate.node());
    made.ways.push_back(guard.taken);
  }
  for (const Tensor& result : called.tensors) {
    made.results.push_back(result.defined());
    if (result.defined()) roots.push_back(result.node());
  }
  for (const auto& cell : trace.cells()) {
    if (!cell->assigned) continue;
    made.assigned.push_back(cell->cell.get());
    roots.push_back(cell->now.node());
  }
  Flattened flat = flatten(roots, [&](const Node& node) { return node.trace != trace.memory().id(); });
  made.graph = std::move(flat.graph);
  for (const Ref<Node>& node : flat.inputs) made.inputs.push_back(input_of(trace, node));
  return made;
}

bool has_other_symbols(const Graph& graph, std::size_t symbols) {
  return std::ranges::any_of(graph.values, [&](const Value& v) {
    return std::ranges::any_of(v.spec.shape, [&](std::int64_t d) {
      return dimension::is_symbolic(d) && static_cast<std::size_t>(dimension::symbols_in(d)) > symbols;
    });
  });
}

std::string difference(const Recording& open, std::span<const std::int64_t> symbols, const Recording& known) {
  if (open.ways != known.ways) return "C++ branches on tensor values go another way";
  if (open.results != known.results || open.assigned != known.assigned || open.lengths != known.lengths)
    return "it returns or assigns something else";
  const auto same = [&](std::size_t a, std::size_t b) { return same_input(open.inputs[a], known.inputs[b]); };
  Graph graph = evaluated(open.graph, symbols);
  if (graph == known.graph) {  // as it mostly is; so no pass has to run
    std::size_t k = 0;
    while (k < known.inputs.size() && same(k, k)) ++k;
    if (k == known.inputs.size()) return {};
  }
  return Comparison(std::move(graph), known.graph, same).run();
}

bool SizesSeen::contains(const std::vector<std::int64_t>& sizes) const {
  std::shared_lock lock(guard_);
  return seen_.contains(sizes);
}

void SizesSeen::insert(const std::vector<std::int64_t>& sizes) {
  std::unique_lock lock(guard_);
  if (seen_.size() >= most) seen_.clear();
  seen_.insert(sizes);
}

}  // namespace gradus
