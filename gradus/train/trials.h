/// The trials of a search while it runs: side by side, each with random numbers of its own. An error in one does not
/// affect the others.
#pragma once
#include <atomic>
#include <exception>
#include <mutex>
#include "gradus/train/search.h"

namespace gradus {

class Trials {
 public:
  /// An invalid space or option is an InvalidArgument that begins with `search`.
  Trials(std::string_view search, const SearchSpace& space, SearchOptions options);

  /// Adds trials with these values, which have not run. Returns their numbers, in order.
  std::vector<std::size_t> add(std::vector<SearchSpace::Values> values);
  SearchRow& row(std::size_t i) { return result_.rows[i]; }

  /// Runs these trials in order, several at once, and records their results: `work` gives the score of one. Each
  /// continues with the random numbers with which it stopped the last time. Trials that fail are reported to on_trial,
  /// and with `last` all.
  void run(const std::vector<std::size_t>& which, bool last, const std::function<double(std::size_t)>& work);
  /// Calls the options' on_trial.
  void tell(std::size_t i);
  bool is_stopped() const { return stopped_; }
  /// Throws the exception of on_trial or stop.
  SearchResult finish();

 private:
  void run_one(std::size_t i, bool last, const std::function<double(std::size_t)>& work);
  void attempt(SearchRow& row, const std::function<double()>& work) const;
  void call_user(const std::function<void()>& call);

  SearchOptions options_;
  SearchResult result_;
  std::vector<std::uint64_t> states_;  // of random numbers
  std::mutex telling_;                 // one thread at a time calls the options' functions
  std::exception_ptr problem_;         // thrown by those functions
  std::atomic<bool> stopped_ = false;
};

inline constexpr std::int64_t most_trials = 1'000'000;

}  // namespace gradus
