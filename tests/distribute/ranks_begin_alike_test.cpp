/// Ranks whose Variables, captured tensors or random numbers are not the same: an error before the first step on all of
/// them, where nothing else would ever tell.
#include <gtest/gtest.h>
#include "gradus/gradus.h"
#include "gradus/ops/random_state.h"
#include "tests/distribute/strategies_as_threads.h"

namespace gradus::ranks_begin_alike_test {
namespace {

using Body = std::function<void(const Strategy& strategy, int rank)>;

void expect_refused(const Body& body, const std::vector<std::string>& said) {
  for (const int ranks : {2, 3}) {
    const std::vector<std::string> problems = run_on_ranks({.ranks = ranks}, body);
    for (const std::string& problem : problems)
      for (const std::string& part : said)
        EXPECT_NE(problem.find(part), std::string::npos) << "expected: " << part << "\ngot: " << problem;
  }
}

/// A step that assigns, of a model whose kernel is `kernel`.
Tensor step(const Strategy& strategy, Variable& kernel) {
  const auto results = strategy.run(
      [&](Tensor x) {
        const Tensor sum = all_reduce_sum(reduce_sum(matmul(x, kernel)));
        kernel.assign_add(0.01 * sum);
        return sum;
      },
      ones({8, 4}));
  return results[0];
}

TEST(RanksBeginAlike, InTheirVariables) {
  expect_refused(
      [](const Strategy& strategy, int rank) {
        Variable kernel(full({4, 2}, rank == 1 ? 0.5F : 0.25F), "head/kernel");
        try {
          step(strategy, kernel);
        } catch (const InvalidArgument&) {
          EXPECT_EQ(kernel.value()[0][0].item(), rank == 1 ? 0.5 : 0.25);
          throw;
        }
      },
      {"head/kernel", "set_seed", "rank 1", "differs from"});
}

TEST(RanksBeginAlike, AfterAStepThatOneRankHasMore) {
  expect_refused(
      [](const Strategy& strategy, int rank) {
        Variable kernel(full({4, 2}, 0.25F), "kernel"), count(constant(0), "count");
        if (rank == 0) count.assign_add(constant(1));  // an interrupted step
        strategy.run(
            [&](Tensor x) {
              count.assign_add(constant(1));
              return all_reduce_sum(reduce_sum(matmul(x, kernel)));
            },
            ones({8, 4}));
      },
      {"Variable count", "rank 1"});
}

TEST(RanksBeginAlike, InWhatTheStepCaptures) {
  expect_refused(
      [](const Strategy& strategy, int rank) {
        const Tensor shift = full({4}, static_cast<float>(rank));
        strategy.run([&](Tensor x) { return all_reduce_sum(reduce_sum(x + shift)); }, ones({8, 4}));
      },
      {"captured tensor f32[4]", "an argument of the step", "rank 1"});
}

TEST(RanksBeginAlike, InTheirRandomNumbers) {
  expect_refused(
      [](const Strategy& strategy, int rank) {
        std::uint64_t seed = random_state_of(static_cast<std::uint64_t>(rank == 1 ? 7 : 8));
        const SeedScope seeds(seed);
        strategy.run([](Tensor x) { return all_reduce_sum(reduce_sum(dropout(x, 0.5))); }, ones({8, 4}));
      },
      {"random numbers", "set_seed", "rank 1"});
}

/// Questions are compared, too: a length is not a number of a step.
TEST(RanksBeginAlike, InWhatTheyAsk) {
  expect_refused(
      [](const Strategy& strategy, int rank) {
        const NamedNumber rows{"the number of rows", 4};
        if (rank == 0) strategy.check_same({&rows, 1}, "a test");
        else strategy.any(false);
      },
      {"the ranks do different things: rank 0 (", " asks all for a test: the number of rows, rank 1 (",
       " for whether to stop: every rank makes the same calls"});
}

TEST(RanksBeginAlike, InNumbersWhichAreTold) {
  expect_refused(
      [](const Strategy& strategy, int rank) {
        const NamedNumber numbers[] = {{"the last epoch", 7}, {"the first epoch", rank - 1}};
        strategy.check_same(numbers, "a test", "all read the same checkpoints");
      },
      {"a test: the first epoch is -1 on rank 0 (", " and 0 on rank 1 (", "): all read the same checkpoints"});
}

TEST(RanksBeginAlike, InWhatTheyValidateWith) {
  expect_refused(
      [](const Strategy& strategy, int rank) {
        Sequential model{Dense(1)};
        SGD optimizer;
        FitOptions options{.epochs = 1, .strategy = strategy, .verbose = false};
        const auto batches = data::from_tensor_slices(ones({12, 2}), ones({12, 1})).batch(4);
        if (rank == 0) options.validation = batches;
        fit(model, optimizer, MeanSquaredError(), batches, options);
      },
      {"fit: the number of validation sets is 1 on rank 0 (", "and 0 on rank 1 ("});
}

TEST(RanksBeginAlike, AndGoOnWhereTheyDo) {
  for (const std::string& problem : run_on_ranks({.ranks = 3}, [](const Strategy& strategy, int) {
         Variable kernel(full({4, 2}, 0.25F), "kernel");
         EXPECT_EQ(step(strategy, kernel).item(), 16);
         kernel.assign(full({4, 2}, 0.5F));  // a program that has run is not compared again
         EXPECT_EQ(step(strategy, kernel).item(), 32);
       }))
    EXPECT_EQ(problem, "");
}

}  // namespace
}  // namespace gradus::ranks_begin_alike_test
