#include "gradus/data/fingerprint.h"
#include <algorithm>
#include <array>
#include <cstring>
#include "gradus/base/divide.h"
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"

namespace gradus {
namespace {

void collect(const Stage& stage, std::vector<StageFingerprint>& out) {
  for (const Stage* source : stage.sources()) collect(*source, out);
  std::uint64_t hash = stage.fingerprint();
  for (const Spec& spec : stage.specs()) hash = mix(hash, hash_of(spec));
  out.push_back({&stage, hash});
}

/// A hash of 16 blocks of 1 KiB, spread over all bytes.
std::uint64_t hash_of_sample(std::span<const std::byte> bytes, std::uint64_t seed) {
  constexpr std::size_t blocks = 16, block = 1024;
  if (bytes.size() <= blocks * block) return fingerprint_of_bytes(bytes, seed);
  std::uint64_t hash = mix(seed, bytes.size());
  for (std::size_t i = 0; i < blocks; ++i)
    hash = fingerprint_of_bytes(bytes.subspan((bytes.size() - block) / (blocks - 1) * i, block), hash);
  return hash;
}

}  // namespace

std::vector<StageFingerprint> fingerprints_of(const Stage& last) {
  std::vector<StageFingerprint> all;
  collect(last, all);
  return all;
}

std::uint64_t fingerprint_of_batch(std::span<const Tensor> batch, std::int64_t number) {
  constexpr std::int64_t bytes_per_batch = 64 << 10;  // on average
  std::int64_t bytes = 0;
  for (const Tensor& x : batch) bytes += static_cast<std::int64_t>(x.bytes());
  const bool reads_all = number % std::max<std::int64_t>(1, divide_up(bytes, bytes_per_batch)) == 0;
  std::uint64_t hash = 0;
  for (const Tensor& x : batch)
    hash = reads_all ? fingerprint_of_bytes(host_bytes(x), hash) : hash_of_sample(host_bytes(x), hash);
  return hash | 1;
}

std::uint64_t fingerprint_of_bytes(std::span<const std::byte> bytes, std::uint64_t seed) {
  constexpr std::size_t word = sizeof(std::uint64_t);
  std::array<std::uint64_t, 4> lanes{seed, seed + 1, seed + 2, seed + 3};  // a single one waits for each product
  while (bytes.size() >= lanes.size() * word) {
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      std::uint64_t read;
      std::memcpy(&read, bytes.data() + i * word, word);
      lanes[i] = mix(lanes[i], read);
    }
    bytes = bytes.subspan(lanes.size() * word);
  }
  std::uint64_t hash = bytes.size();
  for (const std::uint64_t lane : lanes) hash = mix(hash, lane);
  return hash_of_bytes(bytes, hash);
}

std::span<const std::byte> host_bytes(const Tensor& x) {
  return {static_cast<const std::byte*>(x.host_buffer()->host()), x.bytes()};
}

}  // namespace gradus
