/// What a model gains by being made smaller: half of its channels taken out, its kernels replaced by thin ones, and
/// what zeros alone gain.
#include "bench/convolutional.h"
#include "bench/inputs.h"
#include "bench/training.h"
#include "gradus/nn/channels.h"
#include "gradus/nn/low_rank.h"
#include "gradus/nn/sparsity.h"

namespace gradus::bench {
namespace {

std::int64_t bytes_of_weights(const Module& model) {
  const SparsityReport report = sparsity_report(model);
  return report.total.dense_bytes + report.other_bytes;
}

/// Median microseconds of a prediction and of a step of training, and the bytes of all variables.
nlohmann::ordered_json measured(Sequential model, const Tensor& x, const Tensor& y) {
  const auto predict = function([&](Tensor images) { return model(images, inference); }, function_options);
  const SparseCategoricalCrossentropy loss_function(from_logits);
  SGD optimizer({.learning_rate = 0.01});
  const auto train = train_step(model, optimizer, loss_function);
  const auto median = [](const std::function<void()>& run) {
    return measure({.step = [&] { run(), synchronize(); }, .step_without_reading = run, .wait = synchronize}).median_us;
  };
  return {{"predict_us", median([&] { predict(x).observed(); })},
          {"train_us", median([&] { train(x, y).item(); })},
          {"bytes", bytes_of_weights(model)}};
}

/// The figures of all of them; the median is that of a prediction by the smaller model.
Figures compare(const Sequential& model, const Sequential& smaller, const Batch& batch) {
  const auto& [x, y] = batch;
  Figures figures;
  figures.extra["whole"] = measured(model, x, y);
  figures.extra["smaller"] = measured(smaller, x, y);
  figures.median_us = figures.extra["smaller"]["predict_us"];
  Sequential pruned = model;
  prune_to(pruned, 0.8);
  const SparsityReport report = sparsity_report(pruned);
  figures.extra["pruned"] = measured(pruned, x, y);
  figures.extra["pruned"]["stored_bytes"] = report.total.sparse_bytes + report.other_bytes;
  return figures;
}

/// The network of workload cnn without half of its channels.
Figures channels() {
  Sequential model = convolutional_network();
  const Batch batch = batch_of({64, 28, 28, 1});
  model.build(batch.x.spec());
  Sequential masked = model;
  prune_channels(masked, 0.5);
  return compare(model, remove_pruned_channels(masked), batch);
}

/// 784-512-512-10 at rank 64.
Figures thin() {
  Sequential model{Dense(512, relu), Dense(512, relu), Dense(10)};
  const Batch batch = batch_of({64, 784});
  model.build(batch.x.spec());
  const double start = seconds_now();
  const Sequential smaller = low_rank(model, {.rank = 64});
  const double took = seconds_now() - start;
  Figures figures = compare(model, smaller, batch);
  figures.extra["decomposition_s"] = took;
  return figures;
}

}  // namespace

void add_smaller(Workloads& workloads) {
  workloads["channels"] = channels;
  workloads["low_rank"] = thin;
}

}  // namespace gradus::bench
