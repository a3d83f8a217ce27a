/// How much memory tensors hold. Counted are the bytes of their data; what rounding and caching add is not.
/// Each thread counts in an account of its own, so that counting is no meeting point of threads.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include "gradus/tensor/device.h"

namespace gradus {

inline constexpr std::size_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

struct MemoryUse {
  std::size_t live_bytes, peak_bytes, limit_bytes;
};
/// Exact while no other thread allocates or frees. Each logical device of the processor has an account and a limit of
/// its own. Unavailable if the device is not there.
MemoryUse memory_use(Device device = default_device());
/// peak_bytes becomes live_bytes.
void reset_peak_memory(Device device = default_device());
/// Memory grows on demand up to this; past it: ResourceExhausted with the largest holders. 0 brings back the default,
/// the memory of the machine.
void set_memory_limit(Device device, std::size_t bytes);

namespace memory {

/// From this size on a buffer has a label, by which errors and reports name it.
inline constexpr std::int64_t labelled_bytes = 1 << 20;
/// How far a thread may move before its account is looked at.
inline constexpr std::int64_t account_step = 64 << 10;

/// What a thread allocated less what it freed. Written by that thread alone, but for a reset of the peak or the limit.
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

/// ResourceExhausted past the limit; then nothing is charged.
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

/// The same for a thread that has closed its account: destructors of thread-locals and statics.
void charge_without_account(int device, std::int64_t bytes, const char* what);
void discharge_without_account(int device, std::int64_t bytes) noexcept;

/// A large buffer, in the list from which errors name the largest.
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

/// The system itself has no more.
[[noreturn]] void fail_system(std::int64_t bytes, const char* what);

}  // namespace memory
}  // namespace gradus
