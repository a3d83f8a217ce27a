/// Fingerprints of a chain of stages, by which ranks check that they read the same data set.
#pragma once
#include <cstdint>
#include <vector>
#include "gradus/data/stage.h"

namespace gradus {

/// The fingerprint of one stage alone.
struct StageFingerprint {
  const Stage* stage;
  std::uint64_t hash;  // hash of Stage::fingerprint() and the specs
};

/// The fingerprints of `last` and of all stages that it reads, sources first.
std::vector<StageFingerprint> fingerprints_of(const Stage& last);

}  // namespace gradus
