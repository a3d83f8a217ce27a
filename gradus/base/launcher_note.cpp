#include "gradus/base/launcher_note.h"
#include <sys/socket.h>
#include <sys/un.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace gradus {

void tell_launcher(LauncherNote note) noexcept {
  static std::atomic<bool> has_told_training = false, has_told_asking = false;
  if ((note == LauncherNote::trains ? has_told_training : has_told_asking).exchange(true)) return;
  const char written = static_cast<char>(note);
  send_to_launcher({&written, 1});
}

void send_to_launcher(std::string_view bytes) noexcept {
  const char* const launcher = std::getenv("GRADUS_LAUNCHER");
  if (launcher == nullptr || *launcher == '\0') return;
  // One socket for the life of the process: descriptors may have run out when it reports a failure.
  static const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(std::strlen(launcher), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, launcher, length);  // the leading zero means that there is no file
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  for (int attempt = 0; attempt < 100; ++attempt) {  // a full queue of the launcher is soon read
    const auto sent = ::sendto(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                               reinterpret_cast<const sockaddr*>(&address), size);
    if (sent >= 0 || (errno != EAGAIN && errno != ENOBUFS && errno != EINTR)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace gradus
