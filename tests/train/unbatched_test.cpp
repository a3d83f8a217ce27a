/// A data set that was not batched is refused by all that take batches, unless that is declared.
#include <gtest/gtest.h>
#include "gradus/data/files.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/model.h"
#include "gradus/nn/regression_losses.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/batch_size.h"
#include "gradus/train/fit.h"
#include "gradus/train/learning_rate_range.h"
#include "gradus/train/precision_report.h"
#include "tests/errors.h"

namespace gradus::unbatched_test {
namespace {

Tensor features() { return random::normal({12, 4}, {.seed = 1}); }
Tensor targets() { return random::normal({12, 1}, {.seed = 2}); }
Dataset<2> examples() { return data::from_tensor_slices(features(), targets()); }
const FitOptions quiet{.verbose = false};

void expect_unbatched(const auto& use) {
  const std::string message = error_of<InvalidArgument>(use);
  expect_says(message, ".batch(");
  expect_says(message, "unbatched");
}

template <std::size_t N> void expect_refused(const Dataset<N>& data) {
  Sequential model{Dense(1)};
  SGD optimizer;
  expect_unbatched([&] { fit(model, optimizer, MeanSquaredError(), data, quiet); });
  expect_unbatched([&] { evaluate(model, MeanSquaredError(), data); });
}
template <std::size_t N> void expect_taken(const Dataset<N>& data) {
  Sequential model{Dense(1)};
  SGD optimizer;
  EXPECT_NO_THROW(fit(model, optimizer, MeanSquaredError(), data, quiet));
  EXPECT_NO_THROW(evaluate(model, MeanSquaredError(), data));
}

TEST(Unbatched, IsRefusedWhateverStandsBetween) {
  const Dataset<2> data = examples();
  const auto same = [](Tensor x, Tensor y) { return std::pair{x * 2, y}; };
  expect_refused(data);
  expect_refused(data.shuffle());
  expect_refused(data.shuffle(4).prefetch());
  expect_refused(data.map(same));
  expect_refused(data.map(same).take(8).skip(1).repeat(2));
  expect_refused(data.cache());
  expect_refused(data.shard(2, 0));
  expect_refused(data.filter([](Tensor x, Tensor) { return reduce_sum(x) < 100; }));
  expect_refused(data.epoch(1));
  expect_refused(data.batch(4).unbatch());
  expect_refused(data.interleave(
      [](Tensor x, Tensor y) { return data::from_tensor_slices(expand_dims(x, 0), expand_dims(y, 0)); }));
  expect_refused(data::zip(data::from_tensor_slices(features()), data::from_tensor_slices(targets())));
  expect_refused(data::zip(data::from_tensor_slices(features()).batch(4), data::from_tensor_slices(targets())));
}

TEST(Unbatched, BatchesAreTakenWhateverStandsBetween) {
  const Dataset<2> data = examples().batch(4);
  expect_taken(data);
  expect_taken(data.shuffle().map([](Tensor x, Tensor y) { return std::pair{x * 2, y}; }).prefetch());
  expect_taken(examples().padded_batch(4));
  expect_taken(examples().batch(2).batch(2).unbatch());
  expect_taken(data::zip(data::from_tensor_slices(features()).batch(4), data::from_tensor_slices(targets()).batch(4)));
  expect_taken(examples().map([](Tensor x, Tensor y) { return std::pair{expand_dims(x, 0), expand_dims(y, 0)}; }));
  expect_taken(data.interleave([](Tensor x, Tensor y) { return data::from_tensor_slices(x, y).batch(2); }));
}

/// Of a generator nobody knows what its elements are, but a scalar is no batch.
TEST(Unbatched, OfGenerators) {
  const auto of = [](Shape x, Shape y) {
    return data::from_generator(std::array{Spec{f32, x}, Spec{f32, y}},
                                [=, i = 0]() mutable -> std::optional<std::pair<Tensor, Tensor>> {
                                  if (i++ == 3) return std::nullopt;
                                  return std::pair{ones(x), ones(y)};
                                });
  };
  const auto said = [](const auto& data) {
    testing::internal::CaptureStderr();
    expect_taken(data);
    return testing::internal::GetCapturedStderr();
  };
  expect_says(said(of({4, 2}, {4, 1})), "is taken for a batch of 4 examples; if it is one example, write .batch(32)");
  expect_refused(of({2}, {}));
  expect_refused(of({2}, {1}));     // one example: its x has two features
  expect_refused(of({3, 2}, {1}));  // a sequence and its target
  EXPECT_EQ(said(of({2}, {1}).batch(3)).find("taken for"), std::string::npos);
  const auto open = data::from_generator(std::array{Spec{f32, {any_size, 2}}, Spec{f32, {any_size, 1}}},
                                         [i = 0]() mutable -> std::optional<std::pair<Tensor, Tensor>> {
                                           if (i++ == 3) return std::nullopt;
                                           return std::pair{ones({4, 2}), ones({4, 1})};
                                         });
  EXPECT_EQ(said(open).find("taken for"), std::string::npos) << "it says that rows vary";
}

TEST(Unbatched, IsRefusedAsValidationAndByAllThatTrain) {
  Sequential model{Dense(1)};
  SGD optimizer;
  const Dataset<2> data = examples(), batches = data.batch(4);
  expect_unbatched([&] { fit(model, optimizer, MeanSquaredError(), batches, {.validation = data, .verbose = false}); });
  expect_unbatched([&] { learning_rate_range_test(model, optimizer, MeanSquaredError(), data); });
  expect_unbatched([&] { precision_report(model, MeanSquaredError(), data); });
  expect_unbatched([&] { tune_batch_size(model, optimizer, MeanSquaredError(), [&](std::int64_t) { return data; }); });
  expect_unbatched([&] { predict(model, data::from_tensor_slices(features())); });
  EXPECT_EQ(predict(model, data::from_tensor_slices(features()).batch(5)).shape(), (Shape{12, 1}));
}

/// A model and a loss of single examples say so.
TEST(Unbatched, SingleExamplesAreDeclared) {
  Sequential model{Dense(1)};
  SGD optimizer;
  const auto loss = [](Tensor y, Tensor prediction) { return Loss::of(reduce_mean(square(y - prediction))); };
  const Dataset<2> data = examples();
  EXPECT_EQ(fit(model, optimizer, loss, data, {.verbose = false, .unbatched = true}).loss.size(), 1u);
  EXPECT_EQ(optimizer.iterations(), 12);
  EXPECT_NO_THROW(evaluate(model, loss, data, {.unbatched = true}));
  EXPECT_NO_THROW(precision_report(model, loss, data, {.unbatched = true}));
  EXPECT_NO_THROW(learning_rate_range_test(model, optimizer, loss, data, {.steps = 5, .unbatched = true}));
  EXPECT_NO_THROW(predict(model, data::from_tensor_slices(features()), {.unbatched = true}));
}

/// Batches that were made by hand lie in one tensor.
TEST(Unbatched, BatchesMadeByHandAreDeclared) {
  Sequential model{Dense(1)};
  SGD optimizer;
  const auto data = data::from_tensor_slices(reshape(features(), {3, 4, 4}), reshape(targets(), {3, 4, 1}));
  expect_unbatched([&] { fit(model, optimizer, MeanSquaredError(), data, quiet); });
  EXPECT_NO_THROW(fit(model, optimizer, MeanSquaredError(), data, {.verbose = false, .unbatched = true}));
  EXPECT_EQ(optimizer.iterations(), 3);
}

}  // namespace
}  // namespace gradus::unbatched_test
