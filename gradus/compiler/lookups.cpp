/// Chooses gathers that are read in place, and builds the graph in which they are. Decision 162 has the reasons.
#include "gradus/compiler/lookups.h"
#include <algorithm>
#include <map>
#include "gradus/compiler/late_copies.h"
#include "gradus/compiler/passes.h"
#include "gradus/ops/gather_ops.h"

namespace gradus {
namespace {

/// True if reading `v` from its source keeps no memory that a copy would set free: a dying input, which an output takes
/// over, or a temporary that is larger.
bool keeps_nothing(const Graph& graph, const Value& v) {
  const int source = storage_of(graph, v.in[0]);
  if (graph[source].is_input()) return std::ranges::count(graph.dying, source) == 0;
  return usual_bytes(graph[source].spec) <= usual_bytes(v.spec);
}

bool is_of_rows(const Graph& graph, const Value& v, const TargetModel& target) {
  const Gather* gather = v.op.as<Gather>();
  if (!gather) return false;
  const Spec& x = graph[v.in[0]].spec;
  return gather->axis == -x.shape.rank() && row_elements(x.shape) >= target.least_row_elements &&
         !is_computed_where_read(graph, storage_of(graph, v.in[0])) && keeps_nothing(graph, v);
}

/// Gathers that may be read in place: only formulas and reductions read them.
PerValue<bool> find_candidates(const Graph& graph, const TargetModel& target) {
  PerValue<bool> candidates(graph);
  for (int i = 0; i < graph.size(); ++i) candidates[i] = is_of_rows(graph, graph[i], target);
  const auto refuse = [&](int value) { candidates[storage_of(graph, value)] = false; };
  for (int o : graph.outputs) refuse(o);
  for (const Value& v : graph.values)
    if (!v.op.is_elementwise() && !v.op.is_reduction() && !is_plain_alias(v))
      for (int operand : v.in) refuse(operand);
  return candidates;
}

struct InPlace {
  Graph graph;
  PerValue<int> origin;  // the gather that it reads in place of; -1: none
};

/// Gathers that are `chosen`, and their aliases, become views.
InPlace read_in_place(const Graph& from, const PerValue<bool>& chosen) {
  Moved moved(from);
  PerValue<int> origin;
  std::map<std::pair<int, std::int64_t>, int> checks;  // by indices and limit
  const auto add = [&](Value v, int of) {
    origin.push_back(of);
    return moved.add(std::move(v), 0, 0);
  };
  const auto checked = [&](const Value& gather) {
    const std::int64_t limit = from[gather.in[0]].spec.shape[0];
    const int indices = moved.places[gather.in[1]];
    const auto [known, is_new] = checks.try_emplace({indices, limit}, -1);
    if (is_new) {
      Value check;
      check.op = AnyOp::of(CheckIndices{limit});
      check.in = {indices};
      check.spec = from[gather.in[1]].spec;
      check.scope = gather.scope;
      known->second = add(std::move(check), -1);
    }
    return known->second;
  };
  for (int i = 0; i < from.size(); ++i) {
    Value v = from[i];
    const int storage = storage_of(from, i);
    if (!chosen[storage]) {
      moved.places.rename(v.in);
      moved.places.set(i, add(std::move(v), -1));
      continue;
    }
    const Value& gather = from[storage];
    v.in = {moved.places[gather.in[0]], checked(gather)};
    v.op = AnyOp::of(IndexedRows{v.spec.shape});
    moved.places.set(i, add(std::move(v), storage));
  }
  moved.places.finish();
  return {std::move(moved.to.graph), std::move(origin)};
}

/// Gathers that would be read in place by several steps: these had better share a copy, and let go of the source.
std::vector<int> read_by_several(const InPlace& in_place, const std::vector<Step>& steps) {
  std::map<int, int> reader;
  std::vector<int> several;
  for (int s = 0; s < std::ssize(steps); ++s)
    for (const Read& read : reads_of(in_place.graph, steps[at(s)])) {
      const int gather = in_place.origin[read.operand];
      if (gather >= 0 && reader.try_emplace(gather, s).first->second != s) several.push_back(gather);
    }
  return several;
}

}  // namespace

void look_up_in_place(Graph& graph, const TargetModel& target) {
  PerValue<bool> chosen = find_candidates(graph, target);
  while (std::ranges::count(chosen, true) > 0) {
    InPlace in_place = read_in_place(graph, chosen);
    const std::vector<int> several = read_by_several(in_place, fuse(in_place.graph, true, {}, target));
    if (several.empty()) {
      graph = std::move(in_place.graph);
      return;
    }
    for (int gather : several) chosen[gather] = false;
  }
}

}  // namespace gradus
