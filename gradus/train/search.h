/// Searches for good hyperparameters: grids and random draws, several trials at once, each alone with its mistakes.
#pragma once
#include <functional>
#include "gradus/base/clock.h"
#include "gradus/base/ranges.h"
#include "gradus/formats/plot.h"
#include "gradus/train/result_table.h"
#include "gradus/train/search_space.h"

namespace gradus {

enum class TrialState {
  done,
  dropped,   // others were better after as many epochs
  diverged,  // a loss, or the score, was not finite
  failed,    // an error was thrown
  not_run,   // the search was stopped before
};
std::string_view to_text(TrialState state);

/// What became of one trial.
struct SearchRow {
  SearchTrial trial;
  TrialState state = TrialState::not_run;
  std::optional<double> score = {};  // the last one; nothing where there is none
  std::string reason = {};           // why a trial diverged or failed
  double seconds = 0;
  std::vector<std::pair<int, double>> progress = {};  // of halving: (epochs, score)
};

struct SearchResult {
  SearchSpace space;
  bool maximize = false;
  std::vector<SearchRow> rows = {};  // by the number of the trial

  /// The best score of those that were trained longest; of equal ones the first. Error if no trial has a score: it says
  /// what was wrong with the first one.
  const SearchRow& best() const;
  /// The numbers of all trials, the best first, those without a score last.
  std::vector<std::size_t> ranking() const;
  /// The best first. Columns: trial, hyperparameters, epochs (of halving), score, state, seconds, reason.
  ResultTable table() const;
  /// Scores by each hyperparameter; of halving also by epochs.
  std::vector<PlotPanel> picture() const;
};

struct SearchOptions {
  std::uint64_t seed = 0;  // of the values that are drawn and of what trials draw
  /// Trials at once; 0: as many as num_threads(). Where they are several each computes on one thread, and what trials
  /// share must not be changed by them: copies of a model, not the model. Scores are the same either way.
  int parallel = 0;
  bool maximize = false;  // scores: the most, else the least
  /// Told of each trial when it ends, or is dropped: one after the other, in whatever order they end. What this, or
  /// `stop`, throws ends the search.
  std::function<void(const SearchRow&)> on_trial = {};
  /// Asked before each trial; once it is true no other one begins.
  std::function<bool()> stop = {};
  std::function<double()> clock = steady_seconds;  // seconds; asked by all threads
  static constexpr auto ranges() { return std::array{Allowed::any("seed"), Allowed::within(0, 1024, "parallel")}; }
};

/// Trains and judges one trial; called by several threads at once.
using ScoreFunction = std::function<double(const SearchTrial& trial)>;

/// Every combination of the values. A trial that throws, or whose score is not finite, is a row that says why, and the
/// search goes on. InvalidArgument for an empty space, for more than a million trials and for options out of range.
///
///   const SearchResult result = grid_search(space, [&](const SearchTrial& trial) {
///     Sequential model = initial;
///     Adam optimizer({.learning_rate = trial.number("learning_rate")});
///     return fit(model, optimizer, loss, training_set, {.validation = validation}).validation_loss.back();
///   });
SearchResult grid_search(const SearchSpace& space, const ScoreFunction& score, SearchOptions options = {});

/// `trials` combinations, drawn by the seed, whatever `parallel` is; none twice where values can be counted, so they
/// may be fewer (Bergstra and Bengio 2012). InvalidArgument for an empty space, unless `trials` is 1 to a million, and
/// for options out of range.
SearchResult random_search(const SearchSpace& space, std::int64_t trials, const ScoreFunction& score,
                           SearchOptions options = {});

}  // namespace gradus
