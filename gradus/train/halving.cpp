/// Rounds of training, and the choice of trials that go on after each.
#include "gradus/train/halving.h"
#include <algorithm>
#include <cmath>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"
#include "gradus/train/trials.h"

namespace gradus {
namespace {

void check(std::string_view search, const HalvingSchedule& schedule) {
  const HostFloats floats;
  require(schedule.factor >= 2, search, ": factor must be 2 or more, got ", schedule.factor);
  require(schedule.min_epochs >= 1 && schedule.min_epochs <= schedule.max_epochs, search,
          ": min_epochs must be within 1 and max_epochs, ", schedule.max_epochs, ", got ", schedule.min_epochs);
}

/// How often `factor` goes into max_epochs before it is less than min_epochs.
int halvings(const HalvingSchedule& schedule) {
  const HostFloats floats;
  int times = 0;
  for (std::int64_t epochs = schedule.min_epochs; (epochs *= schedule.factor) <= schedule.max_epochs;) ++times;
  return times;
}

/// Epochs in all after each round, the last one max_epochs.
std::vector<int> rounds(const HalvingSchedule& schedule, int halvings) {
  const HostFloats floats;
  std::vector<int> epochs(1, schedule.max_epochs);
  double exact = schedule.max_epochs;
  for (int i = 0; i < halvings; ++i) {
    exact /= schedule.factor;
    epochs.insert(epochs.begin(), std::max(1, static_cast<int>(std::lround(exact))));
  }
  return epochs;
}

/// The best first `count` of those that have a score, in the order of their numbers.
std::vector<std::size_t> best_of(Trials& trials, std::vector<std::size_t> which, std::size_t count, bool maximize) {
  std::erase_if(which, [&](std::size_t i) { return trials.row(i).state != TrialState::done; });
  std::ranges::stable_sort(which, [&](std::size_t i, std::size_t j) {
    const double a = *trials.row(i).score, b = *trials.row(j).score;
    return maximize ? a > b : a < b;
  });
  which.resize(std::min(which.size(), count));
  std::ranges::sort(which);
  return which;
}

class Bracket {
 public:
  Bracket(Trials& trials, const MakeEpochTrainer& make, bool maximize)
      : trials_(trials), make_(make), maximize_(maximize) {}

  void run(std::vector<SearchSpace::Values> values, const std::vector<int>& rounds, int factor) {
    which_ = trials_.add(std::move(values));
    first_ = which_.empty() ? 0 : which_.front();
    trainers_.resize(which_.size());
    for (const int epochs : rounds) {
      const bool last = epochs == rounds.back();
      trials_.run(which_, last, [&](std::size_t i) { return train(i, epochs); });
      if (trials_.is_stopped()) return;
      if (!last) keep(std::max<std::size_t>(1, which_.size() / static_cast<std::size_t>(factor)));
    }
  }

 private:
  double train(std::size_t i, int epochs) {
    EpochTrainer& trainer = trainers_[i - first_];
    SearchRow& row = trials_.row(i);
    if (!trainer) {
      trainer = make_(row.trial);
      require(static_cast<bool>(trainer), "the search's function gave no trainer");
    }
    const double score = trainer(epochs);
    row.progress.emplace_back(epochs, score);
    return score;
  }

  /// Memory of the others is free at once.
  void keep(std::size_t count) {
    const std::vector<std::size_t> kept = best_of(trials_, which_, count, maximize_);
    for (const std::size_t i : which_) {
      if (std::ranges::binary_search(kept, i)) continue;
      trainers_[i - first_] = nullptr;
      if (trials_.row(i).state != TrialState::done) continue;  // told already
      trials_.row(i).state = TrialState::dropped;
      trials_.tell(i);
    }
    which_ = kept;
  }

  Trials& trials_;
  const MakeEpochTrainer& make_;
  const bool maximize_;
  std::vector<std::size_t> which_;  // still in
  std::size_t first_ = 0;
  std::vector<EpochTrainer> trainers_;
};

/// The number of trials of that bracket of hyperband, rounded up.
double trials_of(const HalvingSchedule& schedule, int bracket, int most) {
  const HostFloats floats;
  return std::ceil((most + 1.0) / (bracket + 1) * std::pow(schedule.factor, bracket));
}

}  // namespace

SearchResult successive_halving(const SearchSpace& space, std::int64_t trials, HalvingSchedule schedule,
                                const MakeEpochTrainer& make, SearchOptions options) {
  check("successive_halving", schedule);
  require(trials > 0 && trials <= most_trials, "successive_halving: expected 1 to ", most_trials, " trials, got ",
          trials);
  Trials running("successive_halving", space, options);
  Bracket(running, make, options.maximize)
      .run(space.drawn(trials, options.seed), rounds(schedule, halvings(schedule)), schedule.factor);
  return running.finish();
}

SearchResult hyperband(const SearchSpace& space, HalvingSchedule schedule, const MakeEpochTrainer& make,
                       SearchOptions options) {
  check("hyperband", schedule);
  Trials running("hyperband", space, options);
  const int most = halvings(schedule);
  for (int bracket = most; bracket >= 0 && !running.is_stopped(); --bracket) {
    const double trials = trials_of(schedule, bracket, most);
    require(trials <= static_cast<double>(most_trials), "hyperband: a bracket would have ", trials,
            " trials; raise min_epochs");
    const std::uint64_t seed = mix(options.seed, static_cast<std::uint64_t>(bracket));
    Bracket(running, make, options.maximize)
        .run(space.drawn(static_cast<std::int64_t>(trials), seed), rounds(schedule, bracket), schedule.factor);
  }
  return running.finish();
}

}  // namespace gradus
