/// Compute by a line through measured steps, exchange by latency and bandwidth.
#include "gradus/advice/ranks.h"
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <ostream>
#include "gradus/advice/trial.h"
#include "gradus/advice/words.h"
#include "gradus/base/threads.h"

namespace gradus {
namespace {

constexpr int most_ranks = 1024;
constexpr double paying = 0.9;  // of the time of half as many

double exchange_seconds(const StepCost& step, const NetworkCost& network, int ranks) {
  if (ranks == 1) return 0;
  const double others = ranks - 1, bytes = static_cast<double>(step.gradient_bytes) * others / ranks;
  // Partial sums go to their owners, then sums to all: twice the same traffic.
  return 2 * (network.latency + others * network.message_seconds + bytes / network.bytes_per_second);
}

/// The median of some steps.
double measured(Trial& trial, double seconds) {
  const int steps = static_cast<int>(std::clamp(seconds / 5 / std::max(trial.step_seconds(), 1e-9), 1.0, 20.0));
  std::vector<double> all;
  for (int i = 0; i < 5; ++i) all.push_back(trial.run(steps));
  std::ranges::sort(all);
  return all[all.size() / 2];
}

}  // namespace

SimulatedRanks simulate_ranks(const StepCost& step, const NetworkCost& network) {
  const auto check = [](std::string_view name, double value, bool positive) {
    require(std::isfinite(value) && (positive ? value > 0 : value >= 0), "simulate_ranks: ", name, " is ", value,
            positive ? "; expected a positive number" : "; expected 0 or a positive number");
  };
  check("fixed_seconds", step.fixed_seconds, false);
  check("seconds_per_row", step.seconds_per_row, false);
  check("latency", network.latency, false);
  check("message_seconds", network.message_seconds, false);
  check("bytes_per_second", network.bytes_per_second, true);
  require(step.rows > 0 && step.gradient_bytes >= 0, "simulate_ranks: a batch has ", step.rows, " rows, gradients ",
          step.gradient_bytes, " bytes; expected a positive number, and 0 or a positive one");
  SimulatedRanks all{.step = step, .network = network};
  for (int ranks = 1; ranks <= most_ranks && ranks <= step.rows; ranks *= 2) {
    const std::int64_t rows = (step.rows + ranks - 1) / ranks;  // of the rank that has most
    all.rows.push_back({ranks, step.fixed_seconds + step.seconds_per_row * static_cast<double>(rows),
                        exchange_seconds(step, network, ranks)});
  }
  double least = all.rows[0].seconds();
  bool pays = true;
  for (std::size_t i = 1; i < all.rows.size(); ++i) {
    const double seconds = all.rows[i].seconds();
    if (seconds < least) least = seconds, all.best = all.rows[i].ranks;
    pays = pays && seconds <= paying * all.rows[i - 1].seconds();
    if (pays) all.last_paying = all.rows[i].ranks;
  }
  return all;
}

StepCost detail::step_cost(const Training& training, const AdviseOptions& options) {
  check_options("step_cost", options);
  const double deadline = options.clock() + options.max_seconds;
  Setting setting{.function = options.fit.function, .threads = num_threads(), .ahead = {.buffers = autotune}};
  const auto rows = training.dataset.rows();
  StepCost cost{.rows = rows ? std::min(rows->first, rows->second) : 0};
  for_each_stage(training.dataset.stage(), [&](const Stage& stage) {
    if (const auto size = stage.batch_size(); size && cost.rows == 0) cost.rows = *size;
  });
  require(cost.rows > 0, "step_cost: the data set does not say the size of its batches");
  Trial whole(training, setting, options.clock, deadline, cost.rows);
  const double slice = options.max_seconds / 4, all = measured(whole, std::min(slice, 1.0));
  cost.gradient_bytes = whole.trainable_bytes();
  cost.seconds_per_row = all / static_cast<double>(cost.rows);
  const std::int64_t part = cost.rows / 8;
  if (part == 0 || options.clock() > deadline - whole.making_seconds()) return cost;
  setting.data.batch_size = part;
  Trial eighth(training, setting, options.clock, deadline, part);
  const double fewer = measured(eighth, std::min(slice, 1.0));
  cost.seconds_per_row = std::max(0.0, (all - fewer) / static_cast<double>(cost.rows - part));
  cost.fixed_seconds = std::max(0.0, all - cost.seconds_per_row * static_cast<double>(cost.rows));
  return cost;
}

std::ostream& operator<<(std::ostream& out, const SimulatedRanks& all) {
  using advice_words::time;
  TextStream table;
  table << "simulated: one batch of " << all.step.rows << " rows, divided among ranks that are as this machine\n"
        << std::right << std::setw(6) << "ranks" << std::setw(12) << "compute" << std::setw(12) << "exchange"
        << std::setw(12) << "a step" << std::setw(10) << "speed" << std::setw(12) << "efficiency" << '\n';
  for (const RanksRow& row : all.rows) {
    const double speed = all.rows[0].seconds() / row.seconds();
    table << std::setw(6) << row.ranks << std::setw(12) << time(row.compute) << std::setw(12) << time(row.exchange)
          << std::setw(12) << time(row.seconds()) << std::setw(10) << advice_words::fixed(speed, 2) << std::setw(12)
          << advice_words::percent(speed / row.ranks) << '\n';
  }
  table
      << "assumed: a step takes " << time(all.step.fixed_seconds) << " and " << time(all.step.seconds_per_row)
      << " a row, as measured here; ranks add up "
      << advice_words::bytes(static_cast<std::size_t>(all.step.gradient_bytes)) << " of gradients over a network of "
      << time(all.network.latency) << " latency, " << time(all.network.message_seconds) << " a message and "
      << advice_words::fixed(all.network.bytes_per_second / 1e9, 2)
      << " GB/s for each rank; nothing of that is hidden behind the backward pass, no rank is slower than others, and "
         "data are there in time\n";
  if (all.last_paying < all.rows.back().ranks)
    table << "more than " << all.last_paying << (all.last_paying == 1 ? " rank does" : " ranks do")
          << " not pay: twice as many take less than a tenth off a step; " << all.best
          << (all.best == 1 ? " is" : " are") << " fastest\n";
  else table << "each doubling pays up to " << all.last_paying << " ranks, the most that were looked at\n";
  return out << table.str();
}

}  // namespace gradus
