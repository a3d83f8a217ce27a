/// Partition: the cut of a graph into parts, programs of one stage and one place each. Stages run in order, and the
/// parts of a stage do not depend on each other. A place is a number of the user's: the code of a device, or a length
/// of shards.
#pragma once
#include <algorithm>
#include <compare>
#include <limits>
#include <optional>
#include <vector>
#include "gradus/graph/per_value.h"
#include "gradus/graph/rewriter.h"

namespace gradus {

/// True for the op by which shards of the other length add their part to a value of all shards, its first operand.
inline bool joins_in(const Value& v) { return v.op && v.op.joins_shards() && v.in.size() == 2; }

struct PartKey {
  int stage = 0, place = 0;
  auto operator<=>(const PartKey&) const = default;
};

/// The program of one stage and place. It names no device.
struct GraphPart {
  PartKey key;
  Graph graph = {};
  std::vector<int> inputs = {}, outputs = {};  // values of the whole, in the order of graph.inputs and graph.outputs
};

class Partition {
 public:
  struct Place {
    PartKey key;               // of its part; of an input: where it is
    bool is_anywhere = false;  // computed from numbers alone: by each part that reads it
    bool is_computed = false;  // in its part; other values are inputs of the parts that read them
    bool is_output = false;    // of its part
  };

  /// All values are inputs at `home` until derived classes place them.
  Partition(const Graph& graph, int home);

  Place& operator[](int i) { return places_[i]; }
  const Place& operator[](int i) const { return places_[i]; }
  /// The value that is read in the place of value i: one that is copied, or the sum that shards have joined.
  int origin_of(int i) const { return origins_[i]; }
  /// The value whose copy, or which itself, output i is: its origin, unless that is at another place.
  int source_of(int i) const;

  /// Makes value i an output of its part. One that is computed anywhere is computed at home, too.
  void demand(int i);
  /// Moves values with may_wait(i) to the stage of their first reader, or to `unread`. reads_at(i): the stage at which
  /// value i needs its operands; none: at no time of its own.
  void delay(const auto& may_wait, const auto& reads_at, int unread) {
    constexpr int never = std::numeric_limits<int>::max();
    PerValue<int> first_read(graph_, never);
    for (int i = graph_.size(); i-- > 0;) {
      int& stage = places_[i].key.stage;
      if (may_wait(i)) stage = std::max(stage, first_read[i] == never ? unread : first_read[i]);
      if (const std::optional<int> read = reads_at(i))
        for (const int operand : graph_[i].in) {
          int& first = first_read[origins_[operand]];
          first = std::min(first, *read);
        }
    }
  }

  /// The parts, by stage and place. Behind stage `last_exchange` nothing but parts may fail.
  std::vector<GraphPart> parts(int last_exchange = -1);

 protected:
  const Graph& graph_;

 private:
  void note_uses(int i);
  void emit(GraphPart& part, GraphRewriter& to, int asked) const;
  void let_die(int input, std::vector<GraphPart>& parts, int last_exchange) const;

  const int home_;
  PerValue<Place> places_;
  PerValue<int> origins_;
};

}  // namespace gradus
