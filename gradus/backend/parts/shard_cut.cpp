#include "gradus/backend/parts/shard_cut.h"
#include <algorithm>
#include "gradus/backend/parts/sharded_program.h"
#include "gradus/base/divide.h"
#include "gradus/base/error.h"
#include "gradus/ops/shards_ops.h"

namespace gradus {

bool is_gathered(const Exchanges& exchanges, int value) {
  const auto found = exchanges.find(value);
  return found != exchanges.end() && found->second.gathers;
}

ShardCut::ShardCut(const Graph& graph, const Exchanges& exchanges)
    : graph_(graph), exchanges_(exchanges), places_(graph) {
  for (int i = 0; i < graph.size(); ++i) place(i);
  for (const int output : graph.outputs) need(source_of(output));
  for (const auto& [value, sum] : sums_)
    for (const int part : sum.parts) need(part);
  delay();
  for (int i = 0; i < graph.size(); ++i) note_uses(i);
  for (int i = 0; i < graph.size(); ++i)
    if (of(i).is_member) members_[{of(i).time, of(i).length}].push_back(i);
}

std::vector<ShardPart> ShardCut::parts() {
  std::vector<ShardPart> all;
  for (const auto& [key, members] : members_) all.push_back(part(key, members));
  for (const int input : graph_.dying) let_die(input, all);
  return all;
}

std::vector<ShardSum> ShardCut::sums() const {
  std::vector<ShardSum> all;
  for (const auto& [value, sum] : sums_) all.push_back(sum);
  std::ranges::stable_sort(all, {},
                           [this](const ShardSum& sum) { return std::pair{of(sum.parts[0]).depth, sum.parts[0]}; });
  return all;
}

int ShardCut::source_of(int i) const {
  while (joins_in(graph_[i])) i = graph_[i].in[0];
  return i;
}

void ShardCut::place(int i) {
  const Value& v = graph_[i];
  Place& here = of(i);
  require(!v.spec.device.is_named(), "within a step that a strategy runs, ", v.spec, " is on a device of its own; ",
          "the strategy says where shards are computed: leave DeviceScope and .to() out of the step, and make its "
          "Variables outside of a DeviceScope");
  const bool is_exchange = is_gathered(exchanges_, i);
  if (v.is_input() && !is_exchange) return;
  if (const OfShard* argument = op_as<OfShard>(v)) {
    here.length = argument->length;
    here.time = 1;
    return;
  }
  if (joins_in(v)) {
    ShardSum& sum = sums_.at(source_of(i));
    sum.parts.push_back(v.in[1]);
    sum.time = std::max(sum.time, of(v.in[1]).time);
    return;
  }
  if (is_exchange || v.op.joins_shards()) {
    const int part = v.in[0];
    sums_[i] = {i, of(part).time, {part}};
    here.time = round_up(of(part).time + 1, 2);
    return;
  }
  bool is_anywhere = true;
  for (const int operand : v.in) {
    is_anywhere = is_anywhere && of(operand).is_anywhere;
    here.length = std::max(here.length, of(operand).length);
  }
  if (const OnShard* own = op_as<OnShard>(v)) here.length = own->length;
  here.is_anywhere = is_anywhere && here.length < 0;
  if (here.is_anywhere) return;
  here.is_member = true;
  const int parity = here.length < 0 ? 0 : 1;
  here.time = parity;
  for (const int given : v.in) {
    const int operand = source_of(given);
    if (of(operand).is_anywhere) continue;
    internal_check(of(operand).length < 0 || of(operand).length == here.length,
                   "a value of shards of both lengths: ", v.op);
    const int after = of(operand).time;
    here.time = std::max(here.time, after % 2 == parity ? after : after + 1);
    if (of(operand).length >= 0) here.depth = std::max(here.depth, of(operand).depth + 1);
  }
}

/// Marks an output, or an addend of a sum.
void ShardCut::need(int i) {
  of(i).is_output = true;
  if (of(i).is_anywhere) of(i).is_member = true;
}

/// Values for all shards are computed as late as they are read, so that little is done before the shards begin.
void ShardCut::delay() {
  int last = 0;
  for (const Place& place : places_)
    if (place.length < 0) last = std::max(last, place.time);
  for (int i = graph_.size(); i-- > 0;) {
    Place& here = of(i);
    if (is_gathered(exchanges_, i)) {  // its part is needed at its time
      Place& part = of(source_of(graph_[i].in[0]));
      part.latest = part.latest < 0 ? sums_.at(i).time : std::min(part.latest, sums_.at(i).time);
    }
    if (here.is_member && here.length < 0 && !here.is_anywhere)
      here.time = std::max(here.time, here.latest >= 0 ? here.latest : last);
    if (!here.is_member) continue;
    for (const int given : graph_[i].in) {
      Place& operand = of(source_of(given));
      const int needed = here.length < 0 ? here.time : here.time - 1;
      operand.latest = operand.latest < 0 ? needed : std::min(operand.latest, needed);
    }
  }
}

void ShardCut::note_uses(int i) {
  if (!of(i).is_member) return;
  for (const int given : graph_[i].in) {
    const int operand = source_of(given);
    const bool is_made = !graph_[operand].is_input() && !of(operand).is_anywhere;
    if (is_made && Key{of(operand).time, of(operand).length} != Key{of(i).time, of(i).length})
      of(operand).is_output = true;
  }
}

ShardPart ShardCut::part(const Key& key, const std::vector<int>& members) const {
  ShardPart made{.time = key.first, .length = key.second};
  std::unordered_map<int, int> local;
  for (const int i : members) {
    const int here = add(made, local, key, i);
    if (!of(i).is_output) continue;
    made.graph.outputs.push_back(here);
    made.outputs.push_back(i);
  }
  return made;
}
int ShardCut::add(ShardPart& part, std::unordered_map<int, int>& local, const Key& key, int asked) const {
  const int i = source_of(asked);
  if (const auto known = local.find(i); known != local.end()) return known->second;
  const Value& v = graph_[i];
  const bool is_here = of(i).is_anywhere || (of(i).is_member && Key{of(i).time, of(i).length} == key);
  if (!is_here) {
    part.inputs.push_back(i);
    part.graph.inputs.push_back(part.graph.add({.spec = v.spec, .scope = v.scope}));
    return local[i] = part.graph.inputs.back();
  }
  Value made = v;
  made.in.clear();
  for (const int operand : v.in) made.in.push_back(add(part, local, key, operand));
  if (op_as<OnShard>(v)) return local[i] = made.in[0];
  return local[i] = part.graph.add(std::move(made));
}

/// The last part that reads an input may overwrite it, if it is the one that is for all, and nothing, no exchange
/// either, can fail then or later: a call that fails changes nothing.
void ShardCut::let_die(int input, std::vector<ShardPart>& all) const {
  if (of(input).is_output || all.empty()) return;
  ShardPart& last = all.back();
  if (std::ranges::any_of(sums_, [&](const auto& entry) { return entry.second.time >= last.time; })) return;
  const bool is_read = std::ranges::find(last.inputs, input) != last.inputs.end();
  if (!last.is_for_all() || !is_read) return;
  if (std::ranges::any_of(last.graph.values, [](const Value& v) { return v.op.may_fail(); })) return;
  const auto place = std::ranges::find(last.inputs, input) - last.inputs.begin();
  last.graph.dying.push_back(last.graph.inputs[at(place)]);
}

}  // namespace gradus
