/// Training: the training that is advised about, and how copies of it are made for trials, without their types.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include "gradus/data/pipeline.h"
#include "gradus/nn/channels.h"
#include "gradus/nn/layers.h"
#include "gradus/optim/optimizer.h"
#include "gradus/train/learning_rate_range.h"
#include "gradus/train/task.h"

namespace gradus {

namespace detail::inline rooms {

/// A copy of model and optimizer with the task that trains them.
struct TrainingCopy {
  std::shared_ptr<void> owner;  // owns the references below
  Module* model = nullptr;
  Optimizer* optimizer = nullptr;
  const detail::Task* task = nullptr;
};

struct Training {
  const Module* model;
  const Optimizer* optimizer;
  Pipeline dataset;
  std::function<TrainingCopy()> copy;
  /// A copy without the channels that are 0 for every input; empty for a model that is no Sequential.
  std::function<TrainingCopy()> copy_without_dead_channels = {};
};

}  // namespace detail::inline rooms

namespace detail {

template <std::size_t N, class M, class L> struct CopyForTrial {
  M model;
  Optimizer optimizer;
  Task task;
  CopyForTrial(M given, const Optimizer& its_optimizer, const L& loss, bool sample_weight)
      : model(std::move(given)),
        optimizer(optimizer_of_copy(its_optimizer, model)),
        task(task_of<N>(model, loss, sample_weight)) {}
};

template <std::size_t N, class M, class L>
TrainingCopy copy_for_trial(M model, const Optimizer& optimizer, const L& loss, bool sample_weight) {
  const auto copy = std::make_shared<CopyForTrial<N, M, L>>(std::move(model), optimizer, loss, sample_weight);
  return {copy, &copy->model, &copy->optimizer, &copy->task};
}

/// All arguments must outlive it.
template <std::size_t N, class M, class L>
Training training_of(const M& model, const Optimizer& optimizer, const L& loss, const Pipeline& dataset,
                     bool sample_weight) {
  Training training{&model, &optimizer, dataset,
                    [&, sample_weight] { return copy_for_trial<N>(M(model), optimizer, loss, sample_weight); }};
  if constexpr (std::derived_from<M, Sequential>)
    training.copy_without_dead_channels = [&, sample_weight] {
      return copy_for_trial<N, Sequential>(remove_pruned_channels(model), optimizer, loss, sample_weight);
    };
  return training;
}

}  // namespace detail
}  // namespace gradus
