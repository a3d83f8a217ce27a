/// Data sets that several ranks read: each its own rows, with the bits of one process; lengths that differ, known or
/// not; and what is made of such rows by mistake.
#include <gtest/gtest.h>
#include <mutex>
#include "gradus/gradus.h"
#include "tests/distribute/strategies_as_threads.h"
#include "tests/distribute/trained.h"
#include "tests/errors.h"

namespace gradus::distributed_data_test {
namespace {

Dataset<2> examples() {
  const Tensor labels = random::integers({90}, {.high = 3, .seed = 6});
  return data::from_tensor_slices(random::normal({90, 5}, {.seed = 7}) + 4 * one_hot(labels, 5), labels);
}
Dataset<2> batches() {
  return examples()
      .map([](Tensor x, Tensor y) { return std::pair{x + random::normal({5}, {.stddev = 0.1}), y}; })
      .shuffle(90, {.seed = 8})
      .batch(25)  // 25, 25, 25, 15
      .map([](Tensor x, Tensor y) { return std::pair{x * 0.5, y}; });
}

std::int64_t examples_made(const auto& dataset) {
  const auto stages = dataset.explain().stages;
  return stages.back().elements;
}

struct Fitted {
  Trained trained;
  std::vector<double> numbers;
  Tensor prediction, of_tensor;
  std::int64_t rows = 0, rows_of_evaluate = 0, rows_of_predict = 0;
};

Fitted fitted(const Strategy& strategy) {
  set_seed(5);
  const Dataset<2> dataset = batches();
  Sequential model{Dense(12, relu), BatchNormalization(), Dropout(0.2), Dense(3)};
  Adam optimizer({.learning_rate = 1e-2, .global_clipnorm = 1});
  const SparseCategoricalCrossentropy loss(from_logits);
  const History history = fit(model, optimizer, loss, dataset,
                              {.epochs = 2,
                               .metrics = {SparseCategoricalAccuracy()},
                               .validation = batches(),
                               .strategy = strategy,
                               .verbose = false});
  Fitted made{values_of(model.variables() + optimizer.variables(), history.loss.back())};
  made.rows = examples_made(dataset);
  const Dataset<2> test = examples().batch(25);
  const Evaluation evaluation =
      evaluate(model, loss, test, {.metrics = {SparseCategoricalAccuracy()}, .strategy = strategy});
  made.rows_of_evaluate = examples_made(test);
  made.numbers = {history.validation_loss.back(), history["validation_sparse_categorical_accuracy"].back(),
                  evaluation.loss, evaluation.metrics[0].second};
  const Tensor x = random::normal({33, 5}, {.seed = 3});
  const Dataset<1> inputs = data::from_tensor_slices(x).batch(8);
  made.prediction = predict(model, inputs, {.strategy = strategy});
  made.rows_of_predict = examples_made(inputs);
  made.of_tensor = predict(model, x, {.batch_size = 8, .strategy = strategy});
  return made;
}

TEST(DistributedData, EachRankReadsItsRowsAndHasTheBitsOfOneProcess) {
  const Fitted one = fitted(MirroredStrategy({.devices = {cpu(0)}, .micro_shards = 4}));
  EXPECT_EQ(one.rows, 180);
  EXPECT_TRUE(bitwise_equal(one.prediction, one.of_tensor));
  for (const int ranks : {2, 3, 4}) {
    std::atomic<std::int64_t> rows = 0, of_evaluate = 0, of_predict = 0;
    expect_all_well(run_on_ranks({.ranks = ranks}, [&](const Strategy& strategy, int rank) {
      const Fitted own = fitted(strategy);
      expect_same_bits(one.trained, own.trained, text("rank ", rank, " of ", ranks));
      EXPECT_EQ(one.numbers, own.numbers);
      EXPECT_TRUE(bitwise_equal(one.prediction, own.prediction));
      EXPECT_TRUE(bitwise_equal(one.prediction, own.of_tensor));
      EXPECT_LT(own.rows, 100);
      rows += own.rows;
      of_evaluate += own.rows_of_evaluate;
      of_predict += own.rows_of_predict;
    }));
    EXPECT_EQ(rows, 180);
    EXPECT_EQ(of_evaluate, 90);
    EXPECT_EQ(of_predict, 33);
  }
}

/// The loss of a pass by hand, and the sum over all that was seen.
Loss passed(const Strategy& strategy, const Dataset<1>& dataset, Variable& seen, std::vector<std::int64_t>* rows = {}) {
  Loss total;
  const auto step = function([&](Tensor x) {
    seen.assign_add(all_reduce_sum(reduce_sum(x)));
    return Loss::mean(square(x));
  });
  for (const Tensor x : dataset) {
    total += strategy.run(step, x);
    if (rows) rows->push_back(x.shape()[0]);
  }
  return total;
}

TEST(DistributedData, ByHand) {
  const Tensor x = random::normal({22}, {.seed = 1});
  const auto on = [&](const Strategy& strategy, std::vector<std::int64_t>* rows) {
    Variable seen(zeros({}), "seen");
    const Loss loss = passed(strategy, strategy.distribute(data::from_tensor_slices(x).batch(8)), seen, rows);
    return Trained{loss.item(), {seen.value(), loss.weight()}};
  };
  std::vector<std::int64_t> whole;
  const Trained one = on(MirroredStrategy({.devices = {cpu(0)}, .micro_shards = 4}), &whole);
  EXPECT_EQ(whole, (std::vector<std::int64_t>{8, 8, 6}));
  EXPECT_EQ(one.variables[1].item(), 22);
  expect_all_well(run_on_ranks({.ranks = 2}, [&](const Strategy& strategy, int rank) {
    std::vector<std::int64_t> rows;
    expect_same_bits(one, on(strategy, &rows), text("rank ", rank));
    EXPECT_EQ(rows, (std::vector<std::int64_t>{4, 4, 3}));
  }));
  expect_all_well(run_on_ranks({.ranks = 4}, [&](const Strategy& strategy, int rank) {
    std::vector<std::int64_t> rows;
    expect_same_bits(one, on(strategy, &rows), text("rank ", rank));
    EXPECT_EQ(rows[2], rank % 2 == 0 ? 2 : 1);
  }));
}

TEST(DistributedData, OfOneProcessAreWholeBatches) {
  const Tensor x = random::normal({22}, {.seed = 1});
  for (const Strategy& strategy : std::vector<Strategy>{DefaultStrategy(), MirroredStrategy({.devices = devices(2)})}) {
    std::vector<std::int64_t> rows;
    for (const Tensor part : strategy.distribute(data::from_tensor_slices(x).batch(8))) rows.push_back(part.shape()[0]);
    EXPECT_EQ(rows, (std::vector<std::int64_t>{8, 8, 6}));
  }
}

/// Elements {i, i, ...} for i = 0, 1, ... below `batches`, of a length that nobody knows.
Dataset<1> generated(int batches, std::int64_t rows = 8) {
  return data::from_generator({f32, {any_size}}, [batches, rows, next = 0]() mutable -> std::optional<Tensor> {
    if (next == batches) return std::nullopt;
    return full({rows}, next++);
  });
}

TEST(DistributedData, WhoHasNoMoreGoesOnWithWeight0) {
  expect_all_well(run_on_ranks({.ranks = 3, .micro_shards = 3}, [](const Strategy& strategy, int rank) {
    Variable seen(zeros({}), "seen");
    std::vector<std::int64_t> rows;
    // 9 rows, 3 for each: 2 batches of rank 1, 4 of the others.
    const Loss loss = passed(strategy, strategy.distribute(generated(rank == 1 ? 2 : 4, 9)), seen, &rows);
    EXPECT_EQ(loss.weight().item(), 9 + 9 + 6 + 6);
    EXPECT_EQ(seen.value().item(), 9 * 0 + 9 * 1 + 6 * 2 + 6 * 3);
    EXPECT_EQ(rows, rank == 1 ? (std::vector<std::int64_t>{3, 3, 0, 0}) : (std::vector<std::int64_t>{3, 3, 3, 3}));
  }));
}

TEST(DistributedData, FitGoesOnWithWeight0) {
  const auto dataset = [](int batches) {
    return data::from_generator<2>({Spec{f32, {any_size, 2}}, Spec{f32, {any_size, 1}}},
                                   [batches, next = 0]() mutable -> std::optional<std::pair<Tensor, Tensor>> {
                                     if (next == batches) return std::nullopt;
                                     ++next;
                                     return std::pair{full({8, 2}, next), full({8, 1}, next)};
                                   });
  };
  std::array<Trained, 2> all;
  expect_all_well(run_on_ranks({.ranks = 2}, [&](const Strategy& strategy, int rank) {
    Sequential model{Dense(1)};
    SGD optimizer({.learning_rate = 1e-3});
    const History history = fit(model, optimizer, MeanSquaredError(), dataset(rank == 0 ? 3 : 5),
                                {.epochs = 2, .strategy = strategy, .verbose = false});
    EXPECT_EQ(optimizer.iterations(), 10);
    all[static_cast<std::size_t>(rank)] = values_of(model.variables(), history.loss.back());
    const Evaluation evaluation =
        evaluate(model, MeanSquaredError(), dataset(rank == 0 ? 3 : 5), {.strategy = strategy});
    EXPECT_GT(evaluation.loss, 0);
  }));
  expect_same_bits(all[0], all[1], "ranks");
}

TEST(DistributedData, PredictNeedsAllRows) {
  const auto problems = run_on_ranks({.ranks = 2}, [](const Strategy& strategy, int rank) {
    Sequential model{Lambda([](Tensor x) { return x * 2; })};
    predict(model, generated(rank == 0 ? 2 : 3).map([](Tensor x) { return expand_dims(x, -1); }),
            {.strategy = strategy});
  });
  for (const std::string& problem : problems) expect_says(problem, "the data set has fewer batches on rank 0");
}

TEST(DistributedData, KnownLengthsThatDifferAreAnErrorOnEveryRank) {
  const auto expect_all_say = [](const std::vector<std::string>& problems, const std::string& what) {
    for (const std::string& problem : problems) expect_says(problem, what);
  };
  const auto of_rows = [](std::int64_t rows) {
    return data::from_tensor_slices(ones({rows, 2}), ones({rows, 1})).batch(4);
  };
  const auto fit_on = [](const Strategy& strategy, const Dataset<2>& dataset, std::int64_t steps = 0) {
    Sequential model{Dense(1)};
    SGD optimizer;
    fit(model, optimizer, MeanSquaredError(), dataset,
        {.steps_per_epoch = steps, .strategy = strategy, .verbose = false});
  };
  expect_all_say(run_on_ranks({.ranks = 2},
                              [&](const Strategy& strategy, int rank) { fit_on(strategy, of_rows(12 + 4 * rank), 9); }),
                 "not the same number of elements: 3 on rank 0");
  expect_all_say(run_on_ranks({.ranks = 3}, [&](const Strategy& strategy,
                                                int rank) { fit_on(strategy, of_rows(rank == 2 ? 16 : 12)); }),
                 "not the same number of elements: 3 on rank 0");
  expect_all_say(
      run_on_ranks({.ranks = 2}, [&](const Strategy& strategy, int rank) { fit_on(strategy, of_rows(12 - rank)); }),
      "not the same number of rows: 12 on rank 0");
  expect_all_say(run_on_ranks({.ranks = 2},
                              [&](const Strategy& strategy, int rank) {
                                strategy.distribute(rank == 0 ? data::from_tensor_slices(ones({6})).batch(2)
                                                              : data::from_tensor_slices(ones({9})).batch(3));
                              }),
                 "not the same number of rows: 6 on rank 0");
  expect_all_say(run_on_ranks({.ranks = 2},
                              [&](const Strategy& strategy, int rank) {
                                if (rank == 0) strategy.distribute(generated(3));
                                else strategy.distribute(data::from_tensor_slices(ones({6})).batch(2));
                              }),
                 "elements: a number that is not known on rank 0");
}

TEST(DistributedData, BatchesOfOtherSizesAreAnErrorOnEveryRank) {
  const auto problems = run_on_ranks({.ranks = 2}, [](const Strategy& strategy, int rank) {
    for (const Tensor x : strategy.distribute(generated(3, rank == 0 ? 8 : 6))) (void)x;
  });
  for (const std::string& problem : problems) expect_says(problem, "batch 0 of the data set has 6 rows on rank 1");
}

TEST(DistributedData, OthersAreToldWhyOneCannotRead) {
  const auto problems = run_on_ranks({.ranks = 2}, [](const Strategy& strategy, int rank) {
    Sequential model{Dense(1)};
    SGD optimizer;
    const auto dataset =
        data::from_generator<2>({Spec{f32, {any_size, 2}}, Spec{f32, {any_size, 1}}},
                                [rank, next = 0]() mutable -> std::optional<std::pair<Tensor, Tensor>> {
                                  if (rank == 1 && next == 2) throw DataError("a torn tape");
                                  if (next++ == 5) return std::nullopt;
                                  return std::pair{ones({8, 2}), ones({8, 1})};
                                });
    fit(model, optimizer, MeanSquaredError(), dataset, {.strategy = strategy, .verbose = false});
  });
  expect_says(problems[1], "a torn tape");
  expect_says(problems[0], "rank 1 (");
  expect_says(problems[0], "a torn tape");
}

TEST(DistributedData, FitTakesWhatIsDistributed) {
  const auto fitted = [](const Strategy& strategy, bool by_hand) {
    set_seed(5);
    Sequential model{Dense(3)};
    Adam optimizer;
    const Dataset<2> dataset = by_hand ? strategy.distribute(batches()) : batches();
    const History history = fit(model, optimizer, SparseCategoricalCrossentropy(from_logits), dataset.take(3),
                                {.epochs = 2, .strategy = strategy, .verbose = false});
    return values_of(model.variables(), history.loss.back());
  };
  expect_all_well(run_on_ranks({.ranks = 2}, [&](const Strategy& strategy, int) {
    expect_same_bits(fitted(strategy, false), fitted(strategy, true), "distributed by hand");
  }));
  const auto problems = run_on_ranks({.ranks = 2}, [&](const Strategy& strategy, int) {
    const Dataset<1> rows = strategy.distribute(data::from_tensor_slices(ones({8, 2})).batch(4));
    for (const Tensor x : strategy.distribute(data::zip(rows, rows).map([](Tensor a, Tensor) { return a; }))) (void)x;
    for (auto [a, b] : strategy.distribute(data::zip(rows, rows))) (void)a;
  });
  for (const std::string& problem : problems) expect_says(problem, "is distributed twice");
}

TEST(DistributedData, MistakesAreNamed) {
  const auto said_by = [](const std::function<void(const Strategy&, const Tensor& part, int rank)>& use) {
    const auto problems = run_on_ranks({.ranks = 2}, [&](const Strategy& strategy, int rank) {
      for (const Tensor part : strategy.distribute(data::from_tensor_slices(random::normal({8}, {.seed = 1})).batch(8)))
        use(strategy, part, rank);
    });
    EXPECT_NE(problems[0], "");
    EXPECT_NE(problems[1], "");
    return problems[0] + "\n" + problems[1];
  };
  const auto step = [](Tensor x) { return all_reduce_sum(reduce_sum(x)); };
  const auto both = [](Tensor x, Tensor y) { return all_reduce_sum(reduce_sum(x) + reduce_sum(y)); };
  expect_says(said_by([&](const Strategy& strategy, const Tensor& part, int) { strategy.run(step, part * 2); }),
              "is not the same on all ranks");
  expect_says(said_by([&](const Strategy& strategy, const Tensor& part, int) { strategy.run(both, part, part * 2); }),
              "some are parts of it");
  expect_says(said_by([&](const Strategy& strategy, const Tensor& part, int) {
                static std::mutex guard;
                static std::vector<Tensor> kept;
                const std::lock_guard lock(guard);
                kept.push_back(part);
                if (kept.size() == 2) strategy.run(step, kept[0]);
                else throw InvalidArgument("another strategy");
              }),
              "another strategy");
}

}  // namespace
}  // namespace gradus::distributed_data_test
