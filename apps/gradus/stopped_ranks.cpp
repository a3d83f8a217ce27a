#include "apps/gradus/stopped_ranks.h"
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

namespace gradus::command {

bool is_stopped(pid_t process) {
  const int file = ::open(("/proc/" + std::to_string(process) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::array<char, 512> bytes{};
  const ssize_t count = ::read(file, bytes.data(), bytes.size());
  ::close(file);
  const std::string_view stat(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  const std::size_t name_ends = stat.rfind(')');  // a name may have any character
  return name_ends != std::string_view::npos && name_ends + 2 < stat.size() && stat[name_ends + 2] == 'T';
}

std::vector<int> StoppedRanks::overdue(std::span<const RankFate> fates, std::chrono::milliseconds timeout,
                                       Clock::time_point now) {
  const auto lived = std::max(Clock::duration::zero(), now - std::exchange(seen_, now) - time_.missed(now));
  stopped_.resize(fates.size());
  const bool is_pause_of_all =
      std::ranges::all_of(fates, [](const RankFate& each) { return each.lives && each.is_stopped; });
  std::vector<int> out;
  for (std::size_t i = 0; i < fates.size(); ++i) {
    if (!fates[i].lives || !fates[i].is_stopped || is_pause_of_all) {
      stopped_[i] = {};
      continue;
    }
    const bool was_overdue = stopped_[i] >= timeout;
    stopped_[i] += lived;
    if (!was_overdue && stopped_[i] >= timeout) out.push_back(static_cast<int>(i));
  }
  return out;
}

}  // namespace gradus::command
