/// Targets that share their taps.
#include "gradus/backend/cpu/kernels/phases.h"
#include <algorithm>
#include "gradus/base/divide.h"

namespace gradus::library {

Residue residue_of(const WindowAxis& axis, std::int64_t first) {
  Residue r{first, divide_up(axis.targets - first, axis.divisor), axis.divisor == 1 ? axis.scale : 1, {}};
  for (std::int64_t k = 0; k < axis.taps; ++k) {
    const std::int64_t at = first * axis.scale + k * axis.tap + axis.offset;
    if (at % axis.divisor == 0) r.taps.push_back({k, at / axis.divisor});
  }
  return r;
}

namespace {

/// The residues that may have taps, ascending: no more than there are taps, however large the stride is.
std::vector<std::int64_t> candidates_of(const WindowAxis& axis) {
  const std::int64_t limit = std::min(axis.divisor, axis.targets);
  std::vector<std::int64_t> firsts;
  if (axis.scale == 1 && axis.taps < limit) {
    for (std::int64_t k = 0; k < axis.taps; ++k) {
      const std::int64_t rest = (k * axis.tap + axis.offset) % axis.divisor;
      const std::int64_t first = rest <= 0 ? -rest : axis.divisor - rest;
      if (first < limit) firsts.push_back(first);
    }
    std::ranges::sort(firsts);
    firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
    return firsts;
  }
  for (std::int64_t first = 0; first < limit; ++first) firsts.push_back(first);
  return firsts;
}

}  // namespace

std::vector<Residue> residues_of(const WindowAxis& axis) {
  std::vector<Residue> residues;
  for (const std::int64_t first : candidates_of(axis))
    if (Residue r = residue_of(axis, first); !r.taps.empty()) residues.push_back(std::move(r));
  return residues;
}

std::vector<Phase> phases_of(const WindowAxes& axes) {
  std::vector<Phase> phases;
  for (const Residue& a : residues_of(axes[0]))
    for (const Residue& b : residues_of(axes[1]))
      for (const Residue& c : residues_of(axes[2])) {
        Phase phase{{a.first, b.first, c.first}, {a.count, b.count, c.count}, {a.step, b.step, c.step}, {}};
        for (const auto& [ka, base_a] : a.taps)
          for (const auto& [kb, base_b] : b.taps)
            for (const auto& [kc, base_c] : c.taps)
              phase.taps.push_back({(ka * axes[1].taps + kb) * axes[2].taps + kc, {base_a, base_b, base_c}});
        phases.push_back(std::move(phase));
      }
  return phases;
}

}  // namespace gradus::library
