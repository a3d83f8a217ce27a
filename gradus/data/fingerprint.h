/// Fingerprints by which ranks check that they read the same: of the stages of a data set, and of a batch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
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

/// The fingerprint of a batch whose rows are all on this rank; never 0. Batch number 0 is read in full, and then each
/// k-th, where k batches have as many times 64 KiB as one has bytes. The others are sampled, 16 KiB a tensor.
std::uint64_t fingerprint_of_batch(std::span<const Tensor> batch, std::int64_t number);

/// A hash of bytes that takes some 150 us for a MiB.
std::uint64_t fingerprint_of_bytes(std::span<const std::byte> bytes, std::uint64_t seed = 0);

/// The bytes of `x` in the memory of the host.
std::span<const std::byte> host_bytes(const Tensor& x);

}  // namespace gradus
