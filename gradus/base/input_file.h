/// Reading files; regular ones alone. Opening a pipe without a writer would wait forever, and a device may have no end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gradus {

class InputFile {
 public:
  /// Opens a file. Unavailable, with the system's reason, if it cannot be opened or is no regular file.
  explicit InputFile(const std::filesystem::path& file);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  const std::string& name() const { return name_; }
  /// The size that the system reports; 0 for files that it makes when they are read, as in /proc.
  std::int64_t size() const { return size_; }
  /// Fills `out` with the next bytes; fewer bytes only at the end. Unavailable tells the byte at which it cannot be
  /// read.
  std::size_t read(std::span<std::byte> out);
  /// Continues at `position`.
  void seek(std::int64_t position);
  /// Its size() bytes as memory, at least one: the system reads a page when it is first used. Writes do not reach the
  /// file; 64 bytes behind it may be used, too. The file must not shrink meanwhile: the system ends a program that uses
  /// pages which are gone. Unavailable if the file system cannot, ResourceExhausted without address space.
  std::shared_ptr<std::byte> map() const;

 private:
  std::string name_;
  int descriptor_;
  std::int64_t size_ = 0, position_ = 0;
};

/// Reads all bytes of a file. Unavailable if it cannot be read, ResourceExhausted if it does not fit in memory.
std::vector<std::byte> read_whole_file(const std::filesystem::path& file);
/// read_whole_file as characters.
std::string read_text_file(const std::filesystem::path& file);
/// Reads `bytes` bytes of a file from `position` on. Unavailable if it ends before.
std::string read_part_of_file(const std::filesystem::path& file, std::int64_t position, std::int64_t bytes);

}  // namespace gradus
