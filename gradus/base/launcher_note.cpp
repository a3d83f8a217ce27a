#include "gradus/base/launcher_note.h"
#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <cstdlib>

namespace gradus {

void tell_launcher(LauncherNote note) noexcept {
  static std::atomic<bool> has_told_training = false, has_told_asking = false;
  if ((note == LauncherNote::trains ? has_told_training : has_told_asking).exchange(true)) return;
  const char* const file = std::getenv("GRADUS_LAUNCHER");
  if (file == nullptr) return;
  const int descriptor = ::open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor < 0) return;
  const char written = static_cast<char>(note);
  (void)!::write(descriptor, &written, 1);
  ::close(descriptor);
}

}  // namespace gradus
