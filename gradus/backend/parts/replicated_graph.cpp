#include "gradus/backend/parts/replicated_graph.h"
#include <algorithm>
#include <map>
#include "gradus/base/error.h"
#include "gradus/graph/rewriter.h"
#include "gradus/ops/concat.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/shards_ops.h"
#include "gradus/ops/views.h"

namespace gradus {

ReplicaSlots::ReplicaSlots(const ShardRun& run) : shards_(run.replicas.size()) {
  for (std::size_t s = 0; s < run.shards.size(); ++s) {
    const ShardRun::Shard& shard = run.shards[s];
    std::vector<int>& own = shards_[at(shard.replica)];
    if (counts_.size() <= own.size()) counts_.push_back({});
    ++counts_[own.size()][at(shard.length)];
    own.push_back(static_cast<int>(s));
    lengths_.push_back(shard.length);
  }
  slots_ = static_cast<int>(counts_.size());
}

namespace {

using Input = ReplicatedGraph::Input;

class Replication {
 public:
  Replication(const Graph& whole, const ReplicaSlots& slots)
      : whole_(whole), slots_(slots), cut_(whole, no_exchanges_), common_(whole, made_.graph), own_(at(slots.slots())) {
    for (std::size_t k = 0; k < whole.inputs.size(); ++k) place_of_input_.emplace(whole.inputs[k], static_cast<int>(k));
  }

  ReplicatedGraph run() && {
    const std::vector<GraphPart> parts = cut_.parts();
    const std::vector<ShardSum> sums = cut_.sums();
    const int last = std::max(cut_.last_sum(), parts.empty() ? 0 : parts.back().key.stage);
    for (int stage = 0; stage <= last; ++stage) {
      for (const GraphPart& part : parts)
        if (part.key.stage == stage) take(part);
      for (const ShardSum& sum : sums)
        if (sum.stage == stage) join(sum);
    }
    for (const int output : whole_.outputs) hand_out(cut_.source_of(output));
    for (const int dying : whole_.dying) {
      const Input wanted{Input::Kind::whole, place_of_input_.at(dying)};
      const auto found = std::ranges::find(made_.inputs, wanted);
      if (found != made_.inputs.end()) graph().dying.push_back(graph().inputs[at(found - made_.inputs.begin())]);
    }
    return std::move(made_);
  }

 private:
  Graph& graph() { return made_.graph; }
  Spec spec(int place) { return graph()[place].spec; }
  int add(const AnyOp& op, std::vector<int> in) {
    std::vector<Spec> specs;
    for (const int i : in) specs.push_back(spec(i));
    const Spec result = op.infer(specs);
    return graph().add({.op = op, .in = std::move(in), .spec = result});
  }
  static Value zeros(const Spec& spec) { return {.spec = spec, .is_constant = true}; }

  // ---------------------------------------------------------------- existing values

  int input(const Input& wanted, const Spec& spec) {
    const auto known = std::ranges::find(made_.inputs, wanted);
    if (known != made_.inputs.end()) return graph().inputs[at(known - made_.inputs.begin())];
    made_.inputs.push_back(wanted);
    graph().inputs.push_back(graph().add({.spec = spec}));
    return graph().inputs.back();
  }
  int common(int i) {
    if (common_[i] < 0 && whole_[i].is_input())
      common_.set(i, input({Input::Kind::whole, place_of_input_.at(i)}, whole_[i].spec));
    if (common_[i] < 0 && whole_[i].is_constant) common_.keep(i);
    internal_check(common_[i] >= 0, "a value for all replicas is read before it is there");
    return common_[i];
  }
  int own(int slot, int i) {
    if (const OfShard* argument = op_as<OfShard>(whole_[i]))
      return input({Input::Kind::argument, argument->argument, slot, argument->length}, whole_[i].spec);
    return own_[at(slot)].at(i);
  }
  int is_there(int slot, int length) { return input({Input::Kind::is_there, 0, slot, length}, {boolean, {}}); }

  // ---------------------------------------------------------------- parts

