/// Ranks with different batches, data or numbers of epochs: an error on all of them before anything is assigned.
/// Nothing else would ever show the difference.
#include <gtest/gtest.h>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include "gradus/gradus.h"
#include "tests/distribute/strategies_as_threads.h"
#include "tests/errors.h"

namespace gradus::ranks_read_alike_test {
namespace {

using namespace std::chrono_literals;

void expect_all_say(const std::vector<std::string>& problems, const std::vector<const char*>& parts, const char* what) {
  for (const std::string& problem : problems)
    for (const char* part : parts)
      EXPECT_NE(problem.find(part), std::string::npos) << what << "\nexpected: " << part << "\ngot: " << problem;
}

// ---------------------------------------------------------------- whole batches

/// Steps over batches that differ from number `first_other` on.
std::vector<std::string> steps_of_ranks(int ranks, int first_other, std::int64_t rows, std::vector<int>& assigned) {
  assigned.assign(static_cast<std::size_t>(ranks), 0);
  return run_on_ranks({.ranks = ranks}, [&](const Strategy& strategy, int rank) {
    Variable steps(zeros({}, i64), "steps");
    const auto step = function([&](Tensor x) {
      steps.assign_add(ones({}, i64));
      return Loss::mean(x);
    });
    try {
      for (int i = 0; i < 4; ++i) {
        const bool is_other = i >= first_other && rank == ranks - 1;
        strategy.run(step, random::normal({rows, 3}, {.seed = static_cast<std::uint64_t>(is_other ? 100 + i : i)}));
      }
    } catch (const Error&) {
      assigned[static_cast<std::size_t>(rank)] = static_cast<int>(steps.value().item());
      throw;
    }
  });
}

TEST(RanksReadAlike, BatchesAreComparedAtEachStep) {
  for (const int ranks : {2, 3})
    for (const std::int64_t rows : {8, 40'000})
      for (const int first_other : {0, 1, 3}) {
        std::vector<int> assigned;
        const auto problems = steps_of_ranks(ranks, first_other, rows, assigned);
        expect_all_say(problems, {"the batch is not the same on all ranks", "same global batch", "strategy.distribute"},
                       "batches");
        expect_all_say(problems, {text("rank ", ranks - 1).c_str()}, "who");
        for (const int steps : assigned) EXPECT_EQ(steps, first_other) << ranks << " ranks, " << rows << " rows";
      }
}

TEST(RanksReadAlike, OneNumberOfManyIsSeenBeforeTheFirstStep) {
  const auto problems = run_on_ranks({.ranks = 2}, [](const Strategy& strategy, int rank) {
    std::vector<float> values(1 << 18, 0.5F);
    values[200'001] = rank == 1 ? 0.25F : 0.5F;
    strategy.run([](Tensor x) { return Loss::mean(x); }, constant(values));
  });
  expect_all_say(problems, {"the batch is not the same on all ranks"}, "one number");
}

TEST(RanksReadAlike, TheFirstValueThatDiffersIsNamed) {
  const auto steps = [](const std::function<std::vector<Tensor>(int rank)>& batch) {
    return run_on_ranks({.ranks = 3}, [&](const Strategy& strategy, int rank) {
      const auto all = batch(rank);
      strategy.run([](Tensor x, Tensor y) { return Loss::mean(cast(x, f32) + cast(y, f32)); }, all[0], all[1]);
    });
  };
  expect_all_say(steps([](int rank) {
                   std::vector<float> values(24, 0.1F);
                   if (rank == 2) values[17] = values[20] = 0.3F;
                   return std::vector{ones({12}), reshape(constant(values), {12, 2})};
                 }),
                 {"element [8, 1] of tensor 1, f32[12,2], is 0.1 on rank 0 (", " and 0.3 on rank 2 ("}, "floats");
  expect_all_say(
      steps([](int rank) {
        return std::vector{full({12}, rank == 1 ? 9'007'199'254'740'993 : 9'007'199'254'740'992, i64), ones({12})};
      }),
      {"element [0] of tensor 0, i64[12], is 9007199254740992 on rank 0 (", " and 9007199254740993 on rank 1 ("},
      "integers");
  expect_all_say(steps([](int rank) { return std::vector{ones({12}), full({}, rank == 2 ? 2 : 1, i32)}; }),
                 {"tensor 1, i32[], is 1 on rank 0 ("}, "a number");
}

/// One number outside of the sample, in a batch of 1 MiB: each 16th batch is compared in full.
TEST(RanksReadAlike, LaterBatchesAreComparedInFullFromTimeToTime) {
  std::atomic<int> steps = 0;
  const auto problems = run_on_ranks({.ranks = 2}, [&](const Strategy& strategy, int rank) {
    std::vector<float> values(1 << 18, 0.5F);
    const auto step = function([](Tensor x) { return Loss::mean(x); });
    for (int i = 0; i < 20; ++i) {
      values[200'001] = rank == 1 && i > 0 ? 0.25F : 0.5F;
      strategy.run(step, constant(values));
      if (rank == 1) ++steps;
    }
  });
  expect_all_say(problems, {"element [200001] of tensor 0, f32[262144], is 0.5 on rank 0 (", " and 0.25 on rank 1 ("},
                 "one number");
  EXPECT_EQ(steps, 16);
}

/// A step without a sum over ranks has no vote.
TEST(RanksReadAlike, BatchesOfStepsWithoutASumAreCompared) {
  const auto problems = run_on_ranks({.ranks = 2}, [](const Strategy& strategy, int rank) {
    const auto step = function([](Tensor x) { return x + 1; });
    for (int i = 0; i < 4; ++i) strategy.run(step, full({8}, i == 2 ? rank : i));
  });
  expect_all_say(problems, {"element [0] of tensor 0, f32[8], is 0 on rank 0 (", " and 1 on rank 1 ("}, "no vote");
}

// ---------------------------------------------------------------- generators

/// `batches` batches of 8 rows an epoch. `value` gives the number in the last row of a batch.
Dataset<2> generated(int batches, const std::function<float(int epoch, int batch)>& value) {
  const auto passes = std::make_shared<int>(-1);
  return data::from_generator<2>({Spec{f32, {8, 3}}, Spec{f32, {8, 1}}},
                                 [=, next = 0]() mutable -> std::optional<std::pair<Tensor, Tensor>> {
                                   if (next == 0) ++*passes;
                                   if (next == batches) return {};
                                   std::vector<float> x(24, 1);
                                   x[23] = value(*passes, next++);
                                   return std::pair{reshape(constant(x), {8, 3}), ones({8, 1})};
                                 });
}

/// Every rank reads whole batches and uses its own rows: rows that only another rank uses are compared, too.
TEST(RanksReadAlike, BatchesOfGeneratorsAreCompared) {
  for (const auto& [epoch, batch] : {std::pair{0, 0}, {0, 2}, {1, 0}}) {
    const auto data = [&, epoch = epoch, batch = batch](int rank) {
      return generated(3, [=](int e, int b) { return rank == 0 && e == epoch && b == batch ? 7.5F : 1.0F; });
    };
    const std::vector<const char*> says = {"element [7, 2] of tensor 0, f32[8,3], is 7.5 on rank 0 (",
                                           " and 1 on rank 1 (", "one seed"};
    expect_all_say(run_on_ranks({.ranks = 2},
                                [&](const Strategy& strategy, int rank) {
                                  set_seed(3);
                                  Sequential model{Dense(1)};
                                  SGD optimizer;
                                  try {
                                    fit(model, optimizer, MeanSquaredError(), data(rank),
                                        {.epochs = 3, .strategy = strategy, .verbose = false});
                                  } catch (const Error&) {
                                    EXPECT_EQ(optimizer.iterations(), 3 * epoch + batch);
                                    throw;
                                  }
                                }),
                   says, "fit");
    if (epoch > 0) continue;
    expect_all_say(run_on_ranks({.ranks = 2},
                                [&](const Strategy& strategy, int rank) {
                                  set_seed(3);
                                  Sequential model{Dense(1)};
                                  model(ones({1, 3}));
                                  predict(model, data(rank).map([](Tensor x, Tensor) { return x; }),
                                          {.strategy = strategy});
                                }),
                   says, "predict");
  }
}

/// Ranks that have no row of the last batch, or whose data have ended, are not compared.
TEST(RanksReadAlike, RanksWithoutTheWholeBatchAreNotCompared) {
  expect_all_well(run_on_ranks({.ranks = 3}, [](const Strategy& strategy, int rank) {
    set_seed(3);
    Sequential model{Dense(1)};
    SGD optimizer;
    const auto rows =
        data::from_tensor_slices(ones({9, 3}), ones({9, 1})).filter([](Tensor x, Tensor) { return reduce_sum(x) > 0; });
    fit(model, optimizer, MeanSquaredError(), rows.batch(4), {.epochs = 2, .strategy = strategy, .verbose = false});
    fit(model, optimizer, MeanSquaredError(), generated(rank == 2 ? 2 : 4, [](int, int) { return 1.0F; }),
        {.epochs = 2, .strategy = strategy, .verbose = false});
  }));
}

// ---------------------------------------------------------------- data sets

using Rows = Dataset<2>;
Rows rows_of(std::int64_t n, std::uint64_t seed = 1) {
  const Tensor x = random::normal({n, 3}, {.seed = seed});
  return data::from_tensor_slices(x, reduce_sum(x, {.axis = {1}, .keepdims = true}));
}

struct DataCase {
  const char* name;
  std::function<Rows(int rank)> data;
  std::vector<const char*> says;  // none: no error is expected
};

std::vector<DataCase> data_cases() {
  return {
      {"a shard by hand", [](int rank) { return rows_of(32).shard(2, rank).batch(4); }, {"`shard(2, ", "leave it out"}},
      {"a shard by hand, of other lengths",
       [](int rank) { return rows_of(31).shuffle({.seed = 1}).shard(2, rank).batch(4); },
       {"`shard(2, ", "leave it out"}},
      {"a shard of batches",
       [](int rank) { return rows_of(32).batch(4).shard(2, rank); },
       {"`shard(2, ", "leave it out"}},
      {"a shard on one rank alone",
       [](int rank) { return rank == 0 ? rows_of(16).batch(4) : rows_of(32).shard(2, 1).batch(4); },
       {"by other stages", "without a shard of one's own"}},
      {"other rows",
       [](int rank) { return rows_of(32, 1 + static_cast<std::uint64_t>(rank)).batch(4); },
       {"`from_tensor_slices`", "reads the same rows"}},
      {"another seed",
       [](int rank) { return rows_of(32).shuffle({.seed = static_cast<std::uint64_t>(rank)}).batch(4); },
       {"`shuffle`", "one seed"}},
      {"a seed that follows from set_seed",
       [](int rank) {
         if (rank == 1) set_seed(77);
         return rows_of(32).shuffle().batch(4);
       },
       {"`shuffle`", "one seed"}},
      {"another buffer", [](int rank) { return rows_of(32).shuffle(8 + rank, {.seed = 1}).batch(4); }, {"`shuffle("}},
      {"another function",
       [](int rank) {
         return rows_of(32).map([rank](Tensor x, Tensor y) { return std::pair{x * (rank + 1), y}; }).batch(4);
       },
       {"`map`", "captures"}},
      {"another captured tensor",
       [](int rank) {
         const Tensor scale = full({3}, rank + 1);
         return rows_of(32).map([scale](Tensor x, Tensor y) { return std::pair{x * scale, y}; }).batch(4);
       },
       {"`map`", "captures"}},
      {"other stages",
       [](int rank) {
         return rank == 0 ? rows_of(32).shuffle({.seed = 1}).batch(4)
                          : rows_of(32).cache().shuffle({.seed = 1}).batch(4);
       },
       {"by other stages"}},
      {"another order of stages",
       [](int rank) {
         return rank == 0 ? rows_of(32).shuffle({.seed = 1}).cache().batch(4)
                          : rows_of(32).cache().shuffle({.seed = 1}).batch(4);
       },
       {"its stage `"}},
      {"one part of a zip",
       [](int rank) {
         const auto x = data::from_tensor_slices(ones({32, 3})), y = data::from_tensor_slices(full({32, 1}, rank));
         return data::zip(x, y).batch(4);
       },
       {"`from_tensor_slices`"}},
      {"alike", [](int) { return rows_of(32).shuffle().batch(4).prefetch(); }, {}},
      {"a shard that all take", [](int) { return rows_of(32).shard(2, 1).batch(4); }, {}},
      {"files of their own for a cache",
       [](int rank) {
         const auto file = std::filesystem::temp_directory_path() / text("gradus_rows_", getpid(), '_', rank);
         std::filesystem::remove(file);
         return rows_of(32).cache(file).batch(4);
       },
       {}},
  };
}

void expect_said(const DataCase& each, const std::vector<std::string>& problems) {
  if (each.says.size() == 0) expect_all_well(problems);
  else expect_all_say(problems, each.says, each.name);
}

TEST(RanksReadAlike, DataSetsAreComparedByTheirStages) {
  for (const DataCase& each : data_cases()) {
    const auto fitted = [&](const Strategy& strategy, int rank) {
      set_seed(3);
      Sequential model{Dense(1)};
      SGD optimizer;
      try {
        fit(model, optimizer, MeanSquaredError(), each.data(rank), {.strategy = strategy, .verbose = false});
      } catch (const Error&) {
        EXPECT_EQ(optimizer.iterations(), 0) << each.name;
        throw;
      }
    };
    expect_said(each, run_on_ranks({.ranks = 2}, fitted));
    expect_said(each, run_on_ranks({.ranks = 2}, [&](const Strategy& strategy, int rank) {
                  for (const auto [x, y] : strategy.distribute(each.data(rank)))
                    strategy.run([](Tensor a, Tensor b) { return Loss::mean(reduce_sum(a, {.axis = {1}}) + b); }, x,
                                 squeeze(y, {1}));
                }));
  }
}

// ---------------------------------------------------------------- loops by hand

/// A rank that makes fewer steps leaves in order: the others learn it at once, and what it did last.
TEST(RanksReadAlike, FewerStepsOfALoopByHandAreTold) {
  for (const int ranks : {2, 3})
    for (const int leaver : {0, ranks - 1})
      for (const bool is_distributed : {false, true}) {
        const auto problems =
            run_on_ranks({.ranks = ranks, .timeout = 600s, .heartbeat = 60s}, [&](const Strategy& strategy, int rank) {
              const auto step =
                  function([](Tensor x, Tensor y) { return Loss::mean(reduce_sum(x, {.axis = {1}}) + y); });
              const auto batches =
                  rows_of(32).map([](Tensor x, Tensor y) { return std::pair{x, squeeze(y)}; }).batch(4);
              int left = rank == leaver ? 3 : 6;
              for (const auto [x, y] : is_distributed ? strategy.distribute(batches) : batches) {
                strategy.run(step, x, y);
                if (--left == 0) return;
              }
            });
        for (int rank = 0; rank < ranks; ++rank) {
          const std::string& problem = problems[static_cast<std::size_t>(rank)];
          if (rank == leaver) EXPECT_EQ(problem, "");
          else
            expect_all_say({problem}, {text("rank ", leaver, " (").c_str(), " has left in order after step 3: "}, "");
        }
      }
}

// ---------------------------------------------------------------- options of fit

TEST(RanksReadAlike, FitComparesHowMuchIsToBeDone) {
  struct Case {
    const char* name;
    std::function<void(FitOptions& options, int rank)> set;
    std::vector<const char*> says;
  };
  const std::vector<Case> cases = {
      {"epochs",
       [](FitOptions& options, int rank) { options.epochs = rank == 1 ? 1 : 3; },
       {"epochs is 3 on rank 0", "and 1 on rank 1"}},
      {"initial_epoch",
       [](FitOptions& options, int rank) { options.epochs = 3, options.initial_epoch = rank; },
       {"initial_epoch is 0 on rank 0", "and 1 on rank 1"}},
      {"steps",
       [](FitOptions& options, int rank) { options.steps_per_epoch = 2 + rank; },
       {"steps_per_epoch is 2 on rank 0", "and 3 on rank 1"}},
      {"validation",
       [](FitOptions& options, int rank) {
         if (rank == 0) options.validation = rows_of(8).batch(4);
       },
       {"the number of validation sets is 1 on rank 0", "and 0 on rank 1"}},
      {"callbacks",
       [](FitOptions& options, int rank) {
         if (rank == 1) options.callbacks = {Callback{.on_step_end = [](const StepLog&) {}}};
       },
       {"on_step_end", "is 0 on rank 0", "and 1 on rank 1"}},
  };
  for (const Case& each : cases)
    expect_all_say(run_on_ranks({.ranks = 2},
                                [&](const Strategy& strategy, int rank) {
                                  Sequential model{Dense(1)};
                                  SGD optimizer;
                                  FitOptions options{.strategy = strategy, .verbose = false};
                                  each.set(options, rank);
                                  fit(model, optimizer, MeanSquaredError(), rows_of(16).batch(4), options);
                                }),
                   each.says, each.name);
}

}  // namespace
}  // namespace gradus::ranks_read_alike_test
