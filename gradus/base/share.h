/// The share of a job that one worker of a team has (work stealing), in units; neighbouring ones are done together. The
/// owner takes units from the front. Workers that have done all of theirs take over some from the end.
///
///   units that are done | now: those that the owner goes over, some passes | later: nobody has begun them
///                       take -->                                 <-- half  | next -->             <-- half
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace gradus {

/// Units [begin, end). Work in passes goes over them several times; `passes_left` counts the passes after this one.
struct Units {
  std::int64_t begin = 0, end = 0, passes_left = 0;
  std::int64_t count() const { return end - begin; }
};

/// Everything except take_over is for the owner alone. A worker that takes units over sees everything that the owner
/// wrote before. Each stretch is one word, so a change sees all of it. When all members are done with a job, both
/// stretches are empty.
class alignas(64) Share {
 public:
  static constexpr std::int64_t most_units = (1 << 24) - 1, most_passes_left = (1 << 16) - 1;

  /// Sets the units to be done.
  void begin(const Units& units) { later_.store(packed(units), std::memory_order_release); }
  Units later() const { return unpacked(later_.load(std::memory_order_relaxed)); }
  Units now() const { return unpacked(now_.load(std::memory_order_relaxed)); }

  /// Takes the first units of later(), at most `most`. Nobody else gets them any more, unless they are offered.
  Units next(std::int64_t most) { return take(later_, most); }
  /// Declares the units that the owner goes over now.
  void offer(const Units& units) { now_.store(packed(units), std::memory_order_release); }
  /// Takes the next of those, at most `most`: they are done in this pass.
  Units take(std::int64_t most) { return take(now_, most); }
  /// After the last of them: starts another pass over all units from `begin` on that are still the owner's.
  void next_pass(std::int64_t begin) {
    std::uint64_t known = now_.load(std::memory_order_relaxed);
    for (Units units = unpacked(known);; units = unpacked(known))
      if (now_.compare_exchange_weak(known, packed({begin, units.end, units.passes_left - 1}),
                                     std::memory_order_release, std::memory_order_relaxed))
        return;
  }

  enum class Found { nothing, more_soon, taken };
  /// Takes half of the units that `other` has left, if it is at least `least` units; this share must be empty. If the
  /// work has further passes the other one keeps some. more_soon: it has another pass to do.
  Found take_over(Share& other, std::int64_t least) {
    if (take_half(other.later_, least, later_) || take_half(other.now_, least, now_)) return Found::taken;
    return other.now().passes_left > 0 ? Found::more_soon : Found::nothing;
  }
  /// After a failure: drops all units.
  void clear() { now_ = 0, later_ = 0; }

 private:
  static std::uint64_t packed(const Units& units) {
    if (units.begin >= units.end && units.passes_left == 0) return 0;
    return static_cast<std::uint64_t>(units.passes_left) << 48 | static_cast<std::uint64_t>(units.end) << 24 |
           static_cast<std::uint64_t>(units.begin);
  }
  static Units unpacked(std::uint64_t word) {
    constexpr std::uint64_t mask = most_units;
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

  std::atomic<std::uint64_t> now_ = 0, later_ = 0;
};

}  // namespace gradus
