#include "apps/gradus/report_socket.h"
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include "gradus/base/launcher_note.h"

namespace gradus::command {
namespace {

std::string drawn_name() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  std::string out = "gradus-launch-";
  for (const unsigned char byte : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    (out += digits[byte >> 4]) += digits[byte & 15];
  }
  return out;
}

/// True if the kernel names a process of this user, or of root, as the sender.
bool is_of_this_user(msghdr& message) {
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(each), sizeof sender);
    return sender.uid == ::geteuid() || sender.uid == 0;
  }
  return false;
}

}  // namespace

ReportSocket::ReportSocket() {
  const std::string name = drawn_name();
  const int made = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int yes = 1;
  const bool is_ready = made >= 0 && !name.empty() &&
                        ::setsockopt(made, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0 &&
                        ::bind(made, reinterpret_cast<const sockaddr*>(&address), size) == 0;
  if (is_ready) {
    name_ = name;
    socket_ = made;
  } else if (made >= 0) {
    ::close(made);
  }
}

ReportSocket::~ReportSocket() {
  if (socket_ >= 0) ::close(socket_);
}

std::vector<RankReport> ReportSocket::read() {
  std::vector<RankReport> out;
  std::array<char, RankReport::most_bytes> bytes;
  // The sender's identity alone has room, so no descriptors that a stranger attaches arrive.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control;
  for (int most = 1000; socket_ >= 0 && most > 0; --most) {
    iovec into{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t count = ::recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0) break;
    if (!is_of_this_user(message)) continue;
    if (count == 1) notes_.insert(bytes[0]);
    else if (auto report = RankReport::parse({bytes.data(), static_cast<std::size_t>(count)})) out.push_back(*report);
  }
  return out;
}

bool ReportSocket::is_of_strangers() const {
  const auto has = [&](LauncherNote note) { return notes_.contains(static_cast<char>(note)); };
  return has(LauncherNote::trains) && !has(LauncherNote::asks_rank);
}

void ReportSocket::forget() {
  while (!read().empty()) {}
  notes_.clear();
}

}  // namespace gradus::command
