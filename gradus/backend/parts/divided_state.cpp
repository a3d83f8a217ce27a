/// Values that meet in a formula of their elements form a class, whose values are cut at the same places. A class that
/// assigns state is divided. Its values are gathered for all other readers.
#include "gradus/backend/parts/divided_state.h"
#include <algorithm>
#include <limits>
#include <map>
#include "gradus/backend/parts/partition.h"
#include "gradus/base/divide.h"
#include "gradus/compiler/loops.h"
#include "gradus/graph/rewriter.h"
#include "gradus/ops/concat.h"
#include "gradus/ops/shards_ops.h"
#include "gradus/ops/views.h"

namespace gradus {
namespace {

template <class Op> bool is(const Value& v) { return v.op && v.op.as<Op>(); }

/// The divided values of a graph, and their cuts.
class Division {
 public:
  Division(const Graph& graph, int ranks)
      : graph_(graph), ranks_(ranks), varies_(graph), parent_(graph), divides_(graph), is_whole_(graph) {
    for (int i = 0; i < graph.size(); ++i) parent_[i] = i;
    for (int i = 0; i < graph.size(); ++i) look_at(i);
    keep_classes_with_state();
    find_readers();
    cut();
  }

  /// True if it is computed of parts.
  bool divides(int i) const { return divides_[i]; }
  /// True if an op reads the whole of a divided value.
  bool is_wanted_whole(int i) const { return is_whole_[i]; }
  /// True of an input that is read by its part alone.
  bool is_part(int i) const { return graph_[i].is_input() && takes_part_[i] && !is_whole_[i]; }
  const Cuts& cuts_of(int i) const { return cuts_.at(root(i)); }
  /// The divided value that `i` reduces over all elements, or -1.
  int reduced_by(int i) const { return is_reduction_of_all(i) ? graph_[i].in[0] : -1; }
  int sum_of(int i) const {
    while (joins_in(graph_[i])) i = graph_[i].in[0];
    return i;
  }

 private:
  int root(int i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  void join(int i, int j) {
    i = root(i), j = root(j);
    parent_[std::max(i, j)] = std::min(i, j);
  }

  void look_at(int i) {
    const Value& v = graph_[i];
    if (!v.op) return;
    bool any_varies = false;
    for (const int operand : v.in) any_varies = any_varies || varies_[operand];
    varies_[i] = v.op.varies(any_varies);
    if (varies_[i] || joins_in(v) || v.spec.shape.is_symbolic() || v.spec.shape.size() < 2) return;
    if (is<AllReduce>(v)) {
      divides_[i] = true;
      return;
    }
    if (!v.op.is_elementwise() && !is<ReshapeOp>(v) && !is<Divisible>(v)) return;
    for (const int given : v.in) {
      const int operand = sum_of(given);
      if (!divides_[operand]) continue;
      divides_[i] = true;
      join(i, operand);
    }
  }

  void keep_classes_with_state() {
    PerValue<bool> has_state(graph_);
    for (const int output : graph_.outputs)
      if (is<Divisible>(graph_[output]) && divides_[output]) has_state[root(output)] = true;
    for (int i = 0; i < graph_.size(); ++i) divides_[i] = divides_[i] && has_state[root(i)];
  }

  /// Rows of the numeric contract: along all elements, whose partial results are of the type of the values.
  bool is_reduction_of_all(int i) const {
    const Value& v = graph_[i];
    if (!v.op || !v.op.is_reduction() || v.op.axis() != -1 || !divides_[v.in[0]]) return false;
    const Spec& of = graph_[v.in[0]].spec;
    return of.shape[of.shape.rank() - 1] == of.shape.size() && computed_in(of.dtype) == of.dtype;
  }

  /// True if all readers of an input so far are of this class.
  bool is_of_class(int input, int of) { return class_of_input_.try_emplace(input, of).first->second == of; }

  void find_readers() {
    takes_part_ = PerValue<bool>(graph_);
    for (int i = 0; i < graph_.size(); ++i) {
      if (joins_in(graph_[i])) {
        is_whole_[graph_[i].in[1]] = true;
        continue;
      }
      for (const int given : graph_[i].in) {
        const int operand = sum_of(given);
        const bool by_parts = (divides_[i] && !is<AllReduce>(graph_[i])) || is_reduction_of_all(i);
        if (!by_parts || (graph_[operand].is_input() && !is_of_class(operand, root(i)))) is_whole_[operand] = true;
        else takes_part_[operand] = true;
      }
    }
    for (const int output : graph_.outputs)
      if (!is<Divisible>(graph_[output]) && !joins_in(graph_[output])) is_whole_[output] = true;
    // A sum that is read as a whole is one: to gather its parts would take as long.
    for (int i = 0; i < graph_.size(); ++i)
      if (is<AllReduce>(graph_[i]) && is_whole_[i]) divides_[i] = false;
  }

  /// Ranks that have least so far get the blocks that cannot be divided evenly. In the order of inputs, which does not
  /// depend on how many lengths shards have: so slots are cut at the same places in all programs of one step.
  void cut() {
    std::map<int, int> first_input;  // of each class; those without one come last, in their order
    for (int i = 0; i < graph_.size(); ++i)
      if (divides_[i]) first_input.try_emplace(root(i), std::numeric_limits<int>::max());
    for (std::size_t k = 0; k < graph_.inputs.size(); ++k)
      if (const auto of = class_of_input_.find(graph_.inputs[k]); of != class_of_input_.end()) {
        int& first = first_input.at(of->second);
        first = std::min(first, static_cast<int>(k));
      }
    std::vector<std::pair<int, int>> order;
    for (const auto& [of, first] : first_input) order.emplace_back(first, of);
    std::ranges::sort(order);
    std::vector<std::int64_t> load(static_cast<std::size_t>(ranks_));
    for (const auto& [first, of] : order) {
      const auto least = std::ranges::min_element(load) - load.begin();
      const Cuts cuts = block_cuts(graph_[of].spec.shape.size(), ranks_, row_block, static_cast<int>(least));
      for (std::size_t rank = 0; rank < load.size(); ++rank) load[rank] += cuts[rank + 1] - cuts[rank];
      cuts_[of] = cuts;
    }
  }

  const Graph& graph_;
  const int ranks_;
  PerValue<bool> varies_;
  PerValue<int> parent_;
  PerValue<bool> divides_, is_whole_, takes_part_;
  std::map<int, int> class_of_input_;
  std::map<int, Cuts> cuts_;  // by root
};

/// Makes the graph of one rank.
class Divider {
 public:
  Divider(const Graph& graph, int rank, int ranks)
      : from_(graph),
        rank_(static_cast<std::size_t>(rank)),
        division_(graph, ranks),
        whole_(graph, made_.graph),
        part_(graph, made_.graph) {}

