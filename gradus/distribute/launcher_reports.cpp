#include "gradus/distribute/launcher_reports.h"
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>
#include "gradus/distribute/json_fields.h"

namespace gradus {
namespace {

constexpr std::string_view source = "a report to the launcher";
constexpr std::array<std::string_view, 6> names = {"unknown", "joins", "together", "left", "failed", "followed"};
constexpr std::size_t most_words = 1200;

}  // namespace

std::string RankReport::to_string() const {
  return written({{"process", process},
                  {"ranks", ranks},
                  {"state", names[static_cast<std::size_t>(state)]},
                  {"why", why.substr(0, most_words)}});
}

std::optional<RankReport> RankReport::parse(std::string_view written) {
  try {
    const nlohmann::json read = object(written, source);
    RankReport out{.process = integer(field(read, source, "process"), source, "process"),
                   .ranks = integer(field(read, source, "ranks"), source, "ranks"),
                   .why = string(field(read, source, "why"), source, "why")};
    const auto found = std::ranges::find(names, string(field(read, source, "state"), source, "state"));
    if (found == names.end()) return {};
    out.state = static_cast<RankState>(found - names.begin());
    return out;
  } catch (const Error&) { return {}; }
}

LauncherReports::LauncherReports(const Cluster& cluster)
    : launcher_(cluster.launcher),
      report_{.process = cluster.task == TaskType::parameter_server ? cluster.ranks() + cluster.rank : cluster.rank,
              .ranks = cluster.ranks()} {
  if (!launcher_.empty()) socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

LauncherReports::~LauncherReports() {
  if (socket_ >= 0) ::close(socket_);
}

void LauncherReports::say(RankState state, std::string_view why) noexcept {
  using enum RankState;
  const std::lock_guard lock(mutex_);
  const bool has_ended = report_.state == failed || report_.state == followed;
  if (socket_ < 0 || (has_ended && state != joins)) return;
  try {
    report_.state = state;
    report_.why = why;
    const std::string bytes = report_.to_string();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::size_t length = std::min(launcher_.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, launcher_.data(), length);  // the leading zero means that there is no file
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    for (int attempt = 0; attempt < 100; ++attempt) {  // a full queue of the launcher is soon read
      const auto sent = ::sendto(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                                 reinterpret_cast<const sockaddr*>(&address), size);
      if (sent >= 0 || (errno != EAGAIN && errno != ENOBUFS && errno != EINTR)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } catch (...) {}  // without memory for the words
}

}  // namespace gradus
