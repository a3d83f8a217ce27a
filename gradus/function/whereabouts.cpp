/// One ordered map of addresses; handles are made and destroyed rarely, some 100 ns each.
#include "gradus/function/whereabouts.h"
#include <atomic>
#include <map>
#include <mutex>

namespace gradus::whereabouts {
namespace {

struct Register {
  std::mutex mutex;
  std::map<std::uintptr_t, Kind> handles;
};
/// Never destroyed: globals of users' programs leave after it would be.
Register& all() {
  static auto& only = *new Register;  // NOLINT
  return only;
}
std::atomic<std::uint64_t> changes_so_far{0};
std::uintptr_t address_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

}  // namespace

void enter(const void* at, Kind kind) {
  const std::lock_guard lock(all().mutex);
  all().handles.insert_or_assign(address_of(at), kind);
  note_change();
}
void leave(const void* at) {
  const std::lock_guard lock(all().mutex);
  all().handles.erase(address_of(at));
  note_change();
}
std::vector<Found> within(const void* begin, std::size_t bytes) {
  std::vector<Found> found;
  const std::lock_guard lock(all().mutex);
  auto each = all().handles.lower_bound(address_of(begin));
  for (; each != all().handles.end() && each->first < address_of(begin) + bytes; ++each)
    found.push_back({reinterpret_cast<const void*>(each->first), each->second});
  return found;
}
std::uint64_t changes() { return changes_so_far.load(std::memory_order_acquire); }
void note_change() { changes_so_far.fetch_add(1, std::memory_order_acq_rel); }

}  // namespace gradus::whereabouts
