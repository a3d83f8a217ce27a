/// Graphs of shards as one program that several devices run together, a replica each.
///
/// A replica has its shards in slots, by their numbers. If all replicas have a shard of one length in a slot, its
/// computation stands in the graph as it is. Else it is a branch that replicas with such a shard take; the others get
/// zeros. So batches that do not divide evenly are the same program on each device. Sums over shards are added on each
/// device first, by a tree, and then by all_reduce.
#pragma once
#include <array>
#include "gradus/backend/parts/shard_cut.h"
#include "gradus/backend/shard_run.h"
#include "gradus/base/numbered.h"

namespace gradus {

/// The shards of each replica, by slot.
class ReplicaSlots {
 public:
  explicit ReplicaSlots(const ShardRun& run);

  int replicas() const { return static_cast<int>(shards_.size()); }
  int slots() const { return slots_; }
  /// The number of the shard among ShardRun::shards, or -1 if the replica has none.
  int shard(int replica, int slot) const { return at_or_none(shards_[at(replica)], slot); }
  /// The index of that shard's length, 0 or 1.
  int length(int replica, int slot) const { return lengths_[at(shard(replica, slot))]; }
  /// True if some replicas have a shard of this length there; all_have: all of them.
  bool has(int slot, int length) const { return count(slot, length) > 0; }
  bool all_have(int slot, int length) const { return count(slot, length) == replicas(); }
  bool operator==(const ReplicaSlots&) const = default;

 private:
  static int at_or_none(const std::vector<int>& list, int i) { return i < std::ssize(list) ? list[at(i)] : -1; }
  int count(int slot, int length) const { return counts_[at(slot)][at(length)]; }
  std::vector<std::vector<int>> shards_;
  std::vector<std::array<int, 2>> counts_;  // of shards of either length, by slot
  std::vector<int> lengths_;                // of the shards
  int slots_ = 0;
};

struct ReplicatedGraph {
  /// The binding of an input of the graph on a replica.
  struct Input {
    enum class Kind { whole, argument, is_there };  // is_there: if the slot has a shard of this length
    Kind kind;
    int number = 0;  // of the input of the whole, or OfShard::argument
    int slot = 0, length = 0;
    bool operator==(const Input&) const = default;
  };
  Graph graph;
  std::vector<Input> inputs;  // in the order of graph.inputs
  /// Per output of the whole: its outputs in the graph: one, or one a slot if it differs from shard to shard; -1: the
  /// slot has none. `length`: -1, or the length of its shards.
  struct Output {
    std::vector<int> places;
    int length = -1;
  };
  std::vector<Output> outputs;
};

/// `whole`, a graph of shards, for these.
ReplicatedGraph replicated(const Graph& whole, const ReplicaSlots& slots);

}  // namespace gradus
