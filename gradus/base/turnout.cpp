#include "gradus/base/turnout.h"
#include <algorithm>

namespace gradus {
namespace {

constexpr double ms = 1e6;  // nanoseconds
/// A single wait of a slice of time, such as any machine has now and then, leaves all as it is.
constexpr double most_credit = 4 * ms;
/// Estimates of what a team gains are too good as often as not.
constexpr double believed = 0.5;
/// Losses are at most one part in so many of the time.
constexpr double pause_for_loss = 32;
constexpr double least_pause = 8 * ms, most_pause = 512 * ms;
/// Gains after which calling more has paid.
constexpr double enough = 8 * ms;

double get(const std::atomic<double>& of) { return of.load(std::memory_order_relaxed); }
void set(std::atomic<double>& of, double to) { of.store(to, std::memory_order_relaxed); }

}  // namespace

void Turnout::reset(int all) {
  all_ = all;
  threads_ = all;
  good_ = true;
  set(credit_, most_credit);
  set(gained_, 0), set(lost_, 0);
  set(pause_, least_pause);
}

void Turnout::note(double gained, double lost) {
  const double credit = std::min(get(credit_) + believed * gained - lost, most_credit);
  set(credit_, credit);
  if (lost > 0) [[unlikely]]
    set(lost_, get(lost_) + lost);
  else if (credit == most_credit) set(lost_, 0);
  if (credit < 0) [[unlikely]]
    return call_fewer();
  if (is_good()) return;
  set(gained_, get(gained_) + gained);
  if (get(gained_) < enough || threads() < all_) return;
  good_.store(true, std::memory_order_relaxed);
  set(pause_, least_pause), set(lost_, 0);
}

void Turnout::call_fewer() {
  const double pause = std::clamp(pause_for_loss * get(lost_), get(pause_), most_pause);
  set(left_, pause);
  set(pause_, std::min(2 * pause, most_pause));
  set(credit_, 0), set(gained_, 0), set(lost_, 0);
  good_.store(false, std::memory_order_relaxed);
  threads_.store(std::max(1, threads() / 2), std::memory_order_relaxed);
}

void Turnout::did_without(double cost) {
  if (threads() >= all_.load(std::memory_order_relaxed)) return;
  const double left = get(left_) - cost;
  set(left_, left);
  if (left > 0) return;
  set(left_, get(pause_));
  set(credit_, 0), set(gained_, 0), set(lost_, 0);
  threads_.store(std::min(2 * threads(), all_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
}

}  // namespace gradus
