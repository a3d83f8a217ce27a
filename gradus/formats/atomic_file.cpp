#include "gradus/formats/atomic_file.h"
#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>
#include "gradus/base/error.h"

namespace gradus {

AtomicFile::AtomicFile(std::filesystem::path file) : file_(std::move(file)) {
  namespace fs = std::filesystem;
  static std::atomic<int> count = 0;
  std::error_code none;
  if (fs::exists(file_, none) && fs::is_other(file_, none)) {
    descriptor_ = open(file_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail("cannot be written");
    return;
  }
  if (fs::is_symlink(file_, none))
    if (fs::path target = fs::canonical(file_, none); !none) file_ = std::move(target);
  temporary_ = text(file_.string(), ".", getpid(), ".", ++count, ".part");
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("cannot be written");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::commit() {
  if (fsync(descriptor_) != 0 && errno != EINVAL && !temporary_.empty()) fail("cannot be written");
  if (close(std::exchange(descriptor_, -1)) != 0) fail("cannot be written");
  if (temporary_.empty()) return;
  if (rename(temporary_.c_str(), file_.c_str()) != 0) fail("cannot be put in place");
  temporary_.clear();
  sync_directory(file_.parent_path());
}

void AtomicFile::fail(const char* what) const {
  const int code = errno;
  const std::string message = text(file_.string(), ": ", what, ": ", std::generic_category().message(code));
  if (code == ENOSPC || code == EDQUOT || code == EFBIG) throw ResourceExhausted(message);
  throw Unavailable(message);
}

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
