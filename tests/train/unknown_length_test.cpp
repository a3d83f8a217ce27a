/// fit, evaluate and predict by data whose number of elements is found out by reading, or that have no end.
#include <gtest/gtest.h>
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/metrics.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/fit.h"
#include "gradus/train/progress.h"
#include "tests/errors.h"
#include "tests/train/checkpoint_samples.h"

namespace gradus::unknown_length_test {
namespace {

constexpr std::int64_t rows = 70, batch = 16, steps_of_pass = 5;

Dataset<2> examples() {
  const Tensor x = random::normal({rows, 5}, {.seed = 1});
  return data::from_tensor_slices(x, reduce_sum(x, {.axis = {1}, .keepdims = true})).shuffle({.seed = 4});
}
Dataset<2> counted() { return examples().batch(batch).prefetch(); }

/// The same batches, counted by nobody.
Dataset<2> filtered() {
  return examples().filter([](Tensor x, Tensor) { return reduce_all(x < 1e9); }).batch(batch).prefetch();
}
Dataset<2> interleaved() {
  return data::range(1).interleave([](Tensor) { return examples(); }).batch(batch);
}
Dataset<2> unbatched() { return examples().batch(7).unbatch().batch(batch).prefetch(); }
/// Always in the order of epoch 0.
Dataset<2> generated() {
  const auto numbers = std::array{Spec{f32, {5}}, Spec{f32, {1}}};
  return data::from_generator<2>(numbers,
                                 [i = std::int64_t{0}]() mutable -> std::optional<std::pair<Tensor, Tensor>> {
                                   if (i == rows) return std::nullopt;
                                   const auto [x, y] = examples().skip(i++).first();
                                   return std::pair{x, y};
                                 })
      .batch(batch);
}

struct Training {
  Sequential model{Dense(12, relu), Dropout(0.3), Dense(1)};
  Adam optimizer{{.learning_rate = 0.02}};
  FitOptions options{.epochs = 4, .metrics = {MeanAbsoluteError()}, .verbose = false};
  History run(const Dataset<2>& dataset) { return fit(model, optimizer, MeanSquaredError(), dataset, options); }
};

void expect_same(const Training& a, const Training& b) {
  const Variables of_a = a.model.variables() + a.optimizer.variables(),
                  of_b = b.model.variables() + b.optimizer.variables();
  ASSERT_EQ(of_a.size(), of_b.size());
  for (std::size_t i = 0; i < of_a.size(); ++i)
    EXPECT_TRUE(bitwise_equal(of_a[i].value(), of_b[i].value())) << of_a[i].name();
}

Callback stop_after(std::int64_t steps) {
  return {.on_step_end = [steps](const StepLog& log) { log.stop = log.stop || log.step == steps; }};
}

TEST(UnknownLength, FitsAsIfItWereKnown) {
  struct Case {
    const char* what;
    Dataset<2> known, unknown;
  };
  const std::vector<Case> cases{{"filter", counted(), filtered()},
                                {"interleave", counted(), interleaved()},
                                {"unbatch", counted(), unbatched()},
                                {"generator", examples().epoch(0).cache().batch(batch), generated()}};
  for (const auto& [what, known, unknown] : cases) {
    SCOPED_TRACE(what);
    EXPECT_TRUE(known.cardinality().has_value());
    set_seed(9);
    Training one;
    one.options.epochs = 3;
    one.options.validation = known;
    const History expected = one.run(known);
    set_seed(9);
    Training other;
    other.options = one.options;
    other.options.validation = unknown;
    const History got = other.run(unknown);
    expect_same(one, other);
    EXPECT_EQ(got.loss, expected.loss);
    EXPECT_EQ(got.validation_loss, expected.validation_loss);
    EXPECT_EQ(evaluate(one.model, MeanSquaredError(), unknown).loss,
              evaluate(one.model, MeanSquaredError(), known).loss);
  }
}

TEST(UnknownLength, ResumesWithinAnEpoch) {
  for (const auto& dataset : {filtered(), generated()}) {
    set_seed(11);
    Training straight;
    const History whole = straight.run(dataset);
    const TestDirectory directory("unknown_length");
    set_seed(11);
    for (const std::int64_t stop : {3, 12}) {
      Training part;
      part.options.checkpoints = {.directory = directory, .every_steps = 2};
      part.options.callbacks = {stop_after(stop)};
      part.run(dataset);
      set_seed(99);
    }
    Training rest;
    rest.options.checkpoints = {.directory = directory};
    EXPECT_EQ(rest.run(dataset).loss, std::vector<double>(whole.loss.begin() + 2, whole.loss.end()));
    expect_same(straight, rest);
  }
}

TEST(UnknownLength, OfNothing) {
  Training training;
  const auto none = examples().filter([](Tensor x, Tensor) { return reduce_any(x > 1e9); }).batch(batch);
  expect_says(error_of<DataError>([&] { training.run(none); }), "empty");
  expect_says(error_of<DataError>([&] { evaluate(training.model, MeanSquaredError(), none); }), "empty");
  const auto inputs = none.map([](Tensor x, Tensor) { return x; });
  expect_says(error_of<DataError>([&] { predict(training.model, inputs); }), "empty");
  training.options.steps_per_epoch = 3;
  expect_says(error_of<DataError>([&] { training.run(none); }), "empty");
  expect_says(error_of<DataError>([&] { training.run(counted().take(0)); }), "empty");
  EXPECT_EQ(training.optimizer.iterations(), 0);
}

/// The batches that a training saw, by the sum of their inputs.
struct Seen {
  std::shared_ptr<std::vector<double>> sums = std::make_shared<std::vector<double>>();
  Dataset<2> watched(const Dataset<2>& dataset) const {
    return data::from_generator<2>({Spec{f32, {any_size, 5}}, Spec{f32, {any_size, 1}}},
                                   [all = sums, next = dataset.begin()]() mutable -> std::optional<Tensors2> {
                                     if (next == std::default_sentinel) return std::nullopt;
                                     const auto [x, y] = *next;
                                     all->push_back(reduce_sum(x).item());
                                     ++next;
                                     return std::pair{x, y};
                                   });
  }
  using Tensors2 = std::pair<Tensor, Tensor>;
};

/// What `dataset` gives in the first `steps` steps.
std::vector<double> sums_of(const Dataset<2>& dataset, std::int64_t steps) {
  std::vector<double> sums;
  for (auto [x, y] : dataset.take(steps)) sums.push_back(reduce_sum(x).item());
  return sums;
}

TEST(StepsPerEpoch, GoOnInTheData) {
  const Seen seen;
  Training training;
  training.options.epochs = 3;
  training.options.steps_per_epoch = 4;
  const History history = training.run(seen.watched(counted().repeat()));
  EXPECT_EQ(history.loss.size(), 3u);
  EXPECT_EQ(training.optimizer.iterations(), 12);
  EXPECT_EQ(*seen.sums, sums_of(counted().repeat(), 12)) << "no more is read than is needed";
}

TEST(StepsPerEpoch, AreTheSameStepsHoweverLongTheDataAre) {
  set_seed(7);
  Training by_repeat;
  by_repeat.options.epochs = 1;
  by_repeat.run(counted().repeat(3).take(12));
  for (const auto& dataset : {counted(), counted().repeat(), filtered(), filtered().repeat(), filtered().repeat(2)}) {
    set_seed(7);
    Training training;
    training.options.epochs = 3;
    training.options.steps_per_epoch = 4;
    EXPECT_EQ(training.run(dataset).loss.size(), 3u);
    for (std::size_t i = 0; i < training.model.variables().size(); ++i)
      EXPECT_TRUE(bitwise_equal(training.model.variables()[i].value(), by_repeat.model.variables()[i].value()));
  }
}

TEST(StepsPerEpoch, ResumeAnywhere) {
  for (const auto& dataset : {counted().repeat(), filtered(), generated()}) {
    set_seed(11);
    Training straight;
    straight.options.steps_per_epoch = 4;
    const History whole = straight.run(dataset);
    for (const std::vector<std::int64_t>& stops : std::vector<std::vector<std::int64_t>>{{4}, {3, 13}}) {
      const TestDirectory directory("steps_per_epoch");
      set_seed(11);
      for (const std::int64_t stop : stops) {
        Training part;
        part.options.steps_per_epoch = 4;
        part.options.checkpoints = {.directory = directory, .every_steps = 2};
        part.options.callbacks = {stop_after(stop)};
        part.run(dataset);
        set_seed(99);
      }
      Training rest;
      rest.options.steps_per_epoch = 4;
      rest.options.checkpoints = {.directory = directory};
      const History history = rest.run(dataset);
      EXPECT_EQ(history.loss, std::vector<double>(whole.loss.begin() + stops.back() / 4, whole.loss.end()));
      expect_same(straight, rest);
    }
  }
}

/// Saved behind the last step of an epoch, before the epoch was recorded.
TEST(StepsPerEpoch, ResumeBehindTheLastStep) {
  const TestDirectory directory("steps_last");
  set_seed(11);
  Training straight;
  straight.options.steps_per_epoch = 4;
  const History whole = straight.run(counted());
  set_seed(11);
  Training failing;
  failing.options.steps_per_epoch = 4;
  failing.options.checkpoints = {.directory = directory, .every_steps = 4};
  failing.options.callbacks = {{.on_epoch_end = [](const EpochLog&) { throw Unavailable("the power"); }}};
  EXPECT_THROW(failing.run(counted()), Unavailable);
  Training rest;
  rest.options.steps_per_epoch = 4;
  rest.options.checkpoints = {.directory = directory};
  EXPECT_EQ(rest.run(counted()).loss, whole.loss);
  expect_same(straight, rest);
  Training other;
  other.options.epochs = 9;
  other.options.steps_per_epoch = 4;
  other.options.checkpoints = {.directory = directory};
  other.options.callbacks = {stop_after(19)};
  other.run(counted());
  Training fewer;
  fewer.options = {.epochs = 9, .steps_per_epoch = 2, .verbose = false};
  fewer.options.checkpoints = {.directory = directory};
  expect_says(error_of([&] { fewer.run(counted()); }), "steps_per_epoch is 2");
}

TEST(StepsPerEpoch, NamesTheBatchThatDiverged) {
  const Tensor x = random::normal({40, 5}, {.seed = 1});
  const Tensor bad = concat({x.rows(0, 24), full({8, 5}, std::numeric_limits<float>::quiet_NaN()), x.rows(32, 40)});
  const auto good = data::from_tensor_slices(x, ones({40, 1})).batch(8);
  const auto dataset = data::range(2).flat_map(
      [&](Tensor n) { return n.item() == 0 ? good : data::from_tensor_slices(bad, ones({40, 1})).batch(8); });
  Training training;
  training.options.steps_per_epoch = 3;
  const std::string message = error_of<Diverged>([&] { training.run(dataset); });
  expect_says(message, "step 9 (epoch 3)");
  expect_says(message, "field 0 of this batch holds nan");
}

TEST(WithoutEnd, AskForANumberOfSteps) {
  Training training;
  const auto endless = counted().repeat();
  expect_says(error_of([&] { training.run(endless); }), "steps_per_epoch");
  expect_says(error_of([&] { evaluate(training.model, MeanSquaredError(), endless); }), ".take(steps)");
  expect_says(error_of([&] { predict(training.model, endless.map([](Tensor x, Tensor) { return x; })); }), "no end");
  training.options.steps_per_epoch = 2;
  training.options.validation = endless;
  expect_says(error_of([&] { training.run(endless); }), "validation set has no end");
  training.options.validation.reset();
  training.options.steps_per_epoch = -1;
  expect_says(error_of([&] { training.run(endless); }), "steps_per_epoch must not be negative");
  training.options.steps_per_epoch = std::numeric_limits<std::int64_t>::max();
  expect_says(error_of([&] { training.run(endless); }), "2^53");
  training.options.steps_per_epoch = 3;
  training.options.fast_dev_run = 2;
  EXPECT_EQ(training.run(endless).loss.size(), 1u);
  EXPECT_EQ(training.optimizer.iterations(), 2);
}

TEST(Predict, DataSets) {
  set_seed(1);
  Sequential model{Dense(3, tanh)};
  const Tensor x = random::normal({rows, 5}, {.seed = 1});
  const auto inputs = data::from_tensor_slices(x);
  const Tensor whole = predict(model, x, {.batch_size = 1000});
  for (const std::int64_t size : {1, 16, 70})
    EXPECT_TRUE(bitwise_equal(predict(model, inputs.batch(size)), whole)) << size;
  const auto unknown = inputs.filter([](Tensor row) { return reduce_all(row < 1e9); });
  EXPECT_TRUE(bitwise_equal(predict(model, unknown.batch(16).prefetch()), whole));
  Sequential fresh{Dense(3)};
  EXPECT_EQ(predict(fresh, inputs.batch(16)).shape(), (Shape{rows, 3})) << "it is built by the data";
  expect_says(error_of([&] { predict(model, data::range(4)); }), "scalar");
}

/// In the first epoch the number of steps is not known; the next ones show that of the last.
TEST(Progress, WithAndWithoutATotal) {
  Progress known(false, 3, 10), unknown(false, 3, std::nullopt);
  EXPECT_EQ(known.line(4, 2.0, {{"loss", 0.5}}), "epoch 1/3  step 4/10  ETA 3 s  500 ms/step  loss 0.5");
  EXPECT_EQ(unknown.line(4, 2.0, {}), "epoch 1/3  step 4  500 ms/step");
  unknown.end_epoch(7, false, 1.0, {});
  EXPECT_EQ(unknown.line(4, 2.0, {}), "epoch 1/3  step 4  500 ms/step") << "it was stopped";
  unknown.end_epoch(7, true, 1.0, {});
  unknown.begin_epoch(1);
  EXPECT_EQ(unknown.line(4, 2.0, {}), "epoch 2/3  step 4/7  ETA 2 s  500 ms/step");
  EXPECT_EQ(unknown.line(8, 4.0, {}), "epoch 2/3  step 8  500 ms/step") << "this epoch is longer";
}

}  // namespace
}  // namespace gradus::unknown_length_test
