/// What one worker of a team has to do of a job, in units of which neighbours are done together. It takes them from the
/// front; workers that have done all of theirs take over some from the end.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace gradus {

/// Units [begin, end). Work in passes goes over them several times; `passes_left`: how often after this pass.
struct Units {
  std::int64_t begin = 0, end = 0, passes_left = 0;
  std::int64_t count() const { return end - begin; }
};

/// Two stretches: one that the owner is going over, and what comes after it, of which nothing has been begun. All but
/// take_over is the owner's alone; what it wrote before is seen by whoever takes units over.
class alignas(64) Share {
 public:
  /// Counts that are not below this fit into no share.
  static constexpr std::int64_t most_units = 1 << 24, most_passes = 1 << 16;

  /// `least`: fewer units than this are not worth taking over.
  void begin(std::int64_t begin, std::int64_t end, std::int64_t least) {
    least_.store(least, std::memory_order_relaxed);
    later_.store(packed({begin, end}), std::memory_order_release);
  }
  Units later() const { return unpacked(later_.load(std::memory_order_relaxed)); }
  Units now() const { return unpacked(now_.load(std::memory_order_relaxed)); }

  /// The first of what comes later, at most so many: nobody else gets them any more, unless they are offered.
  Units next(std::int64_t most) { return take(later_, most); }
  /// These are what the owner goes over now.
  void offer(const Units& units) { now_.store(packed(units), std::memory_order_release); }
  /// The next of them, at most so many: they are done in this pass.
  Units take(std::int64_t most) { return take(now_, most); }
  /// After the last of them: another pass over all from `begin` on that are still the owner's.
  void next_pass(std::int64_t begin) {
    std::uint64_t known = now_.load(std::memory_order_relaxed);
    for (Units units = unpacked(known);; units = unpacked(known))
      if (now_.compare_exchange_weak(known, packed({begin, units.end, units.passes_left - 1}),
                                     std::memory_order_release, std::memory_order_relaxed))
        return;
  }

  enum class Found { nothing, more_soon, taken };
  /// Half of what `other` has left becomes this one's, which must have none; of work that other passes follow the other
  /// one keeps some. More_soon: it has another pass to do.
  Found take_over(Share& other) {
    const std::int64_t least = other.least_.load(std::memory_order_relaxed);
    if (take_half(other.later_, least, later_)) return noted(least);
    if (take_half(other.now_, least, now_)) return noted(least);
    const Units left = unpacked(other.now_.load(std::memory_order_relaxed));
    return left.passes_left > 0 ? Found::more_soon : Found::nothing;
  }

 private:
  static std::uint64_t packed(const Units& units) {
    if (units.begin >= units.end && units.passes_left == 0) return 0;
    return static_cast<std::uint64_t>(units.passes_left << 48 | units.end << 24 | units.begin);
  }
  static Units unpacked(std::uint64_t word) {
    constexpr std::uint64_t mask = most_units - 1;
    return {static_cast<std::int64_t>(word & mask), static_cast<std::int64_t>(word >> 24 & mask),
            static_cast<std::int64_t>(word >> 48)};
  }
  static Units take(std::atomic<std::uint64_t>& from, std::int64_t most) {
    std::uint64_t known = from.load(std::memory_order_relaxed);
    for (;;) {
      const Units units = unpacked(known);
      const Units taken{units.begin, std::min(units.begin + most, units.end), units.passes_left};
      if (taken.count() <= 0) return {};
      if (from.compare_exchange_weak(known, packed({taken.end, units.end, units.passes_left}),
                                     std::memory_order_relaxed))
        return taken;
    }
  }
  static bool take_half(std::atomic<std::uint64_t>& from, std::int64_t least, std::atomic<std::uint64_t>& to) {
    std::uint64_t known = from.load(std::memory_order_relaxed);
    for (;;) {
      const Units units = unpacked(known);
      const std::int64_t count = (units.count() + (units.passes_left == 0)) / 2;
      if (count < std::max<std::int64_t>(1, least)) return false;
      const std::uint64_t rest = packed({units.begin, units.end - count, units.passes_left});
      if (!from.compare_exchange_weak(known, rest, std::memory_order_acquire, std::memory_order_relaxed)) continue;
      to.store(packed({units.end - count, units.end, units.passes_left}), std::memory_order_release);
      return true;
    }
  }
  Found noted(std::int64_t least) {
    least_.store(least, std::memory_order_relaxed);
    return Found::taken;
  }

  std::atomic<std::uint64_t> now_ = 0, later_ = 0;
  std::atomic<std::int64_t> least_ = 1;
};

}  // namespace gradus
