/// Live-range splitting: the late readers of a value get a copy of their own, made just before the first of them.
#pragma once
#include <optional>
#include <span>
#include <vector>
#include "gradus/compiler/steps.h"
#include "gradus/graph/rewriter.h"

namespace gradus {

/// Steps in the order of execution, and the values that live while they run.
struct PlannedMemory {
  struct Temporary {
    int value;  // -1: scratch of a step
    std::int64_t bytes;
    int first, last;  // steps
  };
  Numbered<Step> steps = {};
  Numbered<Temporary> temporaries = {};
  Numbered<double> costs = {};  // per step: estimated nanoseconds
  std::int64_t bytes = 0;       // of all temporaries, laid out
};

/// A graph whose values stand in the order of execution, so that a value inserted before a step is late.
struct Arranged {
  Graph graph;
  PlannedMemory memory;
  PerValue<int> copies;                // the group of copies that it belongs to; 0: none
  PerValue<int> origins;               // in the graph before anything was copied: equal of equal values
  PerValue<int> step;                  // the step that it belongs to; -1: none
  PerValue<int> temporary;             // which one it is; -1: it is not stored, or not in the arena
  PerValue<bool> yielded;              // its memory is an output's
  PerValue<std::vector<int>> readers;  // steps that read it from memory
};

struct CopiedGraph {
  Graph graph;
  PerValue<int> copies, origins;  // as above
};

/// A graph made from another one, with the facts known about its values.
struct Moved {
  explicit Moved(const Graph& from) : places(from, to.graph) {}
  CopiedGraph to;
  GraphRewriter places;

  /// Appends `v`.
  int add(Value v, int copy, int origin);
  /// Appends a value of `from` with its operands.
  void move(const CopiedGraph& from, int i);
};

Arranged arrange(const CopiedGraph& given, PlannedMemory memory);

/// How the readers of `values` from step `reader` on could have copies of them.
struct LateCopy {
  std::vector<int> values;
  int reader = -1;
  PerValue<bool> again;    // computed again
  PerValue<int> instead;   // an equal one that is alive when the reader runs; -1: none
  bool each = false;       // each reader has copies of its own
  double cost = 0;         // estimated nanoseconds
  std::int64_t freed = 0;  // bytes at the step where it is proposed
};
/// How a copy gets operands that are not alive by then: small ones are kept longer and others are computed again, or
/// all are kept longer.
enum class Operands { again, kept };
/// `values` are temporaries that are alive at step `peak`; reads there get their copy just before. Nothing if no byte
/// would be freed, or if a value would be needed that may not or should not be computed twice.
std::optional<LateCopy> propose_late_copy(const Arranged& now, std::vector<int> values, Operands operands, int peak);

/// The copy, if formulas alone are computed again, with one for each of several readers; else nothing.
std::optional<LateCopy> for_each_reader(const Arranged& now, LateCopy copy);

/// New copies form groups from `group` on, unless their only reader is a copy itself: then they join its group.
CopiedGraph with_late_copy(const Arranged& now, const LateCopy& copy, int group);

/// Without values that no output needs.
CopiedGraph without_unneeded(const CopiedGraph& given);

}  // namespace gradus
