/// Writing beside a file's place, and moving there, together with others.
#include "gradus/function/pending_file.h"
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <set>
#include "gradus/base/written_file.h"

namespace gradus {
namespace {

/// The file that a new one replaces, which has a second name meanwhile. It comes back unless it is let go.
class ReplacedFile {
 public:
  explicit ReplacedFile(const std::filesystem::path& place) : place_(place), aside_(name_beside(place, ".old")) {
    std::error_code none;
    if (std::filesystem::is_directory(std::filesystem::symlink_status(place_, none))) {
      errno = EISDIR;
      fail_to_write(place_, "cannot be put in place");
    }
    if (link(place_.c_str(), aside_.c_str()) == 0) return;
    if (errno == ENOENT) aside_.clear();                        // there is none
    else if (std::rename(place_.c_str(), aside_.c_str()) != 0)  // a file system without second names
      fail_to_write(place_, "cannot be put in place");
  }
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;
  ~ReplacedFile() {
    if (aside_.empty()) {
      if (is_replaced_ && !is_let_go_) unlink(place_.c_str());
    } else if (is_let_go_ || std::rename(aside_.c_str(), place_.c_str()) == 0) {
      unlink(aside_.c_str());  // rename leaves two names of one file as they are
    }
  }

  void replace_by(const std::string& temporary) {
    if (std::rename(temporary.c_str(), place_.c_str()) != 0) fail_to_write(place_, "cannot be put in place");
    is_replaced_ = true;
  }
  void let_go() { is_let_go_ = true; }

 private:
  std::filesystem::path place_;
  std::string aside_;
  bool is_replaced_ = false, is_let_go_ = false;
};

}  // namespace

PendingFile::PendingFile(std::filesystem::path file, std::string_view bytes) : file_(std::move(file)) {
  int descriptor = open_beside(file_, temporary_);
  try {
    write_whole(descriptor, std::as_bytes(std::span(bytes)), file_);
    close_written(std::exchange(descriptor, -1), !temporary_.empty(), file_);
  } catch (...) {
    if (descriptor >= 0) close(descriptor);
    if (!temporary_.empty()) unlink(temporary_.c_str());
    throw;
  }
}

PendingFile::~PendingFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void PendingFile::put_in_place(std::deque<PendingFile>& files) {
  std::deque<ReplacedFile> replaced;
  std::set<std::filesystem::path> directories;
  for (PendingFile& file : files) {
    if (file.temporary_.empty()) continue;
    replaced.emplace_back(file.file_).replace_by(file.temporary_);
    file.temporary_.clear();
    directories.insert(file.file_.parent_path());
  }
  for (const std::filesystem::path& directory : directories) sync_directory(directory);
  for (ReplacedFile& old : replaced) old.let_go();
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
