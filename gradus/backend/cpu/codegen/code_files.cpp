#include "gradus/backend/cpu/codegen/code_files.h"
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <cstdio>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>
#include "gradus/backend/kernel_cache.h"
#include "gradus/base/code_folder.h"
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/base/input_file.h"
#include "gradus/base/notice.h"
#include "gradus/base/rooms.h"

namespace gradus {
namespace cpu_backend::code_files {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t most_bytes = std::uintmax_t{256} << 20;
/// Bytes that a process may write before it checks the folder's size again. It checks at its first file, too.
constexpr std::uintmax_t bytes_between_looks = most_bytes / 16;
constexpr std::string_view suffix = ".gradus-code", unfinished = ".gradus-part";

/// A file is this, the source, and the object.
struct Header {
  std::array<char, 16> magic{'g', 'r', 'a', 'd', 'u', 's', ' ', 'c', 'o', 'd', 'e', ' ', '1', '\n'};
  std::uint64_t source_bytes = 0, object_bytes = 0, object_hash = 0;
};

class Directory {
 public:
  Directory() {
    const char* given = std::getenv("GRADUS_KERNEL_CACHE");
    if (!given || !*given) return;
    if (const std::string problem = set(given); !problem.empty())
      notice(text("gradus: GRADUS_KERNEL_CACHE: ", problem, "; generated code is not kept\n"));
  }

  /// An error message, empty if all is well.
  std::string set(const fs::path& path) {
    CodeFolder folder;
    if (!path.empty()) folder = code_folder(path);
    if (!folder.problem.empty()) return folder.problem;
    const std::lock_guard lock(guard_);
    path_ = folder.path;
    unseen_bytes_ = bytes_between_looks;
    has_told_ = false;
    return {};
  }
  /// Reports each directory once: nothing else depends on a file that cannot be written.
  void tell_not_written(const fs::path& file, const std::string& why) {
    {
      const std::lock_guard lock(guard_);
      if (std::exchange(has_told_, true)) return;
    }
    notice(text("gradus: kernel cache: ", file.string(), " cannot be written: ", why,
                "; generated code is not kept there\n"));
  }
  fs::path path() const {
    const std::lock_guard lock(guard_);
    return path_;
  }
  /// True if the folder's size is to be checked, now that `written` more bytes were written.
  bool is_due(std::uintmax_t written) {
    const std::lock_guard lock(guard_);
    unseen_bytes_ += written;
    if (unseen_bytes_ < bytes_between_looks) return false;
    unseen_bytes_ = 0;
    return true;
  }

 private:
  mutable std::mutex guard_;
  fs::path path_;
  std::uintmax_t unseen_bytes_ = bytes_between_looks;  // written since the last check
  bool has_told_ = false;                              // true once a failure to write was reported
};

Directory& named() {
  static auto* only = new Directory;
  return *only;
}

fs::path file_of(const fs::path& directory, std::string_view source) {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), hash_of(source), 16).ptr;
  return directory / std::string(digits.data(), end).append(suffix);
}

bool is_ours(const fs::path& path) { return path.extension() == suffix || path.extension() == unfinished; }

/// Removes the oldest files while there are too many bytes.
void trim(const fs::path& path) {
  struct File {
    fs::file_time_type written;
    std::uintmax_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  std::uintmax_t bytes = 0;
  std::error_code problem;
  for (fs::directory_iterator it(path, problem), end; !problem && it != end; it.increment(problem)) {
    if (!is_ours(it->path())) continue;
    std::error_code gone;
    files.push_back({it->last_write_time(gone), it->file_size(gone), it->path()});
    if (gone) files.pop_back();
    else bytes += files.back().bytes;
  }
  if (bytes <= most_bytes) return;
  std::ranges::sort(files, {}, &File::written);
  for (auto file = files.begin(); file != files.end() && bytes > most_bytes / 2; ++file) {
    fs::remove(file->path, problem);
    bytes -= file->bytes;
  }
}

}  // namespace

fs::path directory() { return named().path(); }

std::optional<std::string> read(const fs::path& directory, std::string_view source) {
  const fs::path path = file_of(directory, source);
  if (!is_own_file(path)) return {};
  std::error_code problem;
  const std::uintmax_t bytes = fs::file_size(path, problem);
  if (problem || bytes > most_bytes) return {};
  std::string content;
  try {
    content = read_text_file(path);
  } catch (const Unavailable&) { return {}; }
  Header header, expected;
  if (content.size() < sizeof header) return {};
  std::memcpy(&header, content.data(), sizeof header);
  const std::string_view rest = std::string_view(content).substr(sizeof header);
  if (header.magic != expected.magic || header.source_bytes != source.size() || rest.size() < source.size() ||
      header.object_bytes != rest.size() - source.size() || rest.substr(0, source.size()) != source)
    return {};
  const std::string_view object = rest.substr(source.size());
  if (hash_of(object) != header.object_hash) return {};
  return std::string(object);
}

void write(const fs::path& directory, std::string_view source, std::string_view object) {
  static std::atomic<unsigned> count{0};
  const fs::path path = file_of(directory, source);
  fs::path part = path;
  part.replace_extension(text('.', getpid(), '-', count.fetch_add(1), unfinished));
  const Header header{.source_bytes = source.size(), .object_bytes = object.size(), .object_hash = hash_of(object)};
  std::FILE* const file = std::fopen(part.c_str(), "wbe");
  if (!file) return named().tell_not_written(part, std::generic_category().message(errno));
  bool written = true;
  for (const std::string_view piece :
       {std::string_view(reinterpret_cast<const char*>(&header), sizeof header), source, object})
    written = written && std::fwrite(piece.data(), 1, piece.size(), file) == piece.size();
  std::string why = written ? std::string() : std::generic_category().message(errno);
  if (std::fclose(file) != 0 && why.empty()) why = std::generic_category().message(errno);
  std::error_code problem;
  if (why.empty()) fs::rename(part, path, problem);
  if (problem) why = problem.message();
  if (!why.empty()) {
    fs::remove(part, problem);
    named().tell_not_written(path, why);
  }
  if (named().is_due(sizeof header + source.size() + object.size())) trim(directory);
}

}  // namespace cpu_backend::code_files

void set_kernel_cache(const std::filesystem::path& directory) {
  const std::string problem = cpu_backend::code_files::named().set(directory);
  require(problem.empty(), "set_kernel_cache: the directory ", problem);
}

}  // namespace gradus
