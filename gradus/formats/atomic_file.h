/// A file that appears whole or not at all: it is written under a temporary name beside its place, then renamed. A
/// symbolic link is followed to its target. A target that is no regular file, such as /dev/stdout or a pipe, is written
/// directly.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace gradus {

/// A file that is written under a temporary name, until it is committed.
class AtomicFile {
 public:
  /// Opens the temporary file. Unavailable if the directory is missing or read-only.
  explicit AtomicFile(std::filesystem::path file);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Removes the temporary file, unless it was committed.
  ~AtomicFile();

  /// Appends bytes. ResourceExhausted on a full disk.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view characters) { write(std::as_bytes(std::span(characters))); }
  /// Puts the file in its place, replacing an older one, once its bytes are on the disk. Returns when its name is on
  /// the disk, too.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;
  std::filesystem::path file_;
  std::string temporary_;  // empty: there is none any more, or `file_` is no regular file
  int descriptor_ = -1;
};

/// Waits until the names in `directory` are on the disk. Unavailable if the system reports that they are not.
void sync_directory(const std::filesystem::path& directory);

}  // namespace gradus
