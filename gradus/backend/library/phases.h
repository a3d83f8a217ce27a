/// Targets of windows that share their taps: all of a convolution; of its transpose those of equal remainder by the
/// stride.
#pragma once
#include <vector>
#include "gradus/backend/library/windows.h"

namespace gradus::library {

/// Targets of one dimension that the same taps give anything, since they have one remainder by the divisor: target
/// first + divisor * j reads source base + step * j at a tap.
struct Residue {
  struct Tap {
    std::int64_t number, base;
  };
  std::int64_t first = 0, count = 0, step = 1;
  std::vector<Tap> taps;
};
std::vector<Residue> residues_of(const WindowAxis& axis);

/// One tap of three dimensions, and where the first target of a phase reads.
struct Tap {
  std::int64_t number;
  std::array<std::int64_t, 3> base;
};
/// Targets that share their taps.
struct Phase {
  std::array<std::int64_t, 3> first, count, step;
  std::vector<Tap> taps;
  std::int64_t rows = 0;
};
std::vector<Phase> phases_of(const WindowAxes& axes);

}  // namespace gradus::library
