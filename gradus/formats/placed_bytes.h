/// Bytes that are read by their places, so that what a reader makes of them is all that has to fit into memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace gradus {

/// The bytes of a file, or of memory that outlives this.
struct PlacedBytes {
  std::string name;  // opens errors
  std::uint64_t size = 0;
  /// Fills `out` with the bytes from `place` on, all of which are within `size`. DataError if the file is shorter now,
  /// Unavailable if it cannot be read.
  std::function<void(std::uint64_t place, std::span<std::byte> out)> read;
};

PlacedBytes placed_bytes(std::span<const std::byte> bytes, std::string name);
/// The bytes of a file, which stays open. Unavailable if it cannot be opened or is no regular file.
PlacedBytes placed_bytes(const std::filesystem::path& file);

}  // namespace gradus
