/// The state of optimizers, divided among ranks. A step computes its slots in parts, from gradients whose sums are
/// divided alike, by elementwise formulas. Parts are blocks of the numeric contract's reductions, so a norm over
/// divided elements adds the same numbers in the same order.
#pragma once
#include <unordered_map>
#include "gradus/graph/graph.h"
#include "gradus/tensor/cuts.h"

namespace gradus {

/// The program of one rank. It has the same exchanges in the same order on every rank.
struct DividedGraph {
  /// A collective exchange that makes a value.
  struct Exchange {
    Cuts cuts;             // of the whole value
    bool gathers = false;  // its operand is this rank's part, it is the whole; else a sum; this rank gets its part
    Spec whole = {};
  };
  Graph graph;
  std::unordered_map<int, Exchange> exchanges;  // values that join shards, in another way than that of a whole sum
  std::vector<Cuts> inputs, outputs;            // by place: cuts of parts; empty: whole
};

/// `graph` for rank `rank` of `ranks`. It is the same graph unless it assigns state (Divisible) that is made of sums
/// over shards by formulas.
DividedGraph divide_state(const Graph& graph, int rank, int ranks);

}  // namespace gradus
