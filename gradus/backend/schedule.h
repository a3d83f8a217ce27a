/// Which thunks run side by side: stages with a barrier between them. Decided once for a program, for all extents.
#pragma once
#include "gradus/backend/program.h"

namespace gradus {

/// Memory that lives while the program is in stages [first, last].
struct Temporary {
  int slot;
  int thunk;  // whose shared scratch it is; -1: it holds the value `slot`
  int first, last;
  int over = -1;  // an earlier temporary whose memory it takes, element by element
};

/// (Schedule is the name of a learning rate's.)
struct StagePlan {
  std::vector<std::vector<int>> stages;  // thunks that do not depend on each other
  std::vector<Temporary> temporaries;
  std::vector<Inside> inside;  // in memory of outputs
};

/// As early as operands allow, or one step after the other; steps that may write over a dying input come after all that
/// read it and all that may fail.
StagePlan plan_stages(const Graph& graph, const std::vector<Step>& steps, const Sharing& sharing,
                      const std::vector<Thunk>& thunks, Staging staging);

/// What the temporaries need, in their order. `scratch_of(thunk)`: what the thunks of its step share. What lies in the
/// memory of another one needs none; that one lives as long as both.
std::vector<Interval> intervals_of(const Graph& graph, const StagePlan& schedule, std::span<const std::int64_t> symbols,
                                   const std::function<std::int64_t(int thunk)>& scratch_of);

/// The temporary in whose memory number i lies: itself, unless it is written over another one.
std::size_t place_of(const StagePlan& schedule, std::size_t i);

}  // namespace gradus
