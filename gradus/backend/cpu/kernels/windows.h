/// Loops over windows: which element of a source each tap of a target's window reads. Convolutions and pooling walk
/// forward from windows to their elements; their transposes from elements to the windows that see them.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include "gradus/tensor/shape.h"

namespace gradus::library {

/// One spatial dimension: tap k of target t reads source (t*scale + k*tap + offset) / divisor, if that divides without
/// remainder and lies in [0, sources).
struct WindowAxis {
  std::int64_t targets = 1, sources = 1, taps = 1, scale = 1, tap = 0, offset = 0, divisor = 1;

  /// The targets that tap k contributes to, in ascending order: first, first + step, ...; their sources in the same
  /// order.
  struct Run {
    std::int64_t count = 0, target = 0, target_step = 1, source = 0, source_step = 1;
  };
  Run run(std::int64_t k) const;
  /// -1: none.
  std::int64_t source(std::int64_t t, std::int64_t k) const {
    const std::int64_t at = t * scale + k * tap + offset;
    return at >= 0 && at % divisor == 0 && at / divisor < sources ? at / divisor : -1;
  }
};
/// The last of three; missing ones are of one element.
using WindowAxes = std::array<WindowAxis, 3>;

struct WindowShapes {
  Shape strides, dilations, before, kernel;
};
/// Targets are windows, sources their elements.
WindowAxes windows_to_elements(const WindowShapes& shapes, const Shape& windows, const Shape& elements);
/// Targets are elements, sources the windows that see them.
WindowAxes elements_to_windows(const WindowShapes& shapes, const Shape& elements, const Shape& windows);

inline std::int64_t targets_of(const WindowAxes& a) { return a[0].targets * a[1].targets * a[2].targets; }
inline std::int64_t sources_of(const WindowAxes& a) { return a[0].sources * a[1].sources * a[2].sources; }
inline std::int64_t taps_of(const WindowAxes& a) { return a[0].taps * a[1].taps * a[2].taps; }
/// Targets that differ in the last dimension alone.
inline std::int64_t lines_of(const WindowAxes& a) { return a[0].targets * a[1].targets; }

/// Calls visit(tap, run, source) for every tap, in row-major order, that gives targets of line `line` anything: the run
/// is along the last dimension, `source` the flat position of the source line that it is in.
template <class Visit> void for_each_tap(const WindowAxes& axes, std::int64_t line, Visit visit) {
  const std::int64_t t0 = line / axes[1].targets, t1 = line % axes[1].targets;
  for (std::int64_t k0 = 0; k0 < axes[0].taps; ++k0) {
    const std::int64_t s0 = axes[0].source(t0, k0);
    if (s0 < 0) continue;
    for (std::int64_t k1 = 0; k1 < axes[1].taps; ++k1) {
      const std::int64_t s1 = axes[1].source(t1, k1);
      if (s1 < 0) continue;
      for (std::int64_t k2 = 0; k2 < axes[2].taps; ++k2) {
        const WindowAxis::Run run = axes[2].run(k2);
        if (run.count > 0)
          visit((k0 * axes[1].taps + k1) * axes[2].taps + k2, run, (s0 * axes[1].sources + s1) * axes[2].sources);
      }
    }
  }
}

}  // namespace gradus::library