  void take(const GraphPart& part) {
    if (part.key.place == for_all) {
      std::vector<int> given;
      for (const int i : part.inputs) given.push_back(common(i));
      const std::vector<int> results = in_place(part.graph, given);
      for (std::size_t k = 0; k < results.size(); ++k) common_.set(part.outputs[k], results[k]);
      return;
    }
    for (int slot = 0; slot < slots_.slots(); ++slot) {
      if (!slots_.has(slot, part.key.place)) continue;
      std::vector<int> given;
      for (const int i : part.inputs) given.push_back(cut_.length_of(i) < 0 ? common(i) : own(slot, i));
      const std::vector<int> results = slots_.all_have(slot, part.key.place)
                                           ? in_place(part.graph, given)
                                           : in_branch(part.graph, given, is_there(slot, part.key.place));
      for (std::size_t k = 0; k < results.size(); ++k) own_[at(slot)][part.outputs[k]] = results[k];
    }
  }
  std::vector<int> in_place(const Graph& part, const std::vector<int>& given) {
    GraphRewriter rewriter(part, graph());
    for (std::size_t k = 0; k < given.size(); ++k) rewriter.set(part.inputs[k], given[k]);
    for (int i = 0; i < part.size(); ++i)
      if (!part[i].is_input()) rewriter.keep(i);
    std::vector<int> results = part.outputs;
    rewriter.rename(results);
    return results;
  }
  std::vector<int> in_branch(const Graph& part, const std::vector<int>& given, int condition) {
    if (part.outputs.empty()) return {};
    Graph there = part, elsewhere;
    there.dying.clear();
    for (const int i : part.inputs) elsewhere.inputs.push_back(elsewhere.add({.spec = part[i].spec}));
    for (const int i : part.outputs) elsewhere.outputs.push_back(elsewhere.add(zeros(part[i].spec)));
    Cond branch{Region(std::move(there)), Region(std::move(elsewhere))};
    std::vector<int> in{condition}, results;
    in.insert(in.end(), given.begin(), given.end());
    for (std::size_t k = 0; k < part.outputs.size(); ++k) {
      branch.output = static_cast<int>(k);
      results.push_back(graph().add({.op = AnyOp::of(branch), .in = in, .spec = part[part.outputs[k]].spec}));
    }
    return results;
  }

  // ---------------------------------------------------------------- ops that join shards

  void join(const ShardSum& sum) {
    const AnyOp& op = whole_[sum.value].op;
    if (const AllReduce* reduce = op.as<AllReduce>()) common_.set(sum.value, sum_of(sum, *reduce));
    else if (const FromShard* from = op.as<FromShard>()) common_.set(sum.value, from_shard(sum, *from));
    else common_.set(sum.value, gathered(sum));
  }

  int sum_of(const ShardSum& sum, const AllReduce& reduce) {
    const DType type = whole_[sum.value].spec.dtype;
    const bool is_wide = (type == f16 || type == bf16) && !reduce.narrow;
    std::vector<int> parts;
    for (int slot = 0; slot < slots_.slots(); ++slot)
      for (const int part : sum.parts)
        if (slots_.has(slot, cut_.length_of(part))) parts.push_back(as(own(slot, part), is_wide ? f32 : type));
    static const AnyOp plus = parse_op("add", "");
    while (parts.size() > 1) {
      std::vector<int> next;
      for (std::size_t i = 0; i + 1 < parts.size(); i += 2) next.push_back(add(plus, {parts[i], parts[i + 1]}));
      if (parts.size() % 2 == 1) next.push_back(parts.back());
      parts = std::move(next);
    }
    return as(add(AnyOp::of(AllReduce{}), {parts.front()}), type);
  }
  int as(int value, DType type) {
    return spec(value).dtype == type ? value : add(parse_op("cast", text("to=", type)), {value});
  }

