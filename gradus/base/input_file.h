/// Reading files. Only regular ones: whoever opens a pipe that nobody writes waits for ever, and a device may have no
/// end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gradus {

class InputFile {
 public:
  /// Unavailable, with the system's reason, where it cannot be opened or is no regular file.
  explicit InputFile(const std::filesystem::path& file);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  const std::string& name() const { return name_; }
  /// As the system says; 0 of what it makes when it is read, as in /proc.
  std::int64_t size() const { return size_; }
  /// Fills `out` with what comes next; fewer bytes only at the end. Unavailable says at which byte it cannot be read.
  std::size_t read(std::span<std::byte> out);
  /// The next byte is that at `position`.
  void seek(std::int64_t position);

 private:
  std::string name_;
  int descriptor_;
  std::int64_t size_ = 0, position_ = 0;
};

/// All bytes of a file. Unavailable if it cannot be read, ResourceExhausted if it does not fit in memory.
std::vector<std::byte> read_whole_file(const std::filesystem::path& file);
/// The same as characters.
std::string read_text_file(const std::filesystem::path& file);
/// `bytes` of a file from `position` on; Unavailable if it ends before.
std::string read_part_of_file(const std::filesystem::path& file, std::int64_t position, std::int64_t bytes);

}  // namespace gradus
