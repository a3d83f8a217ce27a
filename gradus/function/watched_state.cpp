/// The present state of watched objects. Decision 171 has the reasons.
#include "gradus/function/watched_state.h"
#include <algorithm>
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"

namespace gradus {
namespace {

std::atomic<std::uint64_t> next_number{1}, changes{1};

std::uint64_t new_number() { return next_number.fetch_add(1, std::memory_order_relaxed); }

/// How `now` differs at its place from `seen`, of one name.
std::string difference_of(const WatchedFields::Field& seen, const WatchedFields::Field& now, const std::string& owner) {
  if (seen.setup != 0 && now.setup != 0) return text("layer `", seen.name, "` of ", owner, " is another one now");
  const auto spelt = [](const WatchedFields::Field& field) { return field.setup ? "a layer" : field.value; };
  return text("field `", seen.name, "` of ", owner, " was ", spelt(seen), ", now ", spelt(now));
}

}  // namespace

std::uint64_t detail::changes_of_setups() { return changes.load(std::memory_order_acquire); }
void detail::note_change_of_setup() { changes.fetch_add(1, std::memory_order_acq_rel); }

Setup::Setup() : record_(std::make_shared<Record>(new_number(), true)) {}
Setup::Setup(const Setup& other) : record_(std::make_shared<Record>(new_number(), other.trainable())) {}

void Setup::change(const char* how) { change_to(new_number(), how); }

/// The record of an object that was never watched is held by the object alone.
void Setup::change_to(std::uint64_t number, const char* how) {
  record_->last_change.store(how, std::memory_order_relaxed);
  record_->number.store(number, std::memory_order_release);
  if (record_.use_count() > 1) note_change_of_setup();
}

void Setup::set_trainable(bool trainable) {
  if (record_->trainable.exchange(trainable, std::memory_order_acq_rel) != trainable) note_change_of_setup();
}

std::string WatchedSetup::difference() const {
  return has_changed() ? text(name, " ", record->last_change.load(std::memory_order_relaxed)) : "";
}

bool WatchedFlag::has_changed() const {
  const auto alive = flag.lock();
  return !alive || alive->load(std::memory_order_acquire) != seen;
}

std::string WatchedFlag::difference() const {
  if (!has_changed()) return {};
  if (flag.expired()) return text(name, " was destroyed");
  return text(name, seen ? " was trainable, now it is not" : " was not trainable, now it is");
}

std::string WatchedFields::difference() const {
  if (is_gone()) return text(owner, " was destroyed");
  const Fields values = now();
  if (values == seen) return {};
  const std::size_t both = std::min(seen.size(), values.size());
  for (std::size_t i = 0; i < both && seen[i].name == values[i].name; ++i)
    if (seen[i] != values[i]) return difference_of(seen[i], values[i], owner);
  const auto is_in = [](const Fields& fields, const Field& field) {
    return std::ranges::find(fields, field.name, &Field::name) != fields.end();
  };
  for (const Field& field : values)
    if (!is_in(seen, field)) return text("field `", field.name, "` of ", owner, " is new");
  for (const Field& field : seen)
    if (!is_in(values, field)) return text("field `", field.name, "` of ", owner, " is gone");
  return text(owner, " had its fields in another order");
}

void WatchedState::add(WatchedSetup setup) {
  if (std::ranges::find(setups_, setup.record, &WatchedSetup::record) == setups_.end())
    setups_.push_back(std::move(setup));
}
void WatchedState::add(WatchedFlag flag) {
  const auto is_same = [&](const WatchedFlag& known) {
    return !known.flag.owner_before(flag.flag) && !flag.flag.owner_before(known.flag);
  };
  if (std::ranges::none_of(flags_, is_same)) flags_.push_back(std::move(flag));
}
/// The last of several looks counts: before it, the C++ of the trace may have set a field.
void WatchedState::add(WatchedFields fields) {
  const auto known = std::ranges::find(fields_, fields.object, &WatchedFields::object);
  if (known == fields_.end()) fields_.push_back(std::move(fields));
  else known->seen = std::move(fields.seen);
}
void WatchedState::add(const WatchedState& more) {
  for (const WatchedFields& each : more.fields_) add(each);
  for (const WatchedSetup& each : more.setups_) add(each);
  for (const WatchedFlag& each : more.flags_) add(each);
}

bool WatchedState::has_fields_of(const Setup& object) const {
  return std::ranges::find(fields_, object.record(), &WatchedFields::object) != fields_.end();
}

WatchedState WatchedState::at_end() const {
  WatchedState lasting = *this;
  std::erase_if(lasting.fields_, &WatchedFields::is_gone);
  for (WatchedSetup& each : lasting.setups_) each.seen = each.record->number.load(std::memory_order_acquire);
  std::erase_if(lasting.setups_, [](const WatchedSetup& each) { return each.seen == 0; });
  std::erase_if(lasting.flags_, [](const WatchedFlag& each) { return each.flag.expired(); });
  return lasting;
}

bool WatchedState::setups_and_flags_hold() const {
  return std::ranges::none_of(setups_, &WatchedSetup::has_changed) &&
         std::ranges::none_of(flags_, &WatchedFlag::has_changed);
}

bool WatchedState::holds(std::atomic<std::uint64_t>& known) const {
  if (const std::uint64_t now = changes_of_setups(); known.load(std::memory_order_acquire) != now) {
    if (!setups_and_flags_hold()) return false;
    known.store(now, std::memory_order_release);
  }
  return std::ranges::none_of(fields_, &WatchedFields::has_changed);
}

bool WatchedState::is_over() const {
  return std::ranges::any_of(setups_, &WatchedSetup::has_changed) ||
         std::ranges::any_of(fields_, &WatchedFields::is_gone) ||
         std::ranges::any_of(flags_, [](const WatchedFlag& each) { return each.flag.expired(); });
}

std::string WatchedState::difference() const {
  std::string all;
  const auto collect = [&](const auto& watched) {
    for (const auto& each : watched)
      if (const std::string one = each.difference(); !one.empty()) all += (all.empty() ? "" : "; ") + one;
  };
  collect(fields_);
  if (all.empty()) collect(setups_);  // a replaced layer is reported by its field already
  if (all.empty()) collect(flags_);
  return all;
}

}  // namespace gradus
