/// Zip files (APPNOTE 6.3), as far as NumPy and Keras use them: stored and deflated parts, also beyond 4 GiB. Every
/// offset and size is checked against the existing bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/byte_stream.h"
#include "gradus/formats/placed_bytes.h"

namespace gradus {

/// A part of a zip file, as its directory lists it.
struct ZipEntry {
  std::string name;
  int method = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed = 0, unpacked = 0, place = 0;
};

/// Reads a zip file. Errors are DataErrors: "<name>: no <kind>: what is wrong".
class ZipReader {
 public:
  ZipReader(PlacedBytes bytes, std::string_view kind);
  ZipReader(std::span<const std::byte> bytes, std::string name, std::string_view kind)
      : ZipReader(placed_bytes(bytes, std::move(name)), kind) {}
  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// The `entry.unpacked` bytes of a part. The read that reaches their end compares the checksum. The stream must not
  /// outlive this reader.
  std::unique_ptr<ByteStream> open(const ZipEntry& entry, std::string name) const;
  /// All bytes of a part.
  std::vector<std::byte> contents(const ZipEntry& entry) const;

 private:
  PlacedBytes bytes_;
  std::string_view kind_;
  std::vector<ZipEntry> entries_;
};

/// Writes a zip file without compression and with a fixed date: the same parts give the same bytes.
class ZipWriter {
 public:
  explicit ZipWriter(AtomicFile& file) : file_(file) {}
  /// Adds a part: `pieces` in sequence.
  void add(const std::string& name, std::span<const std::span<const std::byte>> pieces);
  /// Writes the directory. The file is not committed.
  void finish();

 private:
  AtomicFile& file_;
  std::string directory_;
  std::uint64_t place_ = 0, entries_ = 0;
};

}  // namespace gradus
