/// The generator of random bits: Philox4x32 with 7 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
/// easy as 1, 2, 3", 2011), a formula of a counter and a key. Seven rounds are the fewest that pass BigCrush. The
/// customary ten cost 1.4 times as much, and dropout pays for each.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// index: i64 [...], key: a scalar i64 in [0, 2^53) -> i64 [...]: 53 random bits per index. `half` 0 and 1 are
/// independent.
Tensor philox(const Tensor& index, const Tensor& key, int half);

}  // namespace gradus
