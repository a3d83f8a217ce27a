/// The memory plan: where each stored value lives while a program runs.
#pragma once
#include <span>
#include <vector>
#include "gradus/compiler/steps.h"

namespace gradus {

/// Steps that may fail, with all that they need, come first; those that only make outputs come last, so that they may
/// take over dying inputs. Otherwise the order stays.
std::vector<Step> order_steps(const Graph& graph, std::vector<Step> steps);

/// A value that lies in the memory of an output, which is that value with some rows changed.
struct Inside {
  int value, output;
};

/// The memory that may be shared, decided once for a graph.
struct Sharing {
  std::vector<int> may_overwrite;   // per graph output: the dying input whose buffer it may take over, or -1
  std::vector<Inside> inside = {};  // temporaries that are read no more once the output is made
  bool in_place = false;            // temporaries are written over others that are read for the last time
};
/// An output may take over a dying input if their specs agree, no step after the first one that writes its memory reads
/// the input or may fail, and that step, if it reads the input, reads each element before it writes the same element.
Sharing plan_sharing(const Graph& graph, const std::vector<Step>& steps);

/// When steps run: as early as their operands allow, side by side with others, or in sequence.
enum class Staging { early, in_order };

/// The steps of a program with their memory, decided before any code is made.
struct Plan {
  std::vector<Step> steps;
  Sharing sharing;
  Staging staging = Staging::early;
  std::int64_t recomputed_bytes = 0;  // of values that are computed again instead of being kept
};

/// One temporary: `bytes` from step `first` up to and including step `last`.
struct Interval {
  std::int64_t bytes = 0;
  int first = 0, last = 0;
};
struct Layout {
  std::vector<std::int64_t> offsets;  // per interval, 64-byte aligned; reads behind one read the next one
  std::int64_t bytes = 0;             // of the arena
  std::int64_t looked_at = 0;         // ranges of taken memory: the work grows with it
};
/// Intervals that overlap in time do not overlap in memory. First fit by decreasing size, never worse than in order.
Layout lay_out(std::span<const Interval> intervals);

}  // namespace gradus
