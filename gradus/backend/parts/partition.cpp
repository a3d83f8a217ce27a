#include "gradus/backend/parts/partition.h"
#include <map>

namespace gradus {

Partition::Partition(const Graph& graph, int home)
    : graph_(graph), home_(home), places_(graph, {.key = {0, home}}), origins_(graph) {
  for (int i = 0; i < graph.size(); ++i)
    origins_[i] = graph[i].op.is_copy() || joins_in(graph[i]) ? origins_[graph[i].in[0]] : i;
}

int Partition::source_of(int i) const {
  const Place& origin = places_[origins_[i]];
  return origin.is_anywhere || origin.key.place == places_[i].key.place ? origins_[i] : i;
}

void Partition::demand(int i) {
  Place& place = places_[i];
  place.is_output = true;
  if (!place.is_anywhere) return;
  place.is_computed = true;
  place.key = {0, home_};
}

/// Operands of other parts are outputs of these.
void Partition::note_uses(int i) {
  if (!places_[i].is_computed) return;
  for (const int operand : graph_[i].in) {
    const int read = origins_[operand];
    if (!graph_[read].is_input() && !places_[read].is_anywhere && places_[read].key != places_[i].key)
      places_[read].is_output = true;
  }
}

std::vector<GraphPart> Partition::parts(int last_exchange) {
  for (int i = 0; i < graph_.size(); ++i) note_uses(i);
  std::map<PartKey, std::vector<int>> members;
  for (int i = 0; i < graph_.size(); ++i)
    if (places_[i].is_computed) members[places_[i].key].push_back(i);
  std::vector<GraphPart> parts;
  for (const auto& [key, values] : members) {
    GraphPart& part = parts.emplace_back(key);
    GraphRewriter to(graph_, part.graph);
    for (const int i : values) {
      emit(part, to, i);
      if (!places_[i].is_output) continue;
      part.graph.outputs.push_back(to[i]);
      part.outputs.push_back(i);
    }
  }
  for (const int input : graph_.dying) let_die(input, parts, last_exchange);
  return parts;
}

/// Gives the part what stands for value `asked`.
void Partition::emit(GraphPart& part, GraphRewriter& to, int asked) const {
  const int i = origins_[asked];
  const Place& place = places_[i];
  const Value& v = graph_[i];
  const Spec plain{v.spec.dtype, v.spec.shape};
  if (to[i] < 0 && !place.is_anywhere && !(place.is_computed && place.key == part.key)) {
    part.inputs.push_back(i);
    part.graph.inputs.push_back(to.replace(i, {.spec = plain, .scope = v.scope}));
  } else if (to[i] < 0) {
    for (const int operand : v.in) emit(part, to, operand);
    if (v.op.varies(false)) to.set(i, to[v.in[0]]);  // the mark of a shard: a part is of one shard at a time
    else part.graph[to.keep(i)].spec = plain;
  }
  to.set(asked, to[i]);
}

/// The last part that reads an input may overwrite it where it is, if no other part reads it at that stage, and nothing
/// else may fail then or later: a call that fails changes nothing.
void Partition::let_die(int input, std::vector<GraphPart>& parts, int last_exchange) const {
  const auto place_in = [&](const GraphPart& part) { return std::ranges::find(part.inputs, input); };
  GraphPart* last = nullptr;
  for (GraphPart& part : parts) {
    if (place_in(part) == part.inputs.end()) continue;
    if (last && last->key.stage == part.key.stage) return;
    last = &part;
  }
  if (!last || places_[input].is_output) return;
  if (last->key.place != places_[input].key.place || last->key.stage <= last_exchange) return;
  for (const GraphPart& part : parts)
    if (&part != last && part.key.stage >= last->key.stage &&
        std::ranges::any_of(part.graph.values, [](const Value& v) { return v.op.may_fail(); }))
      return;
  last->graph.dying.push_back(last->graph.inputs[at(place_in(*last) - last->inputs.begin())]);
}

}  // namespace gradus
