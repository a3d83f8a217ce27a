/// The cost model of several ranks against sums by hand, and what it measures.
#include "gradus/advice/ranks.h"
#include <cmath>
#include "gradus/base/threads.h"
#include "tests/distribute/in_process_transport.h"
#include "gradus/distribute/messages/network_rates.h"
#include "tests/advice/pretended.h"
#include "tests/errors.h"

namespace gradus::ranks_test {
namespace {

const RanksRow& row_of(const SimulatedRanks& all, int ranks) {
  return *std::ranges::find(all.rows, ranks, &RanksRow::ranks);
}

TEST(Ranks, AreWhatTheyCost) {
  const StepCost step{.fixed_seconds = 1e-3, .seconds_per_row = 1e-4, .rows = 256, .gradient_bytes = 4'000'000};
  const SimulatedRanks all = simulate_ranks(step, {.latency = 1e-5, .message_seconds = 2e-6, .bytes_per_second = 1e9});
  ASSERT_EQ(all.rows.size(), 9u);  // 1 to 256: no rank is without a row
  EXPECT_NEAR(row_of(all, 1).seconds(), 1e-3 + 256e-4, 1e-12);
  EXPECT_EQ(row_of(all, 1).exchange, 0);
  EXPECT_NEAR(row_of(all, 4).compute, 1e-3 + 64e-4, 1e-12);
  EXPECT_NEAR(row_of(all, 4).exchange, 2 * (1e-5 + 3 * 2e-6 + 3e-3), 1e-12);
  EXPECT_NEAR(row_of(all, 256).exchange, 2 * (1e-5 + 255 * 2e-6 + 4e-3 * 255 / 256), 1e-12);
}

TEST(Ranks, SayWhenMoreDoNotPay) {
  const StepCost step{.fixed_seconds = 1e-4, .seconds_per_row = 1e-4, .rows = 2048, .gradient_bytes = 400'000};
  const SimulatedRanks fast = simulate_ranks(step, {.latency = 1e-6, .message_seconds = 0, .bytes_per_second = 1e12});
  const SimulatedRanks slow = simulate_ranks(step, {.latency = 1e-3, .message_seconds = 1e-4, .bytes_per_second = 1e8});
  EXPECT_EQ(fast.rows.back().ranks, 1024);
  EXPECT_GT(fast.last_paying, slow.last_paying);
  EXPECT_GE(slow.best, slow.last_paying);
  EXPECT_LT(slow.best, 1024);
  const SimulatedRanks never =
      simulate_ranks({.fixed_seconds = 1, .seconds_per_row = 0, .rows = 64}, {.bytes_per_second = 1});
  EXPECT_EQ(never.last_paying, 1);
  for (const char* part : {"simulated", "assumed", "more than 1 rank does not pay"}) expect_says(text(never), part);
  expect_says(text(slow), "do not pay");
}

TEST(Ranks, BadInput) {
  const StepCost step{.fixed_seconds = 1, .seconds_per_row = 1, .rows = 8};
  const NetworkCost network{.latency = 1, .message_seconds = 1, .bytes_per_second = 1};
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    StepCost other = step;
    other.fixed_seconds = bad;
    expect_error<InvalidArgument>([&] { simulate_ranks(other, network); }, {"fixed_seconds"});
    NetworkCost slower = network;
    slower.latency = bad;
    expect_error<InvalidArgument>([&] { simulate_ranks(step, slower); }, {"latency"});
  }
  expect_error<InvalidArgument>([&] { simulate_ranks(step, {}); }, {"bytes_per_second"});
  expect_error<InvalidArgument>([&] { simulate_ranks({}, network); }, {"rows"});
}

TEST(Ranks, StepsAreALineThroughTheirRows) {
  const SmallTraining t;
  const StepCost cost = step_cost(t.model, t.optimizer, t.loss, t.dataset, {.max_seconds = 1});
  EXPECT_EQ(cost.rows, 16);
  EXPECT_EQ(cost.gradient_bytes, 4 * (3 * 8 + 8 + 8 * 3 + 3));
  EXPECT_GT(cost.fixed_seconds + cost.seconds_per_row, 0);
  EXPECT_FALSE(t.model.is_built());
}

TEST(NetworkRates, OfBoxesInThisProcess) {
  const auto network = in_process_network();
  const NetworkRates rates = measure_network("boxes", [&] { return in_process_transport(network); });
  EXPECT_EQ(rates.problem, "");
  EXPECT_GT(rates.latency, 0);
  EXPECT_GE(rates.message_seconds, 0);
  EXPECT_GT(rates.bytes_per_second, 0);
}

TEST(NetworkRates, WhatGoesWrongIsTold) {
  const NetworkRates rates = measure_network(
      "broken", []() -> std::unique_ptr<Transport> { throw Unavailable("there is no wire"); }, std::chrono::seconds(1));
  EXPECT_NE(rates.problem.find("there is no wire"), std::string::npos) << rates.problem;
  int made = 0;
  std::mutex guard;
  const auto network = in_process_network();
  const NetworkRates half = measure_network(
      "half",
      [&]() -> std::unique_ptr<Transport> {
        const std::lock_guard lock(guard);
        if (made++ == 1) throw Unavailable("the second one is missing");
        return in_process_transport(network);
      },
      std::chrono::seconds(1));
  EXPECT_FALSE(half.problem.empty());
}

}  // namespace
}  // namespace gradus::ranks_test
