/// A file that appears whole or not at all: written under a temporary name beside its place, then renamed. Behind a
/// symbolic link it is what the link leads to; what is no file, as /dev/stdout or a pipe, is written as it is.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace gradus {

class AtomicFile {
 public:
  /// Unavailable if the directory is missing or read-only.
  explicit AtomicFile(std::filesystem::path file);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Without a commit nothing stays.
  ~AtomicFile();

  /// ResourceExhausted on a full disk.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view characters) { write(std::as_bytes(std::span(characters))); }
  /// Puts the file in its place, replacing an older one, once its bytes are on the disk; returns when its name is, too.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;
  std::filesystem::path file_;
  std::string temporary_;  // empty: there is none any more, or `file_` is no file
  int descriptor_ = -1;
};

/// Returns when the names in `directory` are on the disk. Unavailable if the system says that they are not.
void sync_directory(const std::filesystem::path& directory);

}  // namespace gradus
