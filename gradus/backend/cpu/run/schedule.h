/// The schedule of a program: which thunks run side by side, in stages with a barrier between them. It is decided once,
/// for all extents.
#pragma once
#include "gradus/backend/cpu/run/program.h"

namespace gradus {

/// Memory that lives while the program is in stages [first, last].
struct Temporary {
  int slot;
  int thunk;  // whose shared scratch it is; -1: it holds the value `slot`
  int first, last;
  int over = -1;  // an earlier temporary whose memory it may take, element by element
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

/// The live ranges of the temporaries, in their order. `scratch_of(thunk)`: memory that the thunks of its step share.
std::vector<Interval> intervals_of(const Graph& graph, const StagePlan& schedule, std::span<const std::int64_t> symbols,
                                   const std::function<std::int64_t(int thunk)>& scratch_of);

/// The places of temporaries: a value in the memory of another one needs none, and that one lives as long as both.
struct Arena {
  std::vector<Interval> intervals;
  Layout layout;
};
/// Temporaries take the memory of others if all together need no more so: with fewer but longer lives there may be more
/// gaps, and a budget counts those that lie apart.
Arena lay_out_arena(const StagePlan& schedule, std::vector<Interval> intervals);

}  // namespace gradus
