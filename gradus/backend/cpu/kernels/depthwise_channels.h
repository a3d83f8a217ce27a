/// Arithmetic of depthwise convolutions: neighbours among channels are vectors, every product is one fused step.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/run/program.h"

namespace gradus::library::depthwise {

/// Integers wrap around, as unsigned ones do.
template <class T> struct ComputedAs {
  using type = std::make_unsigned_t<T>;
};
template <> struct ComputedAs<float> {
  using type = float;
};
template <> struct ComputedAs<double> {
  using type = double;
};

/// Where a tap reads for the first target of a run, and its weights.
template <class E> struct TapAt {
  const E *x, *w;
};

/// A run of targets that share their taps.
template <class E> struct SharedTaps {
  const TapAt<E>* taps;
  std::int64_t count;
  std::int64_t x_step, y_step;  // from one target to the next
};

constexpr std::int64_t most_taps = 3;  // of a row, and rows of them: nine sums, more than a multiplication takes cycles

/// A line of windows, and the line of elements that each row of taps reads there; null: none.
template <class E> struct LineTaps {
  const E* dy;
  const E* x[most_taps];
};

/// Channels [first, last).
struct ChannelRange {
  std::int64_t all, first, last;
};

/// Up to three neighbours among the taps of a row: which windows each of them reads for, and where.
struct TapReach {
  std::int64_t begin[most_taps], end[most_taps], shift[most_taps];
  std::int64_t scale, all_begin, all_end;  // windows for which all of them read
  std::int64_t first, last;                // and any
};

/// The arithmetic for one instruction set. All give the same bits.
template <class E> struct ChannelFunctions {
  /// All channels of some neighbours, the first of which is target `at` of the run: four, two, one.
  using SumTargets = void (*)(const SharedTaps<E>& run, std::int64_t at, std::int64_t channels, E* y);
  SumTargets sum_four, sum_two, sum_one;
  /// Adds `count` lines to `rows` rows by `taps` neighbours among the taps, the first at `dw`; windows in order for
  /// every tap. If rows are several, the first or the last may read nothing in a line, not both. `row`: elements of dw
  /// from a row of taps to the next.
  using AddLines = void (*)(const LineTaps<E>* lines, std::size_t count, const TapReach& reach, const ChannelRange& c,
                            std::int64_t row, E* dw);
  AddLines add_lines[most_taps][most_taps];  // [rows - 1][taps - 1]
};

/// By vectors of up to 32, of up to 64, and of 16 bytes; E: float, double, std::uint32_t, std::uint64_t.
template <class E> const ChannelFunctions<E>& channels_by_avx2();
template <class E> const ChannelFunctions<E>& channels_by_avx512();
template <class E> const ChannelFunctions<E>& channels_by_neon();

template <class E> const ChannelFunctions<E>& channel_functions() {
#if defined(__x86_64__)
  return cpu_backend::processor().kernel_vector_bytes == 64 ? channels_by_avx512<E>() : channels_by_avx2<E>();
#else
  return channels_by_neon<E>();
#endif
}

template <class E> const E* pointer(const KernelArguments* arguments, int slot) {
  return static_cast<const E*>(arguments->slots[slot]);
}
template <class E> E* target_pointer(const KernelArguments* arguments, int slot) {
  return static_cast<E*>(arguments->slots[slot]);
}

}  // namespace gradus::library::depthwise
