#include "gradus/formats/placed_bytes.h"
#include <algorithm>
#include <memory>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/base/input_file.h"

namespace gradus {
namespace {

/// A file whose size the system does not know before it is read, as in /proc.
PlacedBytes read_at_once(const std::filesystem::path& file) {
  auto held = std::make_shared<const std::vector<std::byte>>(read_whole_file(file));
  PlacedBytes bytes = placed_bytes(*held, file.string());
  bytes.read = [held, read = std::move(bytes.read)](std::uint64_t place, std::span<std::byte> out) {
    read(place, out);
  };
  return bytes;
}

}  // namespace

PlacedBytes placed_bytes(std::span<const std::byte> bytes, std::string name) {
  const auto read = [bytes](std::uint64_t place, std::span<std::byte> out) {
    std::ranges::copy(bytes.subspan(place, out.size()), out.begin());
  };
  return {std::move(name), bytes.size(), read};
}

PlacedBytes placed_bytes(const std::filesystem::path& path) {
  auto file = std::make_shared<InputFile>(path);
  const auto size = static_cast<std::uint64_t>(file->size());
  if (size == 0) return read_at_once(path);
  const auto read = [file, size](std::uint64_t place, std::span<std::byte> out) {
    file->seek(static_cast<std::int64_t>(place));
    require<DataError>(file->read(out) == out.size(), file->name(), ": it ends before the ", size,
                       " bytes that it had when it was opened");
  };
  return {file->name(), size, read};
}

}  // namespace gradus
