/// Searches that train many trials a little, and continue the better ones from where they stopped.
#pragma once
#include <memory>
#include "gradus/train/fit.h"
#include "gradus/train/search.h"

namespace gradus {

/// A trial that can be trained further. It is called with the total number of epochs, which rises from call to call,
/// and gives the score after them. Calls may come from different threads, one after the other.
using EpochTrainer = std::function<double(int epochs)>;
/// Makes the trainer of a trial; called by several threads at once.
using MakeEpochTrainer = std::function<EpochTrainer(const SearchTrial& trial)>;

/// `fit` in parts. The score is the last validation loss, without a validation set the last loss. The optimizer is a
/// new one, or has state for this model. `initial_epoch` and `epochs` of the options are ignored. A call is an
/// InvalidArgument if the number of epochs does not rise, or a callback stops the training before its first epoch.
template <class M, class L, std::size_t N>
  requires LossFor<L, M, N>
EpochTrainer epoch_trainer(M model, Optimizer optimizer, L loss, Dataset<N> dataset, FitOptions options = {}) {
  struct Training {
    M model;
    Optimizer optimizer;
    L loss;
    Dataset<N> dataset;
    FitOptions options;
  };
  options.epochs = 0;
  const auto all = std::make_shared<Training>(
      Training{std::move(model), std::move(optimizer), std::move(loss), std::move(dataset), std::move(options)});
  return [all](int epochs) {
    FitOptions now = all->options;
    now.initial_epoch = std::exchange(now.epochs, epochs);
    const History history = fit(all->model, all->optimizer, all->loss, all->dataset, now);
    const std::vector<double>& losses = history.validation_loss.empty() ? history.loss : history.validation_loss;
    require(!losses.empty(), "epoch_trainer: trained for ", now.initial_epoch, " epochs, asked for ", epochs,
            "; the number must rise, and callbacks must not stop a training before its first epoch");
    all->options.epochs = epochs;  // at last: a training that failed may be tried again
    return losses.back();
  };
}

/// Epochs of the rounds of a search.
struct HalvingSchedule {
  int max_epochs;      // epochs of the last round
  int min_epochs = 1;  // least epochs of the first round
  int factor = 3;      // one trial in `factor` continues, for `factor` times the epochs
};

/// Successive halving (Jamieson and Talwalkar 2016). `trials` drawn as by random_search are trained for about
/// min_epochs (max_epochs over a power of `factor`). The best of them, one in `factor`, continue where they stopped,
/// for `factor` times as long, and so on until max_epochs. Trials that end in an error do not continue. The result does
/// not depend on `parallel`: it waits for all trials of a round. InvalidArgument for an empty space, unless there are 1
/// to a million trials, `factor` is 2 or more and min_epochs is 1 to max_epochs, and for options out of range.
///
///   successive_halving(space, 27, {.max_epochs = 27}, [&](const SearchTrial& trial) {
///     return epoch_trainer(Sequential(initial), Adam({.learning_rate = trial.number("learning_rate")}),
///                          MeanSquaredError(), training_set, {.validation = validation, .verbose = false});
///   });
SearchResult successive_halving(const SearchSpace& space, std::int64_t trials, HalvingSchedule schedule,
                                const MakeEpochTrainer& make, SearchOptions options = {});

/// Hyperband (Li and others 2018): brackets of halving, from many trials with few epochs to few trials with max_epochs
/// from the start, each of about the same work. InvalidArgument as for successive_halving, and if a bracket would have
/// more than a million trials.
SearchResult hyperband(const SearchSpace& space, HalvingSchedule schedule, const MakeEpochTrainer& make,
                       SearchOptions options = {});

}  // namespace gradus
