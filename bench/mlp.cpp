/// Training steps of multi-layer perceptrons: one batch size, new batch sizes, and the first step of a process.
#include <algorithm>
#include <vector>
#include "bench/classifier.h"
#include "bench/cold.h"
#include "bench/workloads.h"
#include "gradus/function/synchronize.h"
#include "gradus/profile/profile.h"
#include "gradus/train/fit.h"

namespace gradus::bench {
namespace {

Figures train_mlp(const std::vector<std::int64_t>& hidden, std::int64_t rows, const Policy& policy = float32) {
  Classifier classifier(hidden, policy);
  const auto [x, y] = batch_of({rows_of_batch(rows), 784});
  classifier.model.build(x.spec());
  assign_given(classifier.model.trainable_variables());
  classifier.optimizer.build(classifier.model.trainable_variables());
  return measure_training(classifier.train_step(), x, y);
}

/// What the perceptron predicts for one row, read at once.
Figures predict_row() {
  Classifier classifier({128});
  const Tensor x = batch_of({1, 784}).x;
  classifier.model.build(x.spec());
  assign_given(classifier.model.trainable_variables());
  Tensor kept;
  return measure({.step = [&] { predict(classifier.model, x).observed(); },
                  .step_without_reading = [&] { kept = predict(classifier.model, x); },
                  .wait = synchronize});
}

/// The step at batch sizes that it has not seen: seconds of each call.
Figures retrace() {
  Classifier classifier({128});
  const auto train_step = classifier.train_step();
  nlohmann::ordered_json calls;
  for (std::int64_t rows : {64, 64, 48, 48, 80, 80, 96, 96, 112}) {
    const auto [x, y] = batch_of({rows, 784});
    synchronize();
    const double start = seconds_now();
    train_step(x, y).item();
    calls[std::to_string(rows)].push_back(seconds_now() - start);
  }
  Figures figures;
  figures.extra = {{"calls_s", calls}, {"variants", train_step.explain().variants}};
  return figures;
}

/// The step of mlp_tiny without and with a profile, in turn: what a profile costs.
Figures profiled() {
  constexpr int pairs = 100, steps = 200;
  Classifier classifier({128});
  const auto [x, y] = batch_of({64, 784});
  const auto train_step = classifier.train_step();
  const auto work = [&] {
    for (int i = 0; i < steps; ++i) train_step(x, y).item();
  };
  work();
  std::vector<double> without, with, ratios;
  for (int i = 0; i < pairs; ++i) {
    const double start = seconds_now();
    work();
    without.push_back((seconds_now() - start) / steps);
    with.push_back(profile(work).seconds / steps);
    ratios.push_back(with.back() / without.back());
  }
  const auto median = [](std::vector<double>& values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
  };
  const double least = std::ranges::min(with) / std::ranges::min(without);  // where nothing else ran
  Figures figures;
  figures.extra = {{"step_s", median(without)},
                   {"profiled_step_s", median(with)},
                   {"ratio", median(ratios)},
                   {"least_step_s", std::ranges::min(without)},
                   {"ratio_of_least", least}};
  return figures;
}

Figures cold_mlp() {
  return measure_cold([](const NoteLoss& note_loss) {
    Classifier classifier({128});
    const auto [x, y] = batch_of({64, 784});
    const auto train_step = classifier.train_step();
    note_loss(train_step(x, y).item());
    return train_step.explain().compile_seconds;  // compiles what was interpreted
  });
}

}  // namespace

void add_mlp(Workloads& workloads) {
  workloads["mlp_tiny"] = [] { return train_mlp({128}, 64); };
  workloads["mlp_tiny_b16"] = [] { return train_mlp({128}, 16); };
  workloads["mlp_tiny_b256"] = [] { return train_mlp({128}, 256); };
  workloads["mlp_tiny_b1024"] = [] { return train_mlp({128}, 1024); };
  workloads["mlp_big"] = [] { return train_mlp({2048, 2048}, 256); };
  workloads["mlp_big_bf16"] = [] { return train_mlp({2048, 2048}, 256, mixed_bfloat16); };
  workloads["predict_b1"] = predict_row;
  workloads["retrace"] = retrace;
  workloads["profiled"] = profiled;
  workloads["cold_mlp"] = cold_mlp;
}

}  // namespace gradus::bench
