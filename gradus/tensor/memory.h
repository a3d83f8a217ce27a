/// The memory that tensors hold, and its limit. Only the bytes of their data are counted, without the additions of
/// rounding and caching. Each thread counts in an account of its own, so that threads do not wait for each other.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include "gradus/tensor/device.h"

namespace gradus {

/// Units of memory, in bytes.
inline constexpr std::size_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

/// The memory of a device that tensors use.
struct MemoryUse {
  std::size_t live_bytes, peak_bytes, limit_bytes;  // now; the most so far; the limit
};
/// The memory that tensors use on a device. It is exact while no other thread allocates or frees. Each logical device
/// of the processor has an account and a limit of its own. Unavailable if the device does not exist.
MemoryUse memory_use(Device device = default_device());
/// Resets the peak: peak_bytes becomes live_bytes.
void reset_peak_memory(Device device = default_device());
/// Limits the memory of a device. It grows on demand up to the limit; past that, a ResourceExhausted names the largest
/// holders. 0 restores the default, the memory of the machine.
void set_memory_limit(Device device, std::size_t bytes);

namespace detail::inline rooms::memory {

/// Bytes that live now, as memory_use says.
std::int64_t live_bytes(int device = 0);

/// The peak in its lifetime, whatever reset_peak_memory does.
class PeakWatch {
 public:
  [[nodiscard]] explicit PeakWatch(int device = 0);
  ~PeakWatch();
  PeakWatch(const PeakWatch&) = delete;
  /// Above what lived at its beginning.
  std::int64_t bytes() const;

  // For the ledger.
  std::int64_t peak = 0;
  PeakWatch* previous = nullptr;
  PeakWatch* next = nullptr;

 private:
  const int device_;
  std::int64_t first_ = 0;
};

/// From this size on a buffer has a label, by which errors and reports name it.
inline constexpr std::int64_t labelled_bytes = 1 << 20;
/// Bytes that a thread may allocate or free before its account is looked at.
inline constexpr std::int64_t account_step = 64 << 10;

/// Bytes that a thread allocated, less those that it freed. Only that thread writes it, except when the peak or the
/// limit is reset.
struct Account {
  std::atomic<std::int64_t> live{0};
  std::atomic<std::int64_t> high{0};     // most since the account was last settled
  std::atomic<std::int64_t> ceiling{0};  // past it the limit is checked
  int device = 0;                        // logical device of the processor
  Account* previous = nullptr;
  Account* next = nullptr;
};
void open(Account& account);
void close(Account& account) noexcept;

void check_limit(Account& account, std::int64_t bytes, const char* what);
void settle(Account& account) noexcept;

/// Counts `bytes` that are about to be allocated. ResourceExhausted past the limit; then nothing is counted.
inline void charge(Account& account, std::int64_t bytes, const char* what) {
  const std::int64_t live = account.live.load(std::memory_order_relaxed) + bytes;
  if (live > account.high.load(std::memory_order_relaxed)) {
    if (live > account.ceiling.load(std::memory_order_relaxed)) return check_limit(account, bytes, what);
    account.high.store(live, std::memory_order_relaxed);
  }
  account.live.store(live, std::memory_order_relaxed);
}
inline void discharge(Account& account, std::int64_t bytes) noexcept {
  const std::int64_t live = account.live.load(std::memory_order_relaxed) - bytes;
  account.live.store(live, std::memory_order_relaxed);
  if (account.high.load(std::memory_order_relaxed) - live > account_step) settle(account);
}

/// charge() for a thread that has closed its account, as in destructors of thread-locals and statics.
void charge_without_account(int device, std::int64_t bytes, const char* what);
void discharge_without_account(int device, std::int64_t bytes) noexcept;

/// An entry for a large buffer in the list from which errors name the largest.
struct Holder {
  std::int64_t bytes;
  std::string label;
  int device = 0;
  Holder* previous = nullptr;
  Holder* next = nullptr;
};
void enlist(Holder& holder) noexcept;
void delist(Holder& holder) noexcept;
void relabel(Holder& holder, std::string label) noexcept;

/// Throws the ResourceExhausted for memory that the system does not have.
[[noreturn]] void fail_system(std::int64_t bytes, const char* what);

}  // namespace detail::inline rooms::memory
}  // namespace gradus
