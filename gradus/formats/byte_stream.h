/// Streams of bytes that are read once from the front: of a file, of memory, or decompressed. A stream knows its name
/// and its position, so that an error can tell where a file is wrong.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gradus {

/// An input stream of bytes with a name and a position.
class ByteStream {
 public:
  explicit ByteStream(std::string name) : name_(std::move(name)) {}
  virtual ~ByteStream() = default;

  /// Fills `out`. Gives fewer bytes only at the end.
  std::size_t read(std::span<std::byte> out);
  /// The next bytes, without taking them; fewer only at the end.
  std::span<const std::byte> peek(std::size_t count);

  /// The name that opens errors.
  const std::string& name() const { return name_; }
  /// Number of bytes that were read.
  std::int64_t position() const { return position_; }
  /// The position as text: "byte 16".
  std::string place() const { return place_of(position_); }
  virtual std::string place_of(std::int64_t position) const;
  /// A guess of the number of bytes still to come, never far too high: that many may be allocated before they are seen.
  virtual std::int64_t likely_bytes() const = 0;

 protected:
  /// Reads at least one byte, or none at the end.
  virtual std::size_t read_some(std::span<std::byte> out) = 0;

 private:
  std::string name_;
  std::int64_t position_ = 0;
  std::vector<std::byte> peeked_;
};

/// Opens a file. Unavailable, with the system's reason, if it cannot be opened or read or is no regular one
/// (base/input_file.h).
std::unique_ptr<ByteStream> open_file(const std::filesystem::path& file);
/// A stream of bytes in memory. `bytes` must outlive it.
std::unique_ptr<ByteStream> stream_of(std::span<const std::byte> bytes, std::string name);

/// Reads all bytes that are still to come.
std::vector<std::byte> read_to_end(ByteStream& stream);

}  // namespace gradus
