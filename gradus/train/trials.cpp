/// Threads that take one trial after the other.
#include "gradus/train/trials.h"
#include <cmath>
#include <system_error>
#include <thread>
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/base/no_signals.h"
#include "gradus/base/threads.h"
#include "gradus/graph/context.h"
#include "gradus/ops/random_state.h"

namespace gradus {
namespace {

/// Runs work(i) for all i below `count`, in their order, on so many threads. Work does not throw.
void run_side_by_side(std::size_t count, int parallel, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < count;) work(i);
  };
  const std::size_t threads = std::min(count, static_cast<std::size_t>(parallel));
  if (threads <= 1) return run();
  std::vector<std::jthread> others;
  const auto start = [&] {
    const NoSignals no_signals;
    while (others.size() + 1 < threads)
      others.emplace_back([&] {
        const OneThread alone;
        run();
      });
  };
  try {
    start();
  } catch (const std::system_error&) {}  // the system refuses more: those that there are do the work
  const OneThread alone;
  run();
}

}  // namespace

Trials::Trials(std::string_view search, const SearchSpace& space, SearchOptions options)
    : options_(std::move(options)), result_{space, options_.maximize} {
  require(space.size() > 0, search, ": the space has no hyperparameters; add some, as with choice(name, values)");
  check_options(search, options_);
  require(static_cast<bool>(options_.clock), search, ": there is no clock");
}

std::vector<std::size_t> Trials::add(std::vector<SearchSpace::Values> values) {
  std::vector<std::size_t> added;
  for (SearchSpace::Values& of_one : values) {
    const std::size_t i = result_.rows.size();
    const std::uint64_t seed = mix(mix(options_.seed, i), 1);
    result_.rows.push_back({.trial = {static_cast<std::int64_t>(i), seed, std::move(of_one)}});
    states_.push_back(random_state_of(seed));
    added.push_back(i);
  }
  return added;
}

void Trials::run(const std::vector<std::size_t>& which, bool last, const std::function<double(std::size_t)>& work) {
  const Untraced outside;
  run_side_by_side(which.size(), options_.parallel > 0 ? options_.parallel : num_threads(),
                   [&](std::size_t i) { run_one(which[i], last, work); });
}

void Trials::run_one(std::size_t i, bool last, const std::function<double(std::size_t)>& work) {
  if (options_.stop) call_user([&] { stopped_ = stopped_ || options_.stop(); });
  if (stopped_) return;
  const SeedScope seeds(states_[i]);
  attempt(row(i), [&] { return work(i); });
  if (last || row(i).state != TrialState::done) tell(i);
}

void Trials::attempt(SearchRow& row, const std::function<double()>& work) const {
  const auto end = [&](TrialState state, std::string reason) {
    row.state = state;
    row.reason = std::move(reason);
  };
  const double begin = options_.clock();
  try {
    const double score = work();
    if (std::isfinite(score)) {
      row.score = score;
      end(TrialState::done, {});
    } else {
      end(TrialState::diverged, text("the score is ", score));
    }
  } catch (const Diverged& error) { end(TrialState::diverged, error.what()); } catch (const std::exception& error) {
    end(TrialState::failed, error.what());
  } catch (...) { end(TrialState::failed, "something was thrown that is no std::exception"); }
  row.seconds += options_.clock() - begin;
}

void Trials::tell(std::size_t i) {
  if (options_.on_trial) call_user([&] { options_.on_trial(row(i)); });
}

void Trials::call_user(const std::function<void()>& call) {
  const std::lock_guard lock(telling_);
  if (problem_) return;
  try {
    call();
  } catch (...) {
    problem_ = std::current_exception();
    stopped_ = true;
  }
}

SearchResult Trials::finish() {
  if (problem_) std::rethrow_exception(problem_);
  return std::move(result_);
}

}  // namespace gradus
