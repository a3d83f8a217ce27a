/// Phases: targets of windows that share their taps. For a convolution these are all targets, for its transpose those
/// of equal remainder by the stride.
#pragma once
#include <vector>
#include "gradus/backend/cpu/kernels/windows.h"

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
/// The taps of targets first, first + divisor, ...; there may be none.
Residue residue_of(const WindowAxis& axis, std::int64_t first);
/// All residues that have taps.
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
void for_each_vector(const Phase& phase, const auto& visit) { visit(phase.taps); }
std::vector<Phase> phases_of(const WindowAxes& axes);

/// The length of the runs, all alike, in which `count` taps follow each other: follows(i) says whether tap i follows
/// i - 1. 1 where runs would differ in length.
template <class Follows> std::size_t length_of_runs(std::size_t count, const Follows& follows) {
  std::size_t length = 1;
  while (length < count && follows(length)) ++length;
  if (count % length != 0) return 1;
  for (std::size_t i = 1; i < count; ++i)
    if (i % length != 0 && !follows(i)) return 1;
  return length;
}

}  // namespace gradus::library
