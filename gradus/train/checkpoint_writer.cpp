/// A lock of flock on a file of the directory, which says who has it.
#include "gradus/train/checkpoint_writer.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <mutex>
#include <system_error>
#include "gradus/base/error.h"
#include "gradus/base/notice.h"

namespace gradus {
namespace {

namespace fs = std::filesystem;

/// Hidden, and left where it is: whoever removed it might take the next writer's lock away.
constexpr const char* lock_name = ".writer";

[[noreturn]] void fail(const fs::path& directory, const std::string& reason) {
  throw Unavailable(text(directory.string(), ": no checkpoints can be written there: ", reason));
}
std::string reason_of(int problem) { return std::generic_category().message(problem); }

/// The file, open.
class LockFile {
 public:
  explicit LockFile(const fs::path& directory)
      : descriptor_(::open((directory / lock_name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail(directory, reason_of(errno));
  }
  ~LockFile() { ::close(descriptor_); }
  LockFile(const LockFile&) = delete;

  /// 0, or what stands against it.
  int lock() {
    int result = 0;
    do result = ::flock(descriptor_, LOCK_EX | LOCK_NB);
    while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
  }
  std::string read() const {
    std::array<char, 256> written{};
    const ssize_t count = ::pread(descriptor_, written.data(), written.size(), 0);
    std::string out(written.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return out.substr(0, out.find('\n'));
  }
  /// For others' messages alone: that it may fail does no harm.
  void write(const std::string& line) {
    if (::ftruncate(descriptor_, 0) == 0) (void)!::pwrite(descriptor_, line.data(), line.size(), 0);
  }
  /// The file, by any path.
  std::pair<dev_t, ino_t> identity() const {
    struct stat found{};
    return ::fstat(descriptor_, &found) == 0 ? std::pair{found.st_dev, found.st_ino} : std::pair{dev_t{}, ino_t{}};
  }

 private:
  const int descriptor_;
};

std::string own_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return text("process ", ::getpid(), " on ", host.data());
}

std::shared_ptr<LockFile> locked(const fs::path& directory, std::shared_ptr<LockFile> file) {
  const int problem = file->lock();
  if (problem == 0) {
    file->write(own_name() + '\n');
    return file;
  }
  if (problem != EWOULDBLOCK) {
    notice(text("gradus: ", directory.string(), ": the file system has no locks (", reason_of(problem),
                "), so another training that writes checkpoints there would not be noticed\n"));
    return file;
  }
  const std::string other = file->read();
  fail(directory, text("another training does (", other.empty() ? "its process is not known" : other,
                       "), and each would remove what the other has written; give this one a directory of its own, or "
                       "wait until the other has ended"));
}

}  // namespace

std::shared_ptr<const void> hold_as_writer(const fs::path& directory) {
  static std::mutex guard;
  static std::map<std::pair<dev_t, ino_t>, std::weak_ptr<LockFile>> held;  // by this process
  std::error_code problem;
  fs::create_directories(directory, problem);
  if (problem) fail(directory, problem.message());
  auto file = std::make_shared<LockFile>(directory);
  const std::lock_guard lock(guard);
  std::erase_if(held, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<LockFile>& known = held[file->identity()];
  if (const auto shared = known.lock()) return shared;
  file = locked(directory, std::move(file));
  known = file;
  return file;
}

}  // namespace gradus
