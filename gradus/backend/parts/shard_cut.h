/// The cut of a graph of shards at the sums over them.
///
/// A time counts the phases before it: values that all shards share are computed at even times, those that differ at
/// odd ones. A sum that is complete after time t belongs to time t + 1.
///
///   time 0: for all      time 1: on each shard      (sums)      time 2: for all      time 3: on each shard ...
#pragma once
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>
#include "gradus/backend/parts/divided_state.h"
#include "gradus/backend/executable.h"
#include "gradus/graph/per_value.h"

namespace gradus {

/// The op of a value, if it is a T.
template <class T> const T* op_as(const Value& v) { return v.op ? v.op.as<T>() : nullptr; }

/// The program of one time: for all shards, or on each of one length.
struct ShardPart {
  int time = 0;
  int length = -1;  // -1: for all
  Graph graph;
  std::vector<int> inputs, outputs;  // values of the whole graph, in the order of graph.inputs and graph.outputs
  std::shared_ptr<const Executable> executable;  // for devices of the default one's kind
  bool is_for_all() const { return length < 0; }
};

/// A sum, and the addends of shards of each length; or a value that is gathered from the ranks' parts.
struct ShardSum {
  int value, time;
  std::vector<int> parts;
};

using Exchanges = std::unordered_map<int, DividedGraph::Exchange>;
/// True if `value` is gathered from the ranks' parts.
bool is_gathered(const Exchanges& exchanges, int value);

/// Values computed from numbers alone are computed again in each part that reads them.
class ShardCut {
 public:
  ShardCut(const Graph& graph, const Exchanges& exchanges);
  /// By time.
  std::vector<ShardPart> parts();
  /// In the order in which shards reach their addends: by depth. The graph's order differs, since gradients are scaled
  /// when all of them are complete. It is the same on every rank.
  std::vector<ShardSum> sums() const;
  /// The stand-in for value i: the sum for one that shards of another length have joined.
  int source_of(int i) const;
  int length_of(int i) const { return of(i).length; }

 private:
  using Key = std::pair<int, int>;  // time and length
  struct Place {
    int time = 0, length = -1;
    bool is_anywhere = false, is_member = false, is_output = false;
    int latest = -1;  // time at which it is needed
    int depth = 0;    // the longest chain of values of shards before it
  };
  Place& of(int i) { return places_[i]; }
  const Place& of(int i) const { return places_[i]; }
  void place(int i);
  void need(int i);
  void delay();
  void note_uses(int i);
  ShardPart part(const Key& key, const std::vector<int>& members) const;
  int add(ShardPart& part, std::unordered_map<int, int>& local, const Key& key, int asked) const;
  void let_die(int input, std::vector<ShardPart>& all) const;

  const Graph& graph_;
  const Exchanges& exchanges_;
  PerValue<Place> places_;
  std::map<int, ShardSum> sums_;
  std::map<Key, std::vector<int>> members_;
};

}  // namespace gradus