  DividedGraph run() {
    for (int i = 0; i < from_.size(); ++i) take(i);
    for (std::size_t k = 0; k < from_.inputs.size(); ++k) {
      const int input = from_.inputs[k];
      const bool is_part = division_.is_part(input);
      made_.graph.inputs.push_back((is_part ? part_ : whole_)[input]);
      made_.inputs.push_back(is_part ? cuts_of_input_.at(input) : Cuts());
    }
    for (const int output : from_.outputs) {
      const int of = division_.sum_of(output);
      const bool is_part = division_.divides(of) && !division_.is_wanted_whole(output);
      made_.graph.outputs.push_back(is_part ? part_[output] : whole(output));
      made_.outputs.push_back(is_part ? division_.cuts_of(of) : Cuts());
    }
    for (const int input : from_.dying) made_.graph.dying.push_back((division_.is_part(input) ? part_ : whole_)[input]);
    return std::move(made_);
  }

 private:
  Graph& to() { return made_.graph; }
  std::int64_t begin_of(const Cuts& cuts) const { return cuts[rank_]; }
  std::int64_t size_of(const Cuts& cuts) const { return cuts[rank_ + 1] - cuts[rank_]; }
  static Spec flat(const Spec& spec, std::int64_t size) { return {spec.dtype, {size}, spec.device}; }
  int add(AnyOp op, std::vector<int> in, DType dtype, const Shape& shape) {
    return to().add({.op = std::move(op), .in = std::move(in), .spec = {dtype, shape}, .scope = scope_});
  }
  DType type(int value) const { return made_.graph[value].spec.dtype; }
  int reshaped(int value, const Shape& shape) {
    return made_.graph[value].spec.shape == shape ? value
                                                  : add(AnyOp::of(ReshapeOp{shape}), {value}, type(value), shape);
  }
  int slice(int flat_value, std::int64_t begin, std::int64_t size) {
    if (begin == 0 && size == made_.graph[flat_value].spec.shape[0]) return flat_value;
    return add(AnyOp::of(Slice{{begin}, {size}}), {flat_value}, type(flat_value), {size});
  }

  void take(int i) {
    const Value& v = from_[i];
    scope_ = v.scope;
    if (v.is_input()) {
      (division_.is_part(i) ? part_ : whole_).keep(i);  // its class is known when the first of its readers is met
      return;
    }
    if (joins_in(v)) return take_join(i);
    if (division_.divides(i)) return take_divided(i);
    if (const int of = division_.reduced_by(i); of >= 0) return take_reduction(i, of);
    Value same = v;
    for (int& operand : same.in) operand = whole(operand);
    whole_.replace(i, std::move(same));
  }

  void take_join(int i) {
    const int sum = division_.sum_of(i);
    const bool divides = division_.divides(sum);
    Value same = from_[i];
    same.in = {(divides ? part_ : whole_)[sum], whole(from_[i].in[1])};
    same.spec = to()[same.in[0]].spec;
    (divides ? part_ : whole_).replace(i, std::move(same));
  }

