/// A step that several processes measure together: started by `gradus launch`, --ranks says how they share the work.
#pragma once
#include <algorithm>
#include <optional>
#include "bench/measurement.h"
#include "gradus/distribute/strategy.h"

namespace gradus::bench {

struct Ranks {
  /// `how`: strong: they share the workload's batch. weak: each has as many rows as the workload's batch. alone: as
  /// weak, and nothing is exchanged.
  Ranks(const std::string& how, int micro_shards)
      : strategy(Cluster::from_environment(), {.micro_shards = micro_shards}),
        exchange(how != "alone"),
        times_batch(how == "weak" ? strategy.num_replicas_in_sync() : 1) {
    on_any_rank = [this](bool mine) { return strategy.any(mine); };
  }
  Ranks(const Ranks&) = delete;

  MultiWorkerMirroredStrategy strategy;
  bool exchange;
  int times_batch;
};
/// Of this process; none: it measures alone.
inline std::optional<Ranks> ranks;

/// Rows of a workload that has `rows` in one process.
inline std::int64_t rows_of_batch(std::int64_t rows) { return ranks ? rows * ranks->times_batch : rows; }

/// step(x, y), by all ranks if there are any.
template <class F> Loss run_step(const F& step, const Tensor& x, const Tensor& y) {
  return ranks && ranks->exchange ? ranks->strategy.run(step, x, y) : step(x, y);
}
template <class F> Explanation explain_step(const F& step) {
  return ranks && ranks->exchange ? ranks->strategy.explain(step) : step.explain();
}

}  // namespace gradus::bench
