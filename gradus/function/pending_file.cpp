/// Writing beside a file's place, and moving there.
#include "gradus/function/pending_file.h"
#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

namespace gradus {

PendingFile::PendingFile(std::string_view what, std::filesystem::path file, std::string_view bytes)
    : what_(what), file_(std::move(file)) {
  namespace fs = std::filesystem;
  static std::atomic<int> count = 0;
  std::error_code none;
  if (!file_.has_filename() || fs::is_directory(file_, none)) {
    errno = EISDIR;
    fail();
  }
  const bool is_stream = fs::exists(file_, none) && fs::is_other(file_, none);
  if (!is_stream && fs::is_symlink(file_, none))
    if (fs::path target = fs::canonical(file_, none); !none) file_ = std::move(target);
  if (!is_stream) temporary_ = text(file_.string(), ".", getpid(), ".", ++count, ".part");
  const int descriptor = is_stream ? open(file_.c_str(), O_WRONLY | O_CLOEXEC)
                                   : open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) fail();
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int reason = errno;
      close(descriptor);
      if (!temporary_.empty()) unlink(temporary_.c_str());
      errno = reason;
      fail();
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  close(descriptor);
}

PendingFile::~PendingFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void PendingFile::put_in_place() {
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), file_.c_str()) != 0) fail();
  temporary_.clear();
}

void PendingFile::fail() const {
  throw Unavailable(text(what_, ": ", file_.string(), " cannot be written: ", std::generic_category().message(errno)));
}

Graph without_devices(Graph graph, const std::string& title, std::string_view what) {
  for (Value& v : graph.values) {
    require(!v.op.is_copy(), title, ": ", what,
            ": the step computes on several devices, and what is exported on one: leave out DeviceScope and to()");
    v.spec.device = {};
  }
  return graph;
}

}  // namespace gradus
