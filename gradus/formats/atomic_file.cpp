#include "gradus/formats/atomic_file.h"
#include <unistd.h>
#include <cstdio>
#include <utility>
#include "gradus/base/written_file.h"

namespace gradus {

AtomicFile::AtomicFile(std::filesystem::path file) : file_(std::move(file)) {
  descriptor_ = open_beside(file_, temporary_);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) { write_whole(descriptor_, bytes, file_); }

void AtomicFile::commit() {
  close_written(std::exchange(descriptor_, -1), !temporary_.empty(), file_);
  if (temporary_.empty()) return;
  if (rename(temporary_.c_str(), file_.c_str()) != 0) fail("cannot be put in place");
  temporary_.clear();
  sync_directory(file_.parent_path());
}

void AtomicFile::fail(const char* what) const { fail_to_write(file_, what); }

}  // namespace gradus
