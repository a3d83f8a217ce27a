/// Reading files that are parsed as one piece.
#pragma once
#include <cstddef>
#include <filesystem>
#include <vector>

namespace gradus {

/// All bytes of a file. Unavailable if it cannot be read.
std::vector<std::byte> read_whole_file(const std::filesystem::path& file);

}  // namespace gradus
