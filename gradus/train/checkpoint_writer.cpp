/// A flock on a file in the directory; the file names the process that holds it.
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
#include "gradus/base/host_name.h"
#include "gradus/base/error.h"
#include "gradus/base/notice.h"
#include "gradus/base/rooms.h"
#include "gradus/train/checkpoint_directory.h"

namespace gradus {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = ".writer";  // hidden

using FileIdentity = std::pair<dev_t, ino_t>;

/// The open file. The owner of the lock removes it in the end, so a file that others opened before may be gone from its
/// place.
class LockFile {
 public:
  explicit LockFile(const fs::path& directory)
      : file_(directory / lock_name), descriptor_(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail_to_write_checkpoints(directory, errno);
  }
  ~LockFile() {
    if (is_locked_) ::unlink(file_.c_str());
    if (removes_directory_) ::rmdir(file_.parent_path().c_str());  // fails if it is not empty
    ::close(descriptor_);
  }
  LockFile(const LockFile&) = delete;

  /// 0, or the error number.
  int lock() {
    int result = 0;
    do result = ::flock(descriptor_, LOCK_EX | LOCK_NB);
    while (result != 0 && errno == EINTR);
    is_locked_ = result == 0 && is_in_its_place();
    return result == 0 ? 0 : errno;
  }
  bool is_locked() const { return is_locked_; }
  /// Removes the directory, which was made for checkpoints, if none was written.
  void remove_directory_if_empty() { removes_directory_ = true; }
  std::string read() const {
    std::array<char, 256> written{};
    const ssize_t count = ::pread(descriptor_, written.data(), written.size(), 0);
    std::string out(written.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return out.substr(0, out.find('\n'));
  }
  /// Only for messages of other processes, so a failure does no harm.
  void write(const std::string& line) {
    if (::ftruncate(descriptor_, 0) == 0) (void)!::pwrite(descriptor_, line.data(), line.size(), 0);
  }
  /// The identity of the file, by any path.
  FileIdentity identity() const {
    struct stat found{};
    return ::fstat(descriptor_, &found) == 0 ? FileIdentity{found.st_dev, found.st_ino} : FileIdentity{};
  }

 private:
  bool is_in_its_place() const {
    struct stat found{};
    return ::stat(file_.c_str(), &found) == 0 && FileIdentity{found.st_dev, found.st_ino} == identity();
  }
  const fs::path file_;
  const int descriptor_;
  bool is_locked_ = false, removes_directory_ = false;
};

std::string own_name() { return text("process ", ::getpid(), " on ", host_name("a host without a name")); }

/// Takes the lock. False: the process that held it removed the file meanwhile.
bool take(const fs::path& directory, LockFile& file) {
  const int problem = file.lock();
  if (problem == 0) {
    if (file.is_locked()) file.write(own_name() + '\n');
    return file.is_locked();
  }
  if (problem != EWOULDBLOCK) {
    notice(text("gradus: ", directory.string(), ": the file system has no locks (",
                std::generic_category().message(problem),
                "), so another training that writes checkpoints there would not be noticed\n"));
    return true;
  }
  const std::string other = file.read();
  fail_to_write_checkpoints(
      directory, problem,
      text("another training does (", other.empty() ? "its process is not known" : other,
           "), and each would remove what the other has written; give this one a directory of its own, or wait until "
           "the other has ended"));
}

}  // namespace

std::shared_ptr<const void> hold_as_writer(const fs::path& directory) {
  static std::mutex guard;
  static std::map<FileIdentity, std::weak_ptr<LockFile>> held;  // locks of this process
  const std::lock_guard lock(guard);
  std::erase_if(held, [](const auto& entry) { return entry.second.expired(); });
  for (;;) {
    const bool is_made = make_checkpoint_directory(directory);
    const auto file = std::make_shared<LockFile>(directory);
    if (const auto known = held.find(file->identity()); known != held.end())
      if (const auto shared = known->second.lock()) return shared;
    if (!take(directory, *file)) continue;
    if (is_made) file->remove_directory_if_empty();
    held[file->identity()] = file;
    return file;
  }
}

}  // namespace gradus
