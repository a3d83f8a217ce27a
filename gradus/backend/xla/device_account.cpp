#include "gradus/backend/xla/device_account.h"
#include <algorithm>
#include <iomanip>
#include <limits>
#include "gradus/tensor/out_of_memory.h"

namespace gradus::xla {
namespace {

constexpr std::size_t holders_named = 5;

/// "1.5 MiB"
std::string size_text(std::int64_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double scaled = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; scaled >= 1024 && unit + 1 < std::size(units); ++unit) scaled /= 1024;
  return unit == 0 ? text(bytes, " bytes") : text(std::fixed, std::setprecision(1), scaled, ' ', units[unit]);
}

}  // namespace

void DeviceAccount::add(const Holder& holder) {
  const std::lock_guard lock(guard_);
  if (holder.bytes >= memory::labelled_bytes) large_.insert(&holder);
  live_ += holder.bytes;
  peak_ = std::max(peak_, live_);
}

void DeviceAccount::remove(const Holder& holder) noexcept {
  const std::lock_guard lock(guard_);
  if (holder.bytes >= memory::labelled_bytes) large_.erase(&holder);
  live_ -= holder.bytes;
}

void DeviceAccount::require_room(std::int64_t bytes, const std::string& what) {
  const std::lock_guard lock(guard_);
  if (own_limit_ > 0 && live_ + bytes > own_limit_) throw_error(bytes, what, "memory limit reached");
}

void DeviceAccount::fail(std::int64_t bytes, const std::string& what, std::string_view why) {
  const std::lock_guard lock(guard_);
  throw_error(bytes, what, why);
}

void DeviceAccount::throw_error(std::int64_t bytes, const std::string& what, std::string_view why) const {
  throw OutOfMemory(text(why, " on ", device_, ": ", what, " asks for ", size_text(bytes), ", ", size_text(live_),
                         " are live", limit() ? text(", the limit is ", size_text(limit())) : "", "; ", holders_text(),
                         ". Use a smaller batch or micro_batches, drop tensors that are no longer read, or raise the "
                         "limit with set_memory_limit"));
}

std::string DeviceAccount::holders_text() const {
  std::vector<const Holder*> largest(large_.begin(), large_.end());
  std::ranges::stable_sort(largest, [](auto* a, auto* b) { return a->bytes > b->bytes; });
  if (largest.empty()) return "no buffer holds 1 MiB or more";
  std::string out = "the largest holders are ";
  for (std::size_t i = 0; i < std::min(holders_named, largest.size()); ++i)
    out += text(i ? ", " : "", largest[i]->label, ": ", size_text(largest[i]->bytes));
  return out;
}

MemoryUse DeviceAccount::use() {
  const std::lock_guard lock(guard_);
  return {static_cast<std::size_t>(live_), static_cast<std::size_t>(peak_), static_cast<std::size_t>(limit())};
}

void DeviceAccount::reset_peak() {
  const std::lock_guard lock(guard_);
  peak_ = live_;
}

void DeviceAccount::set_limit(std::size_t bytes) {
  const std::lock_guard lock(guard_);
  own_limit_ = static_cast<std::int64_t>(std::min(bytes, std::size_t{std::numeric_limits<std::int64_t>::max()}));
}

}  // namespace gradus::xla