  void take_divided(int i) {
    const Value& v = from_[i];
    const Cuts& cuts = division_.cuts_of(i);
    if (is<AllReduce>(v)) {
      made_.exchanges[take_flat(i, {whole(v.in[0])})] = {cuts, false, v.spec};
      return;
    }
    if (is<ReshapeOp>(v) || is<Divisible>(v)) {
      part_.set(i, part(v.in[0], cuts));
      return;
    }
    std::vector<int> in;
    for (const int operand : v.in) in.push_back(part(operand, cuts));
    take_flat(i, std::move(in));
  }
  /// This rank's elements of value i, computed by its op from those in `in`.
  int take_flat(int i, std::vector<int> in) {
    const Spec spec = flat(from_[i].spec, size_of(division_.cuts_of(i)));
    return part_.replace(i, {.op = from_[i].op, .in = std::move(in), .spec = spec, .scope = from_[i].scope});
  }

  /// This rank's elements of value i.
  int part(int given, const Cuts& cuts) {
    const int i = division_.sum_of(given);
    const Value& v = from_[i];
    if (division_.is_part(i)) {
      const auto [known, is_new] = cuts_of_input_.try_emplace(i, cuts);
      if (is_new) to()[part_[i]].spec = flat(v.spec, size_of(cuts));
      return part_[i];
    }
    if (division_.divides(i)) return part_[i];
    if (v.is_constant) {
      Value same = v;
      same.spec = flat(v.spec, size_of(cuts));
      return to().add(std::move(same));
    }
    const auto key = std::pair(i, begin_of(cuts));
    if (const auto known = parts_of_whole_.find(key); known != parts_of_whole_.end()) return known->second;
    if (is<Broadcast>(v) && from_[v.in[0]].spec.shape.size() == 1) {
      const int one = reshaped(whole(v.in[0]), {1});
      return parts_of_whole_[key] = add(AnyOp::of(Broadcast{{size_of(cuts)}}), {one}, v.spec.dtype, {size_of(cuts)});
    }
    const int all = reshaped(whole(i), {v.spec.shape.size()});
    return parts_of_whole_[key] = slice(all, begin_of(cuts), size_of(cuts));
  }

  /// The whole of value i, gathered if need be.
  int whole(int given) {
    const int i = division_.sum_of(given);
    if (whole_[i] >= 0) return whole_[i];
    const Spec& spec = from_[i].spec;
    return whole_.set(i, gathered(part_[i], division_.cuts_of(i), spec));
  }
  int gathered(int part, const Cuts& cuts, const Spec& spec) {
    const int all = to().add({.op = {}, .in = {part}, .spec = spec, .scope = scope_});
    made_.exchanges[all] = {cuts, true, spec};
    return all;
  }

  /// Each rank reduces the blocks that it has; all of them reduce the results of all blocks.
  void take_reduction(int i, int of) {
    const Value& v = from_[i];
    const Cuts& cuts = division_.cuts_of(of);
    const std::int64_t size = size_of(cuts), blocks = size / row_block, rest = size % row_block;
    const int own = part_[of];
    const DType dtype = v.spec.dtype;
    std::vector<int> results;
    if (blocks > 0) {
      const int rows = reshaped(slice(own, 0, blocks * row_block), {blocks, row_block});
      results.push_back(reshaped(add(v.op, {rows}, dtype, {blocks, 1}), {blocks}));
    }
    if (rest > 0) results.push_back(add(v.op, {slice(own, blocks * row_block, rest)}, dtype, {1}));
    if (results.empty()) results.push_back(slice(own, 0, 0));
    const std::int64_t made = blocks + (rest > 0);
    const int joined = results.size() == 1 ? results[0] : add(AnyOp::of(Concat{}), results, dtype, {made});
    Cuts of_blocks;
    for (const std::int64_t cut : cuts) of_blocks.push_back(divide_up(cut, row_block));
    const std::int64_t all = of_blocks.back();
    const int gathered_blocks = gathered(joined, of_blocks, {dtype, {all}});
    const int result = all > 1 ? add(v.op, {gathered_blocks}, dtype, {1}) : gathered_blocks;
    whole_.set(i, reshaped(result, v.spec.shape));
  }

  const Graph& from_;
  const std::size_t rank_;
  const Division division_;
  DividedGraph made_;
  GraphRewriter whole_, part_;  // a value may have both
  std::map<int, Cuts> cuts_of_input_;
  std::map<std::pair<int, std::int64_t>, int> parts_of_whole_;
  std::uint32_t scope_ = 0;
};

}  // namespace

DividedGraph divide_state(const Graph& graph, int rank, int ranks) { return Divider(graph, rank, ranks).run(); }

}  // namespace gradus
