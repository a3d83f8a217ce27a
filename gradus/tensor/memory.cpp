#include "gradus/tensor/memory.h"
#include <unistd.h>
#include <algorithm>
#include <array>
#include <iomanip>
#include <limits>
#include <mutex>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/tensor/device_finder.h"
#include "gradus/tensor/failing_allocation.h"
#include "gradus/tensor/heap.h"
#include "gradus/tensor/out_of_memory.h"

namespace gradus {
namespace {

constexpr std::size_t holders_named = 5;

/// The limit of an account whose every allocation is checked; far from overflowing where bytes are subtracted.
constexpr std::int64_t below_all = std::numeric_limits<std::int64_t>::min() / 4;

std::int64_t machine_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? std::int64_t{pages} * size : std::numeric_limits<std::int64_t>::max();
}

/// "1536 bytes (1.5 KiB)"
std::string size_text(std::int64_t bytes) {
  if (bytes < 1024) return text(bytes, " bytes");
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double scaled = static_cast<double>(bytes) / 1024;
  int unit = 0;
  for (; scaled >= 1024; ++unit) scaled /= 1024;
  return text(bytes, " bytes (", std::fixed, std::setprecision(1), scaled, ' ', units[unit], ')');
}

/// Trivially destructible: buffers may be freed by the destructors of other statics.
struct Ledger {
  std::mutex mutex;
  memory::Account* accounts = nullptr;
  memory::Holder* holders = nullptr;
  memory::PeakWatch* watches = nullptr;
  std::int64_t closed_live = 0;  // of threads that have ended
  std::int64_t peak = 0;
  std::int64_t limit = 0;  // 0: the machine's, found when first asked for
  bool counts = false;     // a test wants to see every allocation, and the one of number `refused` to fail
  std::int64_t counted = 0, refused = -1;

  int device() const;

  // All of these are called with the mutex held.
  std::int64_t live() const {
    std::int64_t sum = closed_live;
    for (auto* a = accounts; a; a = a->next) sum += a->live.load(std::memory_order_relaxed);
    return sum;
  }
  std::int64_t bound() {
    if (limit == 0) limit = machine_bytes();
    return limit;
  }
  void note_peak(std::int64_t bytes) {
    peak = std::max(peak, bytes);
    for (auto* watch = watches; watch; watch = watch->next) watch->peak = std::max(watch->peak, bytes);
  }
  /// Takes the account's high water into the peak, and lets it run freely for a step, less near the limit.
  void settle(memory::Account& account) {
    const std::int64_t total = live(), own = account.live.load(std::memory_order_relaxed);
    note_peak(total - own + std::max(own, account.high.load(std::memory_order_relaxed)));
    account.high.store(counts ? below_all : own, std::memory_order_relaxed);
    std::int64_t open_accounts = 1;
    for (auto* a = accounts; a; a = a->next) ++open_accounts;
    const std::int64_t room = std::max(std::int64_t{0}, (bound() - total) / open_accounts);
    account.ceiling.store(counts ? below_all : own + std::min(memory::account_step, room), std::memory_order_relaxed);
  }
  void settle_all() {
    for (auto* a = accounts; a; a = a->next) settle(*a);
    note_peak(live());
  }

  std::string holders_text() const {
    std::vector<const memory::Holder*> largest;
    for (auto* h = holders; h; h = h->next) largest.push_back(h);
    const std::size_t named = std::min(holders_named, largest.size());
    std::partial_sort(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(named), largest.end(),
                      [](auto* a, auto* b) { return a->bytes > b->bytes; });
    if (named == 0) return "no buffer holds 1 MiB or more";
    std::string out = "the largest holders are ";
    for (std::size_t i = 0; i < named; ++i)
      out += text(i ? ", " : "", largest[i]->label, ": ", size_text(largest[i]->bytes));
    return out;
  }
  [[noreturn]] void fail(std::int64_t bytes, const char* what, std::string_view why,
                         std::string_view raise = "raise the limit with set_memory_limit") {
    throw OutOfMemory(text(why, device() > 0 ? text(" on cpu:", device()) : "", ": ", what, " asks for ",
                           size_text(bytes), ", ", size_text(live()), " are live, the limit is ", size_text(bound()),
                           "; ", holders_text(),
                           ". Use a smaller batch or micro_batches, drop tensors that are no longer read, or ", raise));
  }
  void require_room(std::int64_t bytes, const char* what) {
    if (counts && counted++ == refused) fail(bytes, what, "an allocation that is made to fail");
    if (bytes > bound() - live()) fail(bytes, what, "memory limit reached");
  }
};

constinit std::array<Ledger, Device::most> ledgers{};
int Ledger::device() const { return static_cast<int>(this - ledgers.data()); }

Ledger& ledger_of(int device) { return ledgers[static_cast<std::size_t>(device)]; }
/// The keeper of the account of `device`; null: it is a logical device of the processor.
DeviceFinder* keeper_of(const Device& device) {
  require_present(device);
  return device.kind == DeviceKind::cpu ? nullptr : device_finder();
}
/// Before the heap holds more than all devices together may have, it gives memory back.
std::int64_t bound_of_all() {
  std::int64_t sum = 0;
  for (Ledger& ledger : ledgers) {
    const std::lock_guard lock(ledger.mutex);
    const std::int64_t bound = &ledger == ledgers.data() ? ledger.bound() : ledger.limit;
    sum += std::min(bound, std::numeric_limits<std::int64_t>::max() - sum);
  }
  return sum;
}

void insert(auto*& head, auto& item) {
  item.previous = nullptr;
  item.next = head;
  if (head) head->previous = &item;
  head = &item;
}
void erase(auto*& head, auto& item) {
  (item.previous ? item.previous->next : head) = item.next;
  if (item.next) item.next->previous = item.previous;
}

}  // namespace

