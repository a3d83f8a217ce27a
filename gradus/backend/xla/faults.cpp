#include "gradus/backend/xla/faults.h"
#include <algorithm>
#include "gradus/backend/xla/counts.h"

namespace gradus::xla {
namespace {

using Words = std::array<std::int64_t, fault_words>;
const Spec spec_of_words{i64, {fault_words}};

std::mutex& links() {
  static auto* only = new std::mutex;
  return *only;
}

}  // namespace

Faults::Run::Run(Faults& faults, const std::shared_ptr<const StableHloModule>& module)
    : faults_(faults), lock_(faults.guard_), number_(faults.runs_ + 1), has_checks_(!module->checks.empty()) {
  if (!faults_.state_) {
    static constexpr Words none{};  // a plugin may read it later
    pjrt::EventOwner done;
    faults_.state_ = faults_.session_.upload(faults_.device_, spec_of_words, none.data(), done);
    done.wait();
    faults_.first_ = faults_.runs_;
  }
  if (has_checks_) faults_.checked_.emplace(module->fingerprint, module);
}

void Faults::Run::after(std::shared_ptr<pjrt::BufferOwner> state) {
  faults_.state_ = std::move(state);
  faults_.runs_ = number_;
  faults_.may_be_set_ = faults_.may_be_set_ || has_checks_;
}

Faults::Runs::Runs(std::span<Faults* const> faults, const std::shared_ptr<const StableHloModule>& module)
    : by_device_(faults.size()) {
  std::vector<Faults*> order(faults.begin(), faults.end());
  std::ranges::sort(order);
  for (Faults* const each : order)
    by_device_[static_cast<std::size_t>(std::ranges::find(faults, each) - faults.begin())] =
        &runs_.emplace_back(*each, module);
  if (order.size() > 1) link(order);
}

void Faults::link(const std::vector<Faults*>& all) {
  const bool may_be_set = std::ranges::any_of(all, &Faults::may_be_set_);
  for (Faults* const each : all) each->may_be_set_ = may_be_set;
  for (Faults* const each : all)
    for (const Faults* const other : all)
      if (other != each) each->checked_.insert(other->checked_.begin(), other->checked_.end());
  const std::lock_guard lock(links());
  std::vector<Faults*> together = all;  // and those already linked with one of them
  for (const Faults* const each : all) together.insert(together.end(), each->linked_.begin(), each->linked_.end());
  std::ranges::sort(together);
  const auto doubles = std::ranges::unique(together);
  together.erase(doubles.begin(), doubles.end());
  if (all.front()->linked_ == together) return;
  for (Faults* const each : together) each->linked_ = together;
}

std::vector<Faults*> Faults::linked() {
  const std::lock_guard lock(links());
  return linked_.empty() ? std::vector{this} : linked_;
}

std::exception_ptr Faults::problem_of(const Words& words) const {
  const auto known = checked_.find(words[2]);
  const auto check = static_cast<std::size_t>(words[0] - 1);
  if (known == checked_.end() || check >= known->second->checks.size())
    return std::make_exception_ptr(
        InternalError(text("internal fault: a device tells of check ", words[0], " of a program that it did not run")));
  try {
    known->second->checks[check].fail(words[1], words[4]);
  } catch (...) { return std::current_exception(); }
}

Faults::Reading::Reading(std::shared_ptr<pjrt::BufferOwner> state)
    : of(std::move(state)), event(of->read(spec_of_words, words.data(), sizeof words)) {}

Faults::Reading::~Reading() {
  try {
    event.wait();
  } catch (...) {}  // the observer has received it, or none wants to
}

/// The next value that is read may belong to one of the others: the states of all begin to come.
void Faults::begin_to_observe() {
  for (Faults* const each : linked()) {
    const std::lock_guard lock(each->guard_);
    each->begin_to_read();
  }
}

void Faults::begin_to_read() {
  if (!may_be_set_ || (reading_ && reading_->of == state_)) return;
  try {
    reading_ = std::make_shared<Reading>(state_);
  } catch (...) {}  // observed() tells
}

void Faults::observe() {
  for (;;) {
    const std::vector<Faults*> all = linked();
    std::vector<std::unique_lock<std::mutex>> locks;
    for (Faults* const each : all) locks.emplace_back(each->guard_);
    if (linked() != all) continue;  // a run has begun meanwhile
    for (Faults* const each : all) each->begin_to_read();
    std::exception_ptr first;
    for (Faults* const each : all)
      if (const std::exception_ptr problem = each->observed(); problem && !first) first = problem;
    if (all.size() > 1) {
      const std::lock_guard lock(links());
      for (Faults* const each : all) each->linked_.clear();
    }
    if (first) std::rethrow_exception(first);
    return;
  }
}

std::exception_ptr Faults::observed() {
  if (!may_be_set_) return nullptr;
  may_be_set_ = false;
  Words words{};
  try {
    if (!reading_ || reading_->of != state_) reading_ = std::make_shared<Reading>(state_);
    const std::shared_ptr<Reading> last = std::move(reading_);
    last->event.wait();
    words = last->words;
    ++counts().waits;
  } catch (...) {  // the device, not the data
    begin_anew();
    return std::current_exception();
  }
  if (words[0] == 0) {
    checked_.clear();
    return nullptr;
  }
  const std::exception_ptr problem = problem_of(words);
  if (failed_.size() == most_kept) failed_.erase(failed_.begin());
  failed_.push_back({first_ + words[3] + 1, runs_, problem});
  begin_anew();
  return problem;
}

void Faults::begin_anew() {
  reading_ = nullptr;
  state_ = nullptr;
  may_be_set_ = false;
  checked_.clear();
}

void Faults::forget() {
  for (Faults* const each : linked()) {
    const std::lock_guard lock(each->guard_);
    each->begin_anew();
  }
}

std::exception_ptr Faults::failure_of(std::int64_t number) {
  if (number == 0) return nullptr;
  const std::lock_guard lock(guard_);
  for (const Failed& failed : failed_)
    if (number >= failed.first && number <= failed.last) return failed.problem;
  return nullptr;
}

}  // namespace gradus::xla
