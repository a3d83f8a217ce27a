/// Bytes that are read once from the front: of a file, of memory, or decompressed. A stream knows its name and where it
/// is, so that an error can say where a file is wrong.
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

class ByteStream {
 public:
  explicit ByteStream(std::string name) : name_(std::move(name)) {}
  virtual ~ByteStream() = default;

  /// Fills `out`; fewer bytes come only at the end.
  std::size_t read(std::span<std::byte> out);
  /// The next bytes without taking them; fewer only at the end.
  std::span<const std::byte> peek(std::size_t count);

  const std::string& name() const { return name_; }
  std::int64_t position() const { return position_; }
  /// "byte 16"
  std::string place() const { return place_of(position_); }
  virtual std::string place_of(std::int64_t position) const;
  /// A guess, never far too high, of how many bytes are still to come: what may be allocated before they are seen.
  virtual std::int64_t likely_bytes() const = 0;

 protected:
  /// At least one byte, none at the end.
  virtual std::size_t read_some(std::span<std::byte> out) = 0;

 private:
  std::string name_;
  std::int64_t position_ = 0;
  std::vector<std::byte> peeked_;
};

/// Unavailable, with the system's reason, if the file cannot be opened or read or is no regular one
/// (base/input_file.h).
std::unique_ptr<ByteStream> open_file(const std::filesystem::path& file);
/// `bytes` must outlive the stream.
std::unique_ptr<ByteStream> stream_of(std::span<const std::byte> bytes, std::string name);

/// All bytes that are still to come.
std::vector<std::byte> read_to_end(ByteStream& stream);

}  // namespace gradus