MemoryUse memory_use(Device device) {
  if (DeviceFinder* const keeper = keeper_of(device)) return keeper->memory_use(device);
  Ledger& ledger = ledger_of(device.index);
  const std::lock_guard lock(ledger.mutex);
  ledger.settle_all();
  return {static_cast<std::size_t>(ledger.live()), static_cast<std::size_t>(ledger.peak),
          static_cast<std::size_t>(ledger.bound())};
}

void reset_peak_memory(Device device) {
  if (DeviceFinder* const keeper = keeper_of(device)) return keeper->reset_peak_memory(device);
  Ledger& ledger = ledger_of(device.index);
  const std::lock_guard lock(ledger.mutex);
  ledger.settle_all();
  ledger.peak = ledger.live();
}

void set_memory_limit(Device device, std::size_t bytes) {
  if (DeviceFinder* const keeper = keeper_of(device)) return keeper->set_memory_limit(device, bytes);
  Ledger& ledger = ledger_of(device.index);
  {
    const std::lock_guard lock(ledger.mutex);
    ledger.limit = static_cast<std::int64_t>(std::min(bytes, std::size_t{std::numeric_limits<std::int64_t>::max()}));
  }
  heap::set_limit(bound_of_all());
  const std::lock_guard lock(ledger.mutex);
  ledger.settle_all();
}

FailingAllocation::FailingAllocation(std::int64_t number) {
  Ledger& ledger = ledger_of(0);
  const std::lock_guard lock(ledger.mutex);
  internal_check(!ledger.counts, "two failing allocations at once");
  ledger.counts = true;
  ledger.counted = 0;
  ledger.refused = number;
  ledger.settle_all();
}
FailingAllocation::~FailingAllocation() {
  Ledger& ledger = ledger_of(0);
  const std::lock_guard lock(ledger.mutex);
  ledger.counts = false;
  ledger.settle_all();
}
std::int64_t FailingAllocation::count() const {
  Ledger& ledger = ledger_of(0);
  const std::lock_guard lock(ledger.mutex);
  return ledger.counted;
}

namespace detail::inline rooms::memory {

std::int64_t live_bytes(int device) {
  Ledger& ledger = ledger_of(device);
  const std::lock_guard lock(ledger.mutex);
  return ledger.live();
}

PeakWatch::PeakWatch(int device) : device_(device) {
  Ledger& ledger = ledger_of(device);
  const std::lock_guard lock(ledger.mutex);
  ledger.settle_all();
  peak = first_ = ledger.live();
  insert(ledger.watches, *this);
}
PeakWatch::~PeakWatch() {
  Ledger& ledger = ledger_of(device_);
  const std::lock_guard lock(ledger.mutex);
  erase(ledger.watches, *this);
}
std::int64_t PeakWatch::bytes() const {
  Ledger& ledger = ledger_of(device_);
  const std::lock_guard lock(ledger.mutex);
  ledger.settle_all();
  return peak - first_;
}

void open(Account& account) {
  Ledger& ledger = ledger_of(account.device);
  const std::lock_guard lock(ledger.mutex);
  insert(ledger.accounts, account);
  if (ledger.counts) ledger.settle(account);
}
void close(Account& account) noexcept {
  Ledger& ledger = ledger_of(account.device);
  const std::lock_guard lock(ledger.mutex);
  ledger.settle(account);
  ledger.closed_live += account.live.load(std::memory_order_relaxed);
  erase(ledger.accounts, account);
}

void check_limit(Account& account, std::int64_t bytes, const char* what) {
  Ledger& ledger = ledger_of(account.device);
  const std::lock_guard lock(ledger.mutex);
  ledger.require_room(bytes, what);
  account.live.store(account.live.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  ledger.settle(account);
}
void settle(Account& account) noexcept {
  Ledger& ledger = ledger_of(account.device);
  const std::lock_guard lock(ledger.mutex);
  ledger.settle(account);
}

void charge_without_account(int device, std::int64_t bytes, const char* what) {
  Ledger& ledger = ledger_of(device);
  const std::lock_guard lock(ledger.mutex);
  ledger.require_room(bytes, what);
  ledger.closed_live += bytes;
  ledger.note_peak(ledger.live());
}
void discharge_without_account(int device, std::int64_t bytes) noexcept {
  Ledger& ledger = ledger_of(device);
  const std::lock_guard lock(ledger.mutex);
  ledger.closed_live -= bytes;
}

void enlist(Holder& holder) noexcept {
  Ledger& ledger = ledger_of(holder.device);
  const std::lock_guard lock(ledger.mutex);
  insert(ledger.holders, holder);
}
void delist(Holder& holder) noexcept {
  Ledger& ledger = ledger_of(holder.device);
  const std::lock_guard lock(ledger.mutex);
  erase(ledger.holders, holder);
}
void relabel(Holder& holder, std::string label) noexcept {
  Ledger& ledger = ledger_of(holder.device);
  const std::lock_guard lock(ledger.mutex);
  holder.label.swap(label);
}

void fail_system(std::int64_t bytes, const char* what) {
  Ledger& ledger = ledger_of(0);
  const std::lock_guard lock(ledger.mutex);
  ledger.fail(bytes, what, "the system has no more memory",
              "allow the process more (ulimit -v, or that of the machine or container)");
}

}  // namespace detail::inline rooms::memory
}  // namespace gradus
