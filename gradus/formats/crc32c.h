/// The checksum of records in TensorFlow's files: CRC-32C (Castagnoli), and its masked form.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gradus {

/// The CRC-32C of these bytes.
inline std::uint32_t crc32c(std::span<const std::byte> bytes) {
  static constexpr auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t remainder = i;
      for (int bit = 0; bit < 8; ++bit) remainder = remainder >> 1 ^ (remainder & 1 ? 0x82f63b78u : 0u);
      made[i] = remainder;
    }
    return made;
  }();
  std::uint32_t crc = ~0u;
  for (const std::byte b : bytes) crc = crc >> 8 ^ table[(crc ^ std::to_integer<std::uint32_t>(b)) & 0xff];
  return ~crc;
}

/// The checksum as records store it. It is masked, since a checksum of data that hold checksums would be a weak one.
inline std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

}  // namespace gradus
