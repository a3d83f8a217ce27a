/// Fingerprints of a chain of stages, by which ranks that read a data set together see that it is one.
#pragma once
#include <cstdint>
#include <vector>
#include "gradus/data/stage.h"

namespace gradus {

/// Of one stage alone.
struct StageFingerprint {
  const Stage* stage;
  std::uint64_t hash;  // of Stage::fingerprint() and the specs
};

/// Those of `last` and of all that it reads, sources first.
std::vector<StageFingerprint> fingerprints_of(const Stage& last);

}  // namespace gradus
