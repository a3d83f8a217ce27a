#include "apps/gradus/rank_notes.h"
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include "gradus/base/error.h"
#include "gradus/base/launcher_note.h"

namespace gradus::command {

RankNotes::RankNotes() : descriptor_(::memfd_create("notes of ranks", MFD_CLOEXEC)) {}
RankNotes::~RankNotes() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string RankNotes::path() const {
  return descriptor_ < 0 ? std::string() : text("/proc/", ::getpid(), "/fd/", descriptor_);
}

bool RankNotes::is_of_strangers() const {
  std::array<char, 4096> notes{};  // two a process; those of the first processes suffice
  const ssize_t count = descriptor_ < 0 ? 0 : ::pread(descriptor_, notes.data(), notes.size(), 0);
  const auto end = notes.begin() + std::max<ssize_t>(count, 0);
  const auto has = [&](LauncherNote note) { return std::find(notes.begin(), end, static_cast<char>(note)) != end; };
  return has(LauncherNote::trains) && !has(LauncherNote::asks_rank);
}

}  // namespace gradus::command
