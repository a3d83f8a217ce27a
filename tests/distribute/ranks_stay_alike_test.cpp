/// A rank that assigns a Variable alone while it trains: an error on all of them at the end of the epoch.
#include <gtest/gtest.h>
#include "gradus/gradus.h"
#include "tests/distribute/strategies_as_threads.h"
#include "tests/errors.h"

namespace gradus::ranks_stay_alike_test {
namespace {

void train(const Strategy& strategy, std::vector<Callback> callbacks) {
  Sequential model{Dense(3, relu), Dense(1)};
  Adam optimizer;
  fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(ones({12, 2}), ones({12, 1})).batch(4),
      {.epochs = 4, .callbacks = std::move(callbacks), .strategy = strategy, .verbose = false});
}

TEST(RanksStayAlike, OrAllEndWithTheNameOfTheVariable) {
  for (const bool divides : {false, true}) {
    const auto problems =
        run_on_ranks({.ranks = 3, .shard_optimizer = divides}, [](const Strategy& strategy, int rank) {
          train(strategy, {{.on_epoch_end = [rank](const EpochLog& log) {
                  if (log.epoch == 1 && rank == 0) log.optimizer.set_learning_rate(0.5);
                }}});
        });
    for (const std::string& problem : problems) {
      expect_says(problem, "fit: at the end of epoch 2: Variable ");
      expect_says(problem, "learning_rate");
      expect_says(problem, "on every rank");
      expect_says(problem, "differs from rank 0");
    }
  }
}

TEST(RanksStayAlike, InTheirWeights) {
  const auto problems = run_on_ranks({.ranks = 2}, [](const Strategy& strategy, int rank) {
    train(strategy, {{.on_epoch_end = [rank](const EpochLog& log) {
            if (rank == 0) return;
            for (Variable& each : log.model.trainable_variables())
              if (each.shape() == Shape{1}) each.assign(each.value() + 1);  // the bias of the last layer
          }}});
  });
  for (const std::string& problem : problems) {
    expect_says(problem, "fit: at the end of epoch 1: Variable ");
    expect_says(problem, "bias");
  }
}

TEST(RanksStayAlike, WhereOneHasAWholeSlotAndTheOthersParts) {
  const auto problems = run_on_ranks({.ranks = 3, .shard_optimizer = true}, [](const Strategy& strategy, int rank) {
    train(strategy, {{.on_epoch_end = [rank](const EpochLog& log) {
            if (rank != 0) return;
            for (Variable& each : log.optimizer.variables())
              if (each.shape().rank() == 2) return each.assign(ones(each.shape()));
          }}});
  });
  for (const std::string& problem : problems) expect_says(problem, "fit: at the end of epoch 1: Variable ");
}

TEST(RanksStayAlike, AndGoOnWhereAllAssign) {
  for (const bool divides : {false, true})
    for (const std::string& problem :
         run_on_ranks({.ranks = 2, .shard_optimizer = divides}, [](const Strategy& strategy, int) {
           train(strategy, {{.on_epoch_end = [](const EpochLog& log) { log.optimizer.set_learning_rate(0.5); }}});
         }))
      EXPECT_EQ(problem, "");
}

}  // namespace
}  // namespace gradus::ranks_stay_alike_test
