/// Philox4x32 as its authors give it (Salmon and others, 2011, figure 2): what the formula is compared with.
#pragma once
#include <array>
#include <cstdint>

namespace gradus::rows {

using Block = std::array<std::uint32_t, 4>;

inline Block philox4x32(Block counter, std::array<std::uint32_t, 2> key, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// What the op gives: 53 bits from words 2*half and 2*half + 1.
inline std::int64_t philox_bits(std::int64_t index, std::int64_t key, std::size_t half) {
  const auto low = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::int64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const Block words = philox4x32({low(index), high(index), 0, 0}, {low(key), high(key)}, 7);
  return static_cast<std::int64_t>(words[2 * half] | std::uint64_t{words[2 * half + 1] & 0x1fffff} << 32);
}

}  // namespace gradus::rows
