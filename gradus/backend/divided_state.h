/// The state of optimizers, divided among ranks. What a step assigns to slots is computed of parts: of gradients whose
/// sums each rank gets a part of, in formulas that take element for element. Parts are blocks of the numeric contract's
/// reductions, so a norm over divided elements is made of the same numbers in the same order.
#pragma once
#include <unordered_map>
#include "gradus/graph/graph.h"
#include "gradus/tensor/cuts.h"

namespace gradus {

/// The program of one rank. It has the same exchanges in the same order on every rank.
struct DividedGraph {
  /// What ranks do together to make a value.
  struct Exchange {
    Cuts cuts;             // of the whole value
    bool gathers = false;  // its operand is this rank's part, it is the whole; else a sum of which this rank has a part
    Spec whole = {};
  };
  Graph graph;
  std::unordered_map<int, Exchange> exchanges;  // values that join shards, in another way than that of a whole sum
  std::vector<Cuts> inputs, outputs;            // by place: of those that are parts; empty: whole
};

/// `graph` for rank `rank` of `ranks`. It is the same graph unless it assigns state (Divisible) that is made of sums
/// over shards by formulas.
DividedGraph divide_state(const Graph& graph, int rank, int ranks);

}  // namespace gradus
