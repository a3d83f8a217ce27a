/// Batch sizes with a clock that says what it is told: where the knee is, where memory ends, and what stays as it was.
#include "gradus/train/batch_size.h"
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_state.h"
#include "gradus/optim/optimizers.h"
#include "gradus/tensor/memory.h"
#include "tests/errors.h"

namespace gradus::batch_size_test {
namespace {

/// A step of n examples takes seconds_of(n), as far as the clock says.
struct Pretended {
  Tensor x = random::normal({600, 3}, {.seed = 1});
  Dataset<2> examples = data::from_tensor_slices(x, x.rows(0, 600));
  Sequential model{Dense(3)};
  SGD optimizer{{.learning_rate = 0.1}};
  std::function<double(double)> seconds_of = [](double) { return 1.0; };
  std::int64_t size = 0;
  double now = 0;

  BatchSizes run(BatchSizeOptions options) {
    options.clock = [this, asked = 0]() mutable {
      if (++asked % 2 == 0) now += seconds_of(static_cast<double>(size));
      return now;
    };
    const auto batches = [this](std::int64_t wanted) {
      size = wanted;
      return examples.batch(wanted);
    };
    return tune_batch_size(model, optimizer, MeanSquaredError(), batches, options);
  }
};

std::vector<std::int64_t> sizes_of(const BatchSizes& sizes) {
  std::vector<std::int64_t> result;
  for (const BatchSizeRow& row : sizes.rows) result.push_back(row.batch_size);
  return result;
}

TEST(BatchSize, TheKneeOfTheThroughput) {
  struct Case {
    std::function<double(double)> seconds_of;
    double tolerance;
    std::int64_t chosen;
    std::vector<std::int64_t> sizes;
  };
  const std::vector<Case> cases{
      // A fixed cost of 20 examples: throughput is 0.29, 0.44, 0.62, 0.76, 0.86, 0.93, 0.96 of the most.
      {[](double n) { return 20 + n; }, 0.1, 256, {8, 16, 32, 64, 128, 256, 512}},
      {[](double n) { return 20 + n; }, 0.3, 32, {8, 16, 32, 64}},
      {[](double n) { return n; }, 0.1, 8, {8, 16, 32}},                       // larger ones bring nothing
      {[](double) { return 1.0; }, 0.1, 512, {8, 16, 32, 64, 128, 256, 512}},  // up to all that there is
      {[](double n) { return n > 32 ? n * n / 32 : 32; }, 0.1, 32, {8, 16, 32, 64, 128}},
      // One size that is slow does not end it.
      {[](double n) { return n == 16 ? 50 : 20 + n; }, 0.3, 32, {8, 16, 32, 64, 128}}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Pretended training;
    training.seconds_of = cases[i].seconds_of;
    const BatchSizes sizes = training.run({.steps = 1, .tolerance = cases[i].tolerance});
    EXPECT_EQ(sizes.batch_size, cases[i].chosen) << i;
    EXPECT_EQ(sizes_of(sizes), cases[i].sizes) << i;
    for (const BatchSizeRow& row : sizes.rows) {
      const auto n = static_cast<double>(row.batch_size);
      EXPECT_DOUBLE_EQ(row.seconds, cases[i].seconds_of(n)) << i;
      EXPECT_DOUBLE_EQ(row.examples_per_second, n / row.seconds) << i;
      EXPECT_GT(row.peak_bytes, 0u);
    }
  }
}

TEST(BatchSize, TheMedianCounts) {
  Pretended training;
  int step = 0;
  training.seconds_of = [&](double) { return ++step % 5 == 0 ? 1000.0 : 2.0; };
  const BatchSizes sizes = training.run({.min_batch_size = 4, .max_batch_size = 4, .steps = 5});
  EXPECT_EQ(sizes_of(sizes), std::vector<std::int64_t>{4});
  EXPECT_EQ(sizes.rows[0].seconds, 2);
}

TEST(BatchSize, NothingOfTheProgramChanges) {
  Pretended training;
  training.model.build({f32, {any_size, 3}});
  const Tensor before = training.model.variables()[0].value();
  training.optimizer.build(training.model.trainable_variables());
  const std::uint64_t random = random_state();
  const std::size_t limit = memory_use().limit_bytes;
  training.run({.max_batch_size = 32, .memory_limit = memory_use().live_bytes + 64 * MiB, .steps = 2});
  EXPECT_TRUE(bitwise_equal(before, training.model.variables()[0].value()));
  EXPECT_EQ(training.optimizer.iterations(), 0);
  EXPECT_EQ(random_state(), random);
  EXPECT_EQ(memory_use().limit_bytes, limit);
}

/// Each example needs some 20 KiB.
TEST(BatchSize, MemoryEndsIt) {
  const Tensor x = random::normal({64, 1000}, {.seed = 1});
  const auto examples = data::from_tensor_slices(x, x);
  Sequential model{Dense(512, relu), Dense(1000)};
  model.build({f32, {any_size, 1000}});
  SGD optimizer({.learning_rate = 1e-3});
  const auto batches = [&](std::int64_t size) { return examples.repeat(1024).batch(size); };
  double now = 0;
  BatchSizeOptions options{.min_batch_size = 64, .steps = 1, .clock = [&] { return now += 1; }};
  (void)model.variables()[0].value();
  options.memory_limit = memory_use().live_bytes + 64 * MiB;
  const std::size_t limit = memory_use().limit_bytes;
  const BatchSizes sizes = tune_batch_size(model, optimizer, MeanSquaredError(), batches, options);
  ASSERT_GE(sizes.rows.size(), 2u);
  const BatchSizeRow& last = sizes.rows.back();
  EXPECT_NE(last.reason, "") << "the next one had no room";
  EXPECT_LE(last.batch_size, 8192);
  EXPECT_EQ(sizes.batch_size, sizes.rows[sizes.rows.size() - 2].batch_size) << "the clock says: the larger the better";
  for (const BatchSizeRow& row : sizes.rows) EXPECT_LE(row.peak_bytes, options.memory_limit);
  EXPECT_EQ(memory_use().limit_bytes, limit);
  expect_says(sizes.table().csv(), "memory limit");
  EXPECT_EQ(sizes.picture()[0].series[0].x.size(), sizes.rows.size() - 1);
  options.memory_limit = memory_use().live_bytes + MiB;
  expect_says(error_of<ResourceExhausted>(
                  [&] { (void)tune_batch_size(model, optimizer, MeanSquaredError(), batches, options); }),
              "the smallest size, 64");
  EXPECT_EQ(memory_use().limit_bytes, limit);
}

TEST(BatchSize, WhatDoesNotFitIsRefused) {
  Pretended training;
  EXPECT_THROW(training.run({.min_batch_size = 0}), InvalidArgument);
  EXPECT_THROW(training.run({.min_batch_size = 9, .max_batch_size = 8}), InvalidArgument);
  EXPECT_THROW(training.run({.steps = 0}), InvalidArgument);
  EXPECT_THROW(training.run({.tolerance = std::nan("")}), InvalidArgument);
  expect_says(error_of<DataError>([&] { training.run({.min_batch_size = 601}); }), "601");
  const auto plain = [](Tensor y, Tensor p) { return Loss::mean(y + p); };
  const auto no_batches = [&](std::int64_t) { return data::from_tensor_slices(training.x, training.x); };
  EXPECT_THROW((void)tune_batch_size(training.model, training.optimizer, plain, no_batches), Error);
  const auto batches = [&](std::int64_t size) { return training.examples.batch(size); };
  expect_error<InvalidArgument>(
      [&] { (void)tune_batch_size(shared(training.model), training.optimizer, MeanSquaredError(), batches); },
      {"tune_batch_size", "shared()"});
}

}  // namespace
}  // namespace gradus::batch_size_test
