/// The cut of a graph of shards at the sums over them.
///
/// A stage counts the phases before it: values that all shards share are computed at even stages, those that differ at
/// odd ones. A sum that is complete after stage s belongs to stage s + 1. The place of a value is the index of the
/// length of its shards.
///
///   stage 0: for all      stage 1: on each shard      (sums)      stage 2: for all      stage 3: on each shard ...
#pragma once
#include <map>
#include <unordered_map>
#include <vector>
#include "gradus/backend/parts/divided_state.h"
#include "gradus/backend/parts/partition.h"

namespace gradus {

/// The place of values that all shards share.
constexpr int for_all = -1;

/// The op of a value, if it is a T.
template <class T> const T* op_as(const Value& v) { return v.op ? v.op.as<T>() : nullptr; }

/// A sum, and the addends of shards of each length; or a value that is gathered from the ranks' parts.
struct ShardSum {
  int value, stage;
  std::vector<int> parts;
};

using Exchanges = std::unordered_map<int, DividedGraph::Exchange>;
/// True if `value` is gathered from the ranks' parts.
bool is_gathered(const Exchanges& exchanges, int value);

class ShardCut final : public Partition {
 public:
  ShardCut(const Graph& graph, const Exchanges& exchanges);
  /// In the order in which shards reach their addends: by depth. The graph's order differs, since gradients are scaled
  /// when all of them are complete. It is the same on every rank.
  std::vector<ShardSum> sums() const;
  /// The last stage after which a sum is made; -1: there is none.
  int last_sum() const;
  /// The length of the shards that value i differs on, or for_all.
  int length_of(int i) const { return (*this)[i].key.place; }

 private:
  void place(int i, const Exchanges& exchanges);
  void delay_common(const Exchanges& exchanges);

  PerValue<int> depths_;  // the longest chain of values of shards before each
  std::map<int, ShardSum> sums_;
};

}  // namespace gradus
