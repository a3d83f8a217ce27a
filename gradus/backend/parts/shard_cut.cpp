#include "gradus/backend/parts/shard_cut.h"
#include <algorithm>
#include "gradus/base/divide.h"
#include "gradus/base/error.h"
#include "gradus/ops/shards_ops.h"

namespace gradus {

bool is_gathered(const Exchanges& exchanges, int value) {
  const auto found = exchanges.find(value);
  return found != exchanges.end() && found->second.gathers;
}

ShardCut::ShardCut(const Graph& graph, const Exchanges& exchanges) : Partition(graph, for_all), depths_(graph) {
  for (int i = 0; i < graph.size(); ++i) place(i, exchanges);
  for (const int output : graph.outputs) demand(origin_of(output));
  for (const auto& [value, sum] : sums_)
    for (const int part : sum.parts) demand(part);
  delay_common(exchanges);
}

std::vector<ShardSum> ShardCut::sums() const {
  std::vector<ShardSum> all;
  for (const auto& [value, sum] : sums_) all.push_back(sum);
  std::ranges::stable_sort(all, {},
                           [this](const ShardSum& sum) { return std::pair{depths_[sum.parts[0]], sum.parts[0]}; });
  return all;
}

int ShardCut::last_sum() const {
  int last = -1;
  for (const auto& [value, sum] : sums_) last = std::max(last, sum.stage);
  return last;
}

void ShardCut::place(int i, const Exchanges& exchanges) {
  const Value& v = graph_[i];
  Place& here = (*this)[i];
  require(!v.spec.device.is_named(), "within a step that a strategy runs, ", v.spec, " is on a device of its own; ",
          "the strategy says where shards are computed: leave DeviceScope and .to() out of the step, and make its "
          "Variables outside of a DeviceScope");
  const bool is_exchange = is_gathered(exchanges, i);
  if (v.is_input() && !is_exchange) return;
  if (const OfShard* argument = op_as<OfShard>(v)) {
    here.key = {1, argument->length};
    return;
  }
  if (joins_in(v)) {
    ShardSum& sum = sums_.at(origin_of(i));
    sum.parts.push_back(v.in[1]);
    sum.stage = std::max(sum.stage, (*this)[v.in[1]].key.stage);
    return;
  }
  if (is_exchange || v.op.joins_shards()) {
    const int part = v.in[0], stage = (*this)[part].key.stage;
    sums_[i] = {i, stage, {part}};
    here.key.stage = round_up(stage + 1, 2);
    return;
  }
  here.is_anywhere = true;
  for (const int operand : v.in) {
    here.is_anywhere = here.is_anywhere && (*this)[operand].is_anywhere;
    here.key.place = std::max(here.key.place, length_of(operand));
  }
  if (const OnShard* own = op_as<OnShard>(v)) here.key.place = own->length;
  here.is_anywhere = here.is_anywhere && here.key.place == for_all;
  if (here.is_anywhere) return;
  here.is_computed = true;
  const int parity = here.key.place == for_all ? 0 : 1;
  here.key.stage = parity;
  for (const int given : v.in) {
    const int operand = origin_of(given), length = length_of(operand);
    if ((*this)[operand].is_anywhere) continue;
    internal_check(length == for_all || length == here.key.place, "a value of shards of both lengths: ", v.op);
    const int after = (*this)[operand].key.stage;
    here.key.stage = std::max(here.key.stage, after % 2 == parity ? after : after + 1);
    if (length != for_all) depths_[i] = std::max(depths_[i], depths_[operand] + 1);
  }
}

/// Values for all shards are computed as late as they are read, so that little is done before the shards begin.
void ShardCut::delay_common(const Exchanges& exchanges) {
  int last = 0;
  for (int i = 0; i < graph_.size(); ++i)
    if (length_of(i) == for_all) last = std::max(last, (*this)[i].key.stage);
  const auto may_wait = [&](int i) {
    const Place& here = (*this)[i];
    return here.is_computed && !here.is_anywhere && here.key.place == for_all;
  };
  const auto reads_at = [&](int i) -> std::optional<int> {
    const Place& here = (*this)[i];
    if (is_gathered(exchanges, i)) return sums_.at(i).stage;
    if (!here.is_computed) return {};
    return here.key.place == for_all ? here.key.stage : here.key.stage - 1;
  };
  delay(may_wait, reads_at, last);
}

}  // namespace gradus
