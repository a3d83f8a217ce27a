/// Hyperparameter searches: grids and random draws, several trials at once. An error in one trial does not affect the
/// others.
#pragma once
#include <functional>
#include "gradus/base/clock.h"
#include "gradus/base/ranges.h"
#include "gradus/formats/plot.h"
#include "gradus/train/result_table.h"
#include "gradus/train/search_space.h"

namespace gradus {

/// The outcome of a trial.
enum class TrialState {
  done,      // it ran to its end
  dropped,   // other trials were better after as many epochs
  diverged,  // a loss, or the score, was not finite
  failed,    // an error was thrown
  not_run,   // the search was stopped before it began
};
/// The state as text.
std::string_view to_text(TrialState state);

/// The result of one trial.
struct SearchRow {
  SearchTrial trial;                                  // number, seed and values
  TrialState state = TrialState::not_run;             // its outcome
  std::optional<double> score = {};                   // the last one; empty if there is none
  std::string reason = {};                            // the reason of a failure or divergence
  double seconds = 0;                                 // time that it took
  std::vector<std::pair<int, double>> progress = {};  // for halving: (epochs, score)
};

/// The result of a search.
struct SearchResult {
  SearchSpace space;                 // the searched space
  bool maximize = false;             // as in the options
  std::vector<SearchRow> rows = {};  // in the order of trial numbers

  /// The best score of the trials that were trained longest; the first of equal ones. Error if no trial has a score; it
  /// has the reason of the first trial.
  const SearchRow& best() const;
  /// The numbers of all trials, the best first, those without a score last.
  std::vector<std::size_t> ranking() const;
  /// A table, the best trial first, with the columns trial, hyperparameters, epochs (for halving), score, state,
  /// seconds, reason.
  ResultTable table() const;
  /// Plots of scores by each hyperparameter; for halving also by epochs.
  std::vector<PlotPanel> picture() const;
};

/// Options of searches.
struct SearchOptions {
  std::uint64_t seed = 0;  // for the drawn values and the random numbers of trials
  /// Trials at once; 0: num_threads(). With several, each computes on one thread, and trials must not change what they
  /// share: use copies of a model. Scores are the same either way.
  int parallel = 0;
  bool maximize = false;  // highest score is best; else the lowest
  /// Called for each trial when it ends, or is dropped: one after the other, in the order in which they end. An
  /// exception from this, or from `stop`, ends the search.
  std::function<void(const SearchRow&)> on_trial = {};
  /// Called before each trial; once it gives true, no further trial begins.
  std::function<bool()> stop = {};
  std::function<double()> clock = detail::steady_seconds;  // in seconds; called by all threads
  static constexpr auto ranges() { return std::array{Allowed::any("seed"), Allowed::within(0, 1024, "parallel")}; }
};

/// Trains a trial and gives its score; called by several threads at once.
using ScoreFunction = std::function<double(const SearchTrial& trial)>;

/// Grid search: every combination of the values. A trial that throws, or whose score is not finite, is a row with the
/// reason, and the search goes on. InvalidArgument for an empty space, for more than a million trials, and for options
/// out of range.
///
///   const SearchResult result = grid_search(space, [&](const SearchTrial& trial) {
///     Sequential model = initial;
///     Adam optimizer({.learning_rate = trial.number("learning_rate")});
///     return fit(model, optimizer, loss, training_set, {.validation = validation}).validation_loss.back();
///   });
SearchResult grid_search(const SearchSpace& space, const ScoreFunction& score, SearchOptions options = {});

/// Random search (Bergstra and Bengio 2012): `trials` combinations that follow from the seed, for any `parallel`. If
/// the number of combinations is finite, none is drawn twice, so there may be fewer. InvalidArgument for an empty
/// space, unless `trials` is 1 to a million, and for options out of range.
SearchResult random_search(const SearchSpace& space, std::int64_t trials, const ScoreFunction& score,
                           SearchOptions options = {});

}  // namespace gradus
