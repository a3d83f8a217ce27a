#include "gradus/backend/xla/faults.h"
#include <algorithm>
#include "gradus/backend/xla/counts.h"

namespace gradus::xla {
namespace {

using Words = std::array<std::int64_t, fault_words>;
const Spec spec_of_words{i64, {fault_words}};

}  // namespace

Faults::Run::Run(Faults& faults, const std::shared_ptr<const StableHloModule>& module)
    : faults_(faults), lock_(faults.guard_), number_(faults.runs_ + 1), has_checks_(!module->checks.empty()) {
  if (!faults_.state_) {
    constexpr Words none{};
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
  } catch (...) {}  // who observes has heard of it, or nobody wants to
}

void Faults::begin_to_observe() {
  const std::lock_guard lock(guard_);
  if (!may_be_set_ || (reading_ && reading_->of == state_)) return;
  try {
    reading_ = std::make_shared<Reading>(state_);
  } catch (...) {}  // observe() tells
}

void Faults::observe() {
  const std::lock_guard lock(guard_);
  if (!may_be_set_) return;
  may_be_set_ = false;
  Words words{};
  try {
    if (!reading_ || reading_->of != state_) reading_ = std::make_shared<Reading>(state_);
    const std::shared_ptr<Reading> last = std::move(reading_);
    last->event.wait();
    words = last->words;
    ++counts().waits;
  } catch (...) {  // the device, not the data
    state_ = nullptr;
    checked_.clear();
    throw;
  }
  if (words[0] == 0) return;
  const std::exception_ptr problem = problem_of(words);
  if (failed_.size() == most_kept) failed_.erase(failed_.begin());
  failed_.push_back({first_ + words[3] + 1, runs_, problem});
  state_ = nullptr;
  checked_.clear();
  std::rethrow_exception(problem);
}

std::exception_ptr Faults::failure_of(std::int64_t number) {
  if (number == 0) return nullptr;
  const std::lock_guard lock(guard_);
  for (const Failed& failed : failed_)
    if (number >= failed.first && number <= failed.last) return failed.problem;
  return nullptr;
}

}  // namespace gradus::xla
