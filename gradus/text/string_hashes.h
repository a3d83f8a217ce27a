/// Hashes of strings with the bits that TensorFlow's ops have, so that buckets are the same in every program.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace gradus {

/// FarmHash's Fingerprint64 (Google, 2014), as tf.strings.to_hash_bucket_fast takes it.
std::uint64_t farm_fingerprint(std::string_view bytes);
/// SipHash-2-4 (Aumasson and Bernstein, 2012), as tf.strings.to_hash_bucket_strong takes it.
std::uint64_t sip_hash(std::string_view bytes, const std::array<std::uint64_t, 2>& key);

}  // namespace gradus
