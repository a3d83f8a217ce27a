#include "gradus/base/turnout.h"
#include <algorithm>

namespace gradus {
namespace {

constexpr double ms = 1e6;  // nanoseconds
/// The most that one wait counts: that of a thread whose core others have taken once, however long.
constexpr double most_lost = 4 * ms;
/// Some such waits, as any machine has now and then, leave all as it is.
constexpr double most_credit = 2 * most_lost;
/// A trial of more may lose one before it has gained, as where a thread that was woken is moved to another core.
constexpr double credit_of_trial = most_lost;
/// So losses are at most one part in so many of the time.
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
}

void Turnout::note(double gained, double lost) {
  const double credit = std::min(get(credit_) + gained - std::min(lost, most_lost), most_credit);
  set(credit_, credit);
  if (lost > 0) [[unlikely]]
    set(lost_, get(lost_) + std::min(lost, most_lost));
  else if (credit == most_credit) set(lost_, 0);
  if (credit < 0) [[unlikely]]
    return call_fewer();
  if (is_good()) return;
  set(gained_, get(gained_) + gained);
  if (get(gained_) < enough || threads() < all_) return;
  good_.store(true, std::memory_order_relaxed);
  set(lost_, 0);
}

void Turnout::call_fewer() {
  set(left_, std::clamp(pause_for_loss * get(lost_), least_pause, most_pause));
  set(credit_, credit_of_trial), set(gained_, 0), set(lost_, 0);
  good_.store(false, std::memory_order_relaxed);
  threads_.store(std::max(1, threads() / 2), std::memory_order_relaxed);
}

void Turnout::did_without(double cost) {
  if (threads() >= all_.load(std::memory_order_relaxed)) return;
  const double left = get(left_) - cost;
  set(left_, left);
  if (left > 0) return;
  set(left_, least_pause);
  set(credit_, credit_of_trial), set(gained_, 0), set(lost_, 0);
  threads_.store(std::min(2 * threads(), all_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
}

}  // namespace gradus