  /// Values of all shards of a length, contiguous along a first axis: those of the first replica first. `count`
  /// receives the number of values of a replica.
  int from_all(int part, bool is_row, int& count) {
    std::vector<int> rows;
    for (int slot = 0; slot < slots_.slots(); ++slot) {
      if (!slots_.has(slot, cut_.length_of(part))) continue;
      int value = own(slot, part);
      if (is_row) {
        Shape row = spec(value).shape;
        row.insert(0, 1);
        value = add(AnyOp::of(ReshapeOp{row}), {value});
      }
      rows.push_back(value);
    }
    count = static_cast<int>(rows.size());
    const int joined = concatenated(rows);
    return add(AnyOp::of(AllGather{.first = spec(joined).shape[0], .of_first = slots_.replicas()}), {joined});
  }
  int concatenated(const std::vector<int>& rows) {
    return rows.size() == 1 ? rows[0] : add(AnyOp::of(Concat{-spec(rows[0]).shape.rank()}), rows);
  }
  int rows_of(int all, std::int64_t begin, std::int64_t count) {
    Shape first, size = spec(all).shape;
    for (int axis = 0; axis < size.rank(); ++axis) first.push_back(axis == 0 ? begin : 0);
    size.set(0, count);
    return add(AnyOp::of(Slice{first, size}), {all});
  }

  struct Whereabouts {
    int length, place;  // among the values of all shards of this length
  };
  /// Where each shard lies, by number. `counts`: the number of values of either length that a replica gives.
  std::vector<Whereabouts> whereabouts(const std::array<int, 2>& counts) const {
    std::vector<Whereabouts> all;
    for (int replica = 0; replica < slots_.replicas(); ++replica) {
      std::array<int, 2> before{};
      for (int slot = 0; slot < slots_.slots(); ++slot) {
        if (slots_.shard(replica, slot) >= 0) {
          const int length = slots_.length(replica, slot);
          all.push_back({length, replica * counts[at(length)] + before[at(length)]});
        }
        for (const int length : {0, 1}) before[at(length)] += slots_.has(slot, length);
      }
    }
    return all;
  }

  struct OfAll {
    std::array<int, 2> counts{}, values{-1, -1};  // by length: the values of a replica, and that of all shards
  };
  OfAll of_all(const ShardSum& sum, bool is_row) {
    OfAll all;
    for (const int part : sum.parts) {
      const auto length = at(cut_.length_of(part));
      all.values[length] = from_all(part, is_row, all.counts[length]);
    }
    return all;
  }

  int gathered(const ShardSum& sum) {
    const auto [counts, all] = of_all(sum, false);
    const std::vector<Whereabouts> shards = whereabouts(counts);
    if (all[1] < 0 && std::ssize(shards) == slots_.replicas() * counts[0]) return all[0];
    std::vector<int> rows;
    for (const Whereabouts& each : shards) {
      const int from = all[at(each.length)];
      const std::int64_t count = spec(from).shape[0] / (slots_.replicas() * counts[at(each.length)]);
      rows.push_back(rows_of(from, each.place * count, count));
    }
    return concatenated(rows);
  }

  int from_shard(const ShardSum& sum, const FromShard& op) {
    const auto [counts, all] = of_all(sum, true);
    const Whereabouts root = whereabouts(counts)[at(op.place)];
    const int row = rows_of(all[at(root.length)], root.place, 1);
    return add(AnyOp::of(ReshapeOp{whole_[sum.value].spec.shape}), {row});
  }

  // ---------------------------------------------------------------- results

  void hand_out(int source) {
    ReplicatedGraph::Output& output = made_.outputs.emplace_back();
    output.length = cut_.length_of(source);
    const auto yield = [&](int value) {
      output.places.push_back(static_cast<int>(graph().outputs.size()));
      graph().outputs.push_back(value);
    };
    if (output.length < 0) return yield(common(source));
    for (int slot = 0; slot < slots_.slots(); ++slot) {
      if (slots_.has(slot, output.length)) yield(own(slot, source));
      else output.places.push_back(-1);
    }
  }

  const Graph& whole_;
  const ReplicaSlots& slots_;
  const Exchanges no_exchanges_;
  ShardCut cut_;
  ReplicatedGraph made_;
  std::map<int, int> place_of_input_;              // by value of the whole
  GraphRewriter common_;                           // values that all replicas share
  std::vector<std::unordered_map<int, int>> own_;  // by slot
};

}  // namespace

ReplicatedGraph replicated(const Graph& whole, const ReplicaSlots& slots) { return Replication(whole, slots).run(); }

}  // namespace gradus
