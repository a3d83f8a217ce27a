#include "gradus/base/written_file.h"
#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <system_error>
#include "gradus/base/error.h"

namespace gradus {
namespace detail::inline rooms {

std::string name_beside(const std::filesystem::path& place, std::string_view ending) {
  static std::atomic<int> count = 0;
  return text(place.string(), ".", getpid(), ".", ++count, ending);
}

int open_beside(std::filesystem::path& place, std::string& temporary) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (fs::exists(place, none) && fs::is_other(place, none)) {
    temporary.clear();
    const int descriptor = open(place.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) fail_to_write(place, "cannot be written");
    return descriptor;
  }
  if (fs::is_symlink(place, none))
    if (fs::path target = fs::canonical(place, none); !none) place = std::move(target);
  const std::string name = name_beside(place, ".part");
  const int descriptor = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) fail_to_write(place, "cannot be written");
  temporary = name;
  return descriptor;
}

void write_whole(int descriptor, std::span<const std::byte> bytes, const std::filesystem::path& place) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_to_write(place, "cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void close_written(int descriptor, bool is_regular, const std::filesystem::path& place) {
  const bool is_synced = fsync(descriptor) == 0 || errno == EINVAL || !is_regular;
  const int reason = errno;
  const bool is_closed = close(descriptor) == 0;
  if (!is_synced) errno = reason;
  if (!is_synced || !is_closed) fail_to_write(place, "cannot be written");
}

void fail_to_write(const std::filesystem::path& place, const char* what) {
  const int code = errno;
  const std::string message = text(place.string(), ": ", what, ": ", std::generic_category().message(code));
  if (code == ENOSPC || code == EDQUOT || code == EFBIG) throw ResourceExhausted(message);
  throw Unavailable(message);
}

}  // namespace detail::inline rooms

void sync_directory(const std::filesystem::path& directory) {
  const std::filesystem::path name = directory.empty() ? "." : directory;
  const auto fail = [&] {
    throw Unavailable(text(name.string(), ": its names cannot be written: ", std::generic_category().message(errno)));
  };
  const int descriptor = open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == EACCES) return;  // files may be made where names may not be listed
    fail();
  }
  const bool synced = fsync(descriptor) == 0 || errno == EINVAL;  // a file system that knows no such thing
  const int reason = errno;
  close(descriptor);
  errno = reason;
  if (!synced) fail();
}

}  // namespace gradus
