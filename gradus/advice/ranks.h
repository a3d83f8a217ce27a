/// A cost model of training steps by several ranks: simulated, from the times of a step on this machine.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>
#include "gradus/advice/advice.h"

namespace gradus {

/// The cost of a step on one rank.
struct StepCost {
  double fixed_seconds = 0;  // whatever its rows
  double seconds_per_row = 0;
  std::int64_t rows = 0;            // of the whole batch
  std::int64_t gradient_bytes = 0;  // that ranks add up
};

/// A network between the ranks.
struct NetworkCost {
  double latency = 0;           // seconds that a small message takes
  double message_seconds = 0;   // that each further one takes its sender, of many at once
  double bytes_per_second = 0;  // of a rank, each way at once
};

/// The time of ranks that divide one batch.
struct RanksRow {
  int ranks = 1;
  double compute = 0, exchange = 0;  // seconds a step
  double seconds() const { return compute + exchange; }
};

/// The model for 1, 2, 4 ... 1024 ranks, as far as each has a row.
struct SimulatedRanks {
  std::vector<RanksRow> rows = {};
  StepCost step;
  NetworkCost network;
  int best = 1;         // the number of ranks that are fastest
  int last_paying = 1;  // the last that is faster than half as many by a tenth at least
  /// A table, with its assumptions and the number of ranks from which more do not pay.
  friend std::ostream& operator<<(std::ostream& out, const SimulatedRanks& ranks);
};

/// Ranks add up as Collectives do: each gets a part of every gradient from all others, and sends its sum to all.
/// Nothing of that is hidden behind the backward pass. InvalidArgument for costs that are negative or no numbers.
SimulatedRanks simulate_ranks(const StepCost& step, const NetworkCost& network);

namespace detail {
StepCost step_cost(const Training& training, const AdviseOptions& options);
}  // namespace detail

/// Times steps of copies with the whole batch and with parts of it, for `max_seconds` of the options at most.
template <class M, class L, std::size_t N>
  requires LossFor<L, M, N>
StepCost step_cost(const M& model, const Optimizer& optimizer, const L& loss, const Dataset<N>& dataset,
                   AdviseOptions options = {}) {
  return detail::step_cost(
      detail::training_of<N>(model, optimizer, loss, dataset.pipeline(), options.fit.sample_weight), options);
}

}  // namespace gradus
