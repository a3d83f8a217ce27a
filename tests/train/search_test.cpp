/// Searches: the same rows with any number of threads, mistakes as rows, halving that goes on where trials stood.
#include "gradus/train/search.h"
#include <gtest/gtest.h>
#include <atomic>
#include <cmath>
#include <map>
#include <set>
#include <thread>
#include "gradus/base/threads.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/noise.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_key.h"
#include "gradus/ops/random_state.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/halving.h"
#include "tests/errors.h"

namespace gradus::search_test {
namespace {

const SearchSpace rates = SearchSpace().log_uniform("rate", 1e-4, 1e-1).choice("clip", {0.1, 1.0});

/// A small training in which everything random takes part: weights, shuffles, dropout.
struct Toy {
  Tensor x = random::normal({120, 4}, {.seed = 1});
  Tensor y = sin(reduce_sum(x, {.axis = {1}, .keepdims = true}));
  Dataset<2> examples = data::from_tensor_slices(x.rows(0, 96), y.rows(0, 96));
  Dataset<2> validation = data::from_tensor_slices(x.rows(96, 120), y.rows(96, 120)).batch(12);

  static Sequential model() { return Sequential{Dense(8, tanh), Dropout(0.2), Dense(1)}; }
  static Adam optimizer(const SearchTrial& trial) {
    return Adam({.learning_rate = trial.number("rate"), .global_clipnorm = trial.number("clip")});
  }
  EpochTrainer trainer(const SearchTrial& trial) const {
    return epoch_trainer(model(), optimizer(trial), MeanSquaredError(), examples.shuffle().batch(16),
                         {.validation = validation, .verbose = false});
  }
  ScoreFunction whole(int epochs) const {
    return [this, epochs](const SearchTrial& trial) { return trainer(trial)(epochs); };
  }
};

/// What does not depend on time: everything but the seconds.
void expect_same(const SearchResult& a, const SearchResult& b) {
  ASSERT_EQ(a.rows.size(), b.rows.size());
  for (std::size_t i = 0; i < a.rows.size(); ++i) {
    const SearchRow &one = a.rows[i], &other = b.rows[i];
    EXPECT_EQ(one.trial.values, other.trial.values) << i;
    EXPECT_EQ(one.trial.seed, other.trial.seed) << i;
    EXPECT_EQ(one.state, other.state) << i << one.reason << other.reason;
    EXPECT_EQ(one.score, other.score) << i;
    EXPECT_EQ(one.progress, other.progress) << i;
  }
}

TEST(Search, TheSameRowsWithAnyNumberOfThreads) {
  const Toy toy;
  set_seed(3);
  const std::uint64_t before = random_state();
  const SearchResult one = random_search(rates, 5, toy.whole(2), {.seed = 4, .parallel = 1});
  EXPECT_EQ(random_state(), before) << "what the program draws later does not depend on the search";
  for (const SearchRow& row : one.rows) ASSERT_EQ(row.state, TrialState::done) << row.reason;
  expect_same(one, random_search(rates, 5, toy.whole(2), {.seed = 4, .parallel = 4}));
  (void)next_seed();
  expect_same(one, random_search(rates, 5, toy.whole(2), {.seed = 4}));
  const SearchResult other = random_search(rates, 5, toy.whole(2), {.seed = 5});
  EXPECT_NE(one.rows[0].score, other.rows[0].score);
}

TEST(Search, AGridMeetsEveryCombinationInOrder) {
  const auto space = SearchSpace().choice("a", {1.0, 2.0, 3.0}).choice("b", {10.0, 20.0});
  const SearchResult result = grid_search(
      space, [](const SearchTrial& trial) { return std::abs(10 * trial.number("a") - trial.number("b") - 5); });
  ASSERT_EQ(result.rows.size(), 6u);
  std::vector<double> scores;
  for (const SearchRow& row : result.rows) scores.push_back(*row.score);
  EXPECT_EQ(scores, (std::vector<double>{5, 15, 5, 5, 15, 5}));
  EXPECT_EQ(result.best().trial.index, 0) << "of equal ones the first";
  EXPECT_EQ(result.ranking(), (std::vector<std::size_t>{0, 2, 3, 5, 1, 4}));
  const SearchResult most = grid_search(
      space, [](const SearchTrial& trial) { return trial.number("a") * trial.number("b"); }, {.maximize = true});
  EXPECT_EQ(most.best().trial.number("a"), 3);
  EXPECT_EQ(most.best().trial.number("b"), 20);
}

TEST(Search, AMistakeIsARowAndTheOthersGoOn) {
  const auto space = SearchSpace().integers("n", 0, 5);
  const auto score = [](const SearchTrial& trial) -> double {
    switch (trial.integer("n")) {
      case 0: throw Diverged("step 3");
      case 1: throw ResourceExhausted("no memory");
      case 2: return std::nan("");
      case 3: throw 7;
      case 4: (void)trial.number("m");
    }
    return 0.5;
  };
  for (const int parallel : {1, 3}) {
    const SearchResult result = grid_search(space, score, {.parallel = parallel});
    const std::vector<TrialState> states{TrialState::diverged, TrialState::failed, TrialState::diverged,
                                         TrialState::failed,   TrialState::failed, TrialState::done};
    for (std::size_t i = 0; i < states.size(); ++i) {
      EXPECT_EQ(result.rows[i].state, states[i]) << i;
      EXPECT_EQ(result.rows[i].score.has_value(), i == 5);
      EXPECT_EQ(result.rows[i].reason.empty(), i == 5);
    }
    EXPECT_EQ(result.rows[1].reason, "no memory");
    expect_says(result.rows[2].reason, "nan");
    expect_says(result.rows[4].reason, "`m`");
    EXPECT_EQ(result.best().trial.index, 5);
  }
  const SearchResult none = grid_search(space, [](const SearchTrial&) -> double { throw Error("all wrong"); });
  expect_says(error_of([&] { (void)none.best(); }), "all wrong");
}

TEST(Search, ATrainingThatDivergesIsARow) {
  const Toy toy;
  const auto space = SearchSpace().choice("rate", {1e-2, 1e30});
  const SearchResult result = grid_search(space, [&](const SearchTrial& trial) {
    Sequential model = Toy::model();
    SGD optimizer({.learning_rate = trial.number("rate")});
    return fit(model, optimizer, MeanSquaredError(), toy.examples.batch(16), {.epochs = 3, .verbose = false})
        .loss.back();
  });
  EXPECT_EQ(result.rows[0].state, TrialState::done);
  EXPECT_EQ(result.rows[1].state, TrialState::diverged) << result.rows[1].reason;
  EXPECT_EQ(result.best().trial.index, 0);
}

TEST(Search, ATrainingThatFailedMayBeTriedAgain) {
  const Toy toy;
  int failures = 1;
  const Callback fails{.on_epoch_end = [&](const EpochLog&) {
    if (failures-- == 1) throw Error("once");
  }};
  const EpochTrainer trainer = epoch_trainer(Toy::model(), SGD({.learning_rate = 0.01}), MeanSquaredError(),
                                             toy.examples.batch(16), {.callbacks = {fails}, .verbose = false});
  EXPECT_THROW(trainer(2), Error);
  EXPECT_GT(trainer(2), 0);
  EXPECT_THROW(trainer(2), InvalidArgument) << "the number must rise";
  EXPECT_GT(trainer(3), 0);
}

TEST(Search, OptionsAreToldAndMayStop) {
  const auto space = SearchSpace().integers("n", 0, 9);
  const auto score = [](const SearchTrial& trial) { return static_cast<double>(trial.index); };
  std::set<std::int64_t> told;
  std::atomic<int> inside = 0;
  const auto note = [&](const SearchRow& row) {
    EXPECT_EQ(inside.fetch_add(1), 0) << "one at a time";
    told.insert(row.trial.index);
    --inside;
  };
  grid_search(space, score, {.parallel = 4, .on_trial = note});
  EXPECT_EQ(told.size(), 10u);
  int asked = 0;
  const SearchResult stopped = grid_search(space, score, {.parallel = 1, .stop = [&] { return ++asked > 3; }});
  EXPECT_EQ(stopped.rows[2].state, TrialState::done);
  EXPECT_EQ(stopped.rows[3].state, TrialState::not_run);
  EXPECT_EQ(stopped.ranking().front(), 0u);
  EXPECT_EQ(stopped.rows.size(), 10u);
  const auto breaks = [&](const SearchRow&) { throw Error("told too much"); };
  expect_says(error_of([&] { grid_search(space, score, {.parallel = 2, .on_trial = breaks}); }), "told too much");
}

TEST(Search, EachOfSeveralTrialsComputesOnItsOwnThread) {
  std::atomic<int> most = 0;
  const auto score = [&](const SearchTrial&) {
    most = std::max(most.load(), num_threads());
    set_num_threads(2);
    return 0.0;
  };
  const auto space = SearchSpace().integers("n", 0, 3);
  const SearchResult several = grid_search(space, score, {.parallel = 2});
  EXPECT_EQ(most, 1);
  for (const SearchRow& row : several.rows) expect_says(row.reason, "side by side");
  const int threads = num_threads();
  const SearchResult one = grid_search(space, score, {.parallel = 1});
  EXPECT_EQ(one.rows[0].state, TrialState::done) << one.rows[0].reason;
  set_num_threads(threads);
}

TEST(Search, SecondsAreThoseOfTheClock) {
  double now = 0;
  const SearchResult result = grid_search(SearchSpace().choice("s", {2.0, 0.5}),
                                          [&](const SearchTrial& trial) {
                                            now += trial.number("s");
                                            return 1.0;
                                          },
                                          {.parallel = 1, .clock = [&] { return now; }});
  EXPECT_EQ(result.rows[0].seconds, 2);
  EXPECT_EQ(result.rows[1].seconds, 0.5);
}

TEST(Search, WhatDoesNotFitIsRefused) {
  const auto score = [](const SearchTrial&) { return 0.0; };
  const auto make = [](const SearchTrial&) -> EpochTrainer { return [](int) { return 0.0; }; };
  EXPECT_THROW(grid_search({}, score), InvalidArgument);
  EXPECT_THROW(random_search(rates, 0, score), InvalidArgument);
  EXPECT_THROW(random_search(rates, 1 << 30, score), InvalidArgument);
  EXPECT_THROW(random_search(rates, 2, score, {.parallel = -1}), InvalidArgument);
  EXPECT_THROW(random_search(rates, 2, score, {.clock = nullptr}), InvalidArgument);
  EXPECT_THROW(successive_halving(rates, 0, {.max_epochs = 9}, make), InvalidArgument);
  EXPECT_THROW(successive_halving(rates, 9, {.max_epochs = 0}, make), InvalidArgument);
  EXPECT_THROW(successive_halving(rates, 9, {.max_epochs = 3, .min_epochs = 4}, make), InvalidArgument);
  EXPECT_THROW(hyperband(rates, {.max_epochs = 9, .factor = 1}, make), InvalidArgument);
  EXPECT_THROW(hyperband(rates, {.max_epochs = 2000000000, .factor = 2}, make), InvalidArgument);
  const SearchResult nothing =
      successive_halving(rates, 2, {.max_epochs = 2}, [](const SearchTrial&) { return EpochTrainer(); });
  expect_says(nothing.rows[0].reason, "no trainer");
}

/// Trials whose score after e epochs is known: value / e.
TEST(SuccessiveHalving, KeepsTheBestThirdInEachRound) {
  const auto space = SearchSpace().integers("value", 1, 9);
  const auto make = [](const SearchTrial& trial) -> EpochTrainer {
    return [value = trial.number("value"), before = 0](int epochs) mutable {
      EXPECT_LT(before, epochs);
      before = epochs;
      return value / epochs;
    };
  };
  std::set<std::int64_t> told;
  const SearchResult result = successive_halving(
      space, 9, {.max_epochs = 9}, make, {.on_trial = [&](const SearchRow& row) { told.insert(row.trial.index); }});
  EXPECT_EQ(told.size(), 9u);
  ASSERT_EQ(result.rows.size(), 9u);
  for (const SearchRow& row : result.rows) {
    const double value = row.trial.number("value");
    std::vector<std::pair<int, double>> expected{{1, value}};
    if (value <= 3) expected.emplace_back(3, value / 3);
    if (value <= 1) expected.emplace_back(9, value / 9);
    EXPECT_EQ(row.progress, expected) << value;
    EXPECT_EQ(row.state, value <= 1 ? TrialState::done : TrialState::dropped);
  }
  EXPECT_EQ(result.best().trial.number("value"), 1);
  const SearchResult most = successive_halving(space, 9, {.max_epochs = 4, .factor = 2}, make, {.maximize = true});
  EXPECT_EQ(most.best().trial.number("value"), 9);
  EXPECT_EQ(most.best().progress.size(), 3u);
}

TEST(SuccessiveHalving, WhatFailsOnTheWayIsOut) {
  const auto space = SearchSpace().integers("value", 1, 9);
  const auto make = [](const SearchTrial& trial) -> EpochTrainer {
    return [value = trial.number("value")](int epochs) -> double {
      if (value == 1 && epochs > 1) throw Diverged("late");
      return value <= 2 && epochs > 3 ? std::nan("") : value;
    };
  };
  const SearchResult result = successive_halving(space, 9, {.max_epochs = 9}, make);
  const auto row_of = [&](double value) -> const SearchRow& {
    for (const SearchRow& row : result.rows)
      if (row.trial.number("value") == value) return row;
    throw Error("no such row");
  };
  EXPECT_EQ(row_of(1).state, TrialState::diverged);
  EXPECT_EQ(row_of(1).reason, "late");
  EXPECT_EQ(row_of(2).state, TrialState::diverged);
  EXPECT_EQ(row_of(3).state, TrialState::dropped);
  EXPECT_EQ(result.best().trial.number("value"), 3) << "the one that was trained longest of those that stand";
}

/// Parts of a training are the training: dropout, shuffles and slots go on, whatever ran between.
TEST(SuccessiveHalving, SurvivorsGoOnFromWhereTheyStood) {
  const Toy toy;
  const auto make = [&](const SearchTrial& trial) { return toy.trainer(trial); };
  const SearchResult halved = successive_halving(rates, 4, {.max_epochs = 4, .factor = 2}, make, {.seed = 2});
  expect_same(halved, successive_halving(rates, 4, {.max_epochs = 4, .factor = 2}, make, {.seed = 2, .parallel = 3}));
  const SearchRow& best = halved.best();
  ASSERT_EQ(best.progress.size(), 3u);
  std::uint64_t state = random_state_of(best.trial.seed);
  const SeedScope seeds(state);
  EXPECT_EQ(toy.trainer(best.trial)(4), *best.score) << "the bits of the undisturbed training";
}

TEST(Hyperband, BracketsOfLiAndOthers) {
  // Table 1 of the paper, R = 81 and eta = 3: trials and epochs of the rounds of each bracket; the last bracket but one
  // has 6 trials by its formula (8 in the table, an older rounding).
  const std::vector<std::vector<std::pair<int, int>>> brackets{{{81, 1}, {27, 3}, {9, 9}, {3, 27}, {1, 81}},
                                                               {{34, 3}, {11, 9}, {3, 27}, {1, 81}},
                                                               {{15, 9}, {5, 27}, {1, 81}},
                                                               {{8, 27}, {2, 81}},
                                                               {{5, 81}}};
  std::map<int, int> expected, trained;
  for (const auto& bracket : brackets)
    for (const auto& [trials, epochs] : bracket) expected[epochs] += trials;
  std::size_t trials = 0;
  for (const auto& bracket : brackets) trials += static_cast<std::size_t>(bracket.front().first);
  const auto make = [](const SearchTrial& trial) -> EpochTrainer {
    return [rate = trial.number("rate")](int epochs) { return rate / epochs; };
  };
  const SearchResult result = hyperband(rates, {.max_epochs = 81}, make);
  EXPECT_EQ(result.rows.size(), trials);
  for (const SearchRow& row : result.rows)
    for (const auto& [epochs, score] : row.progress) ++trained[epochs];
  EXPECT_EQ(trained, expected);
  expect_same(result, hyperband(rates, {.max_epochs = 81}, make, {.parallel = 1}));
}

TEST(SearchResult, TablesAndPictures) {
  const auto space = SearchSpace().choice("optimizer", {"adam", "s\"g,d"}).integers("n", 1, 2);
  const SearchResult result = grid_search(space,
                                          [](const SearchTrial& trial) {
                                            if (trial.index == 1) throw Error("two\nlines");
                                            return 1.0 / 3 * static_cast<double>(trial.index + 1);
                                          },
                                          {.parallel = 1, .clock = [] { return 0.0; }});
  EXPECT_EQ(result.table().text(),
            "trial  optimizer  n     score  state   seconds  reason\n"
            "    0  adam       1  0.333333  done          0\n"
            "    2  s\"g,d      1         1  done          0\n"
            "    3  s\"g,d      2   1.33333  done          0\n"
            "    1  adam       2            failed        0  two lines\n");
  EXPECT_EQ(result.table().csv(),
            "trial,optimizer,n,score,state,seconds,reason\n"
            "0,adam,1,0.3333333333333333,done,0,\n"
            "2,\"s\"\"g,d\",1,1,done,0,\n"
            "3,\"s\"\"g,d\",2,1.3333333333333333,done,0,\n"
            "1,adam,2,,failed,0,\"two\nlines\"\n");
  const std::string lines = result.table().json_lines();
  EXPECT_TRUE(
      lines.starts_with("{\"trial\":0,\"optimizer\":\"adam\",\"n\":1,\"score\":0.3333333333333333,"
                        "\"state\":\"done\",\"seconds\":0.0,\"reason\":\"\"}\n"))
      << lines;
  expect_says(lines, "\"score\":null,\"state\":\"failed\"");
  const auto panels = result.picture();
  ASSERT_EQ(panels.size(), 2u);
  EXPECT_EQ(panels[0].categories, (std::vector<std::string>{"adam", "s\"g,d"}));
  EXPECT_EQ(panels[1].series[0].x, (std::vector<double>{1, 1, 2})) << "without the one that failed";
  const auto make = [](const SearchTrial& trial) -> EpochTrainer {
    return [&trial](int epochs) { return trial.number("n") / epochs; };
  };
  const SearchResult halved = successive_halving(space, 4, {.max_epochs = 4, .factor = 2}, make);
  EXPECT_EQ(halved.picture().size(), 3u);
  EXPECT_EQ(halved.picture()[2].series.size(), 4u);
  expect_says(halved.table().csv(), "trial,optimizer,n,epochs,score");
}

}  // namespace
}  // namespace gradus::search_test
