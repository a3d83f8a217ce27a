/// The pass `recompute`: values that live long are computed again for their late readers until a byte budget is kept.
/// No bit changes: a copy is the same op on the same operands.
///
/// Where most is alive, one of the values that are only kept there for later is split: its late readers get a copy that
/// is computed just before the first of them, from values alive by then, from inputs, or from copies of others.
/// Repeated, this finds cheap values first (formulas and reductions, which also fuse into their readers), then
/// products, down to checkpoints from which everything between is computed again.
#pragma once
#include <functional>
#include "gradus/base/error.h"
#include "gradus/compiler/late_copies.h"
#include "gradus/compiler/target_model.h"

namespace gradus {

/// Plans a program of this graph, with the memory that it would take. `copies` as for fuse().
using MemoryPlanner = std::function<PlannedMemory(const Graph& graph, const PerValue<int>& copies)>;

struct Recomputed {
  Graph graph;
  PlannedMemory use;
  std::int64_t bytes = 0;  // of stored values that are computed again
};

/// Names the smallest budget that works.
class BudgetTooSmall : public ResourceExhausted {
 public:
  BudgetTooSmall(std::int64_t budget, std::int64_t smallest)
      : ResourceExhausted(text("a budget of ", budget,
                               " bytes is too small for what this program keeps between its kernels, even with values "
                               "computed again; the smallest that works is ",
                               smallest, " bytes")),
        smallest_(smallest) {}
  std::int64_t smallest() const { return smallest_; }

 private:
  std::int64_t smallest_;
};

/// BudgetTooSmall if nothing fits; the smallest that works is `known` bytes if nothing needs less. The result depends
/// on the budget in one way only: the search does not look at it, but ends when it is kept.
Recomputed recompute(const Graph& graph, std::int64_t max_bytes, std::int64_t known, const MemoryPlanner& planner,
                     const TargetModel& target = {});

}  // namespace gradus
