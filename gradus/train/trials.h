/// The trials of a search while it runs: side by side, each with random numbers of its own and alone with its mistakes.
#pragma once
#include <atomic>
#include <exception>
#include <mutex>
#include "gradus/train/search.h"

namespace gradus {

class Trials {
 public:
  /// What is wrong with the space or the options is an InvalidArgument that begins with `search`.
  Trials(std::string_view search, const SearchSpace& space, SearchOptions options);

  /// More trials of these values, that have not run. Their numbers, in order.
  std::vector<std::size_t> add(std::vector<SearchSpace::Values> values);
  SearchRow& row(std::size_t i) { return result_.rows[i]; }

  /// Runs these trials in order, several at once, and notes what becomes of them: `work` gives the score of one. Each
  /// goes on with the random numbers with which it ended the time before. Told are those that fail, and with `last`
  /// all.
  void run(const std::vector<std::size_t>& which, bool last, const std::function<double(std::size_t)>& work);
  /// Tells the options' on_trial.
  void tell(std::size_t i);
  bool is_stopped() const { return stopped_; }
  /// Throws what on_trial or stop threw.
  SearchResult finish();

 private:
  void run_one(std::size_t i, bool last, const std::function<double(std::size_t)>& work);
  void attempt(SearchRow& row, const std::function<double()>& work) const;
  void call_user(const std::function<void()>& call);

  SearchOptions options_;
  SearchResult result_;
  std::vector<std::uint64_t> states_;  // of the random numbers
  std::mutex telling_;                 // one thread at a time calls the options' functions
  std::exception_ptr problem_;         // of theirs
  std::atomic<bool> stopped_ = false;
};

inline constexpr std::int64_t most_trials = 1'000'000;

}  // namespace gradus
