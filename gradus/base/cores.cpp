#include "gradus/base/cores.h"
#include <sched.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include "gradus/base/error.h"
#include "gradus/base/input_file.h"
#include "gradus/base/lines.h"

namespace gradus {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

/// Nothing where there is no such file.
std::string contents_of(const std::filesystem::path& file) {
  try {
    return read_text_file(file);
  } catch (const Unavailable&) { return {}; }
}
std::string first_line(const std::filesystem::path& file) {
  const std::string contents = contents_of(file);
  std::string_view rest = contents;
  return std::string(take_line(rest));
}

/// "150000 100000": microseconds of processor time in a period of so many; "max" or a negative number: no limit.
double cores_of(const std::string& quota_and_period) {
  std::int64_t quota = 0, period = 0;
  const char* const end = quota_and_period.data() + quota_and_period.size();
  const auto [rest, problem] = std::from_chars(quota_and_period.data(), end, quota);
  if (problem != std::errc() || quota <= 0 || rest == end) return unlimited;
  std::from_chars(rest + 1, end, period);
  return period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : unlimited;
}

/// The least limit of a group and those above it. Within a container its path may be one of the host, which is not
/// visible: then the mounted one is the group.
template <class Limit> double least(const std::filesystem::path& mounted, std::filesystem::path group, Limit limit) {
  double cores = limit(mounted);
  for (; !group.empty() && group != group.root_path(); group = group.parent_path())
    cores = std::min(cores, limit(mounted / group.relative_path()));
  return cores;
}

double cores_by_version_1(const std::filesystem::path& folder) {
  return cores_of(first_line(folder / "cpu.cfs_quota_us") + ' ' + first_line(folder / "cpu.cfs_period_us"));
}
double cores_by_version_2(const std::filesystem::path& folder) { return cores_of(first_line(folder / "cpu.max")); }

/// True if "cpu" is among "cpuacct,cpu".
bool has_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == "cpu") return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

}  // namespace

double cores_of_groups(std::string_view groups, const std::filesystem::path& root) {
  double cores = unlimited;
  while (!groups.empty()) {  // "4:cpu,cpuacct:/a/b", of version 2 "0::/a/b"
    const std::string_view line = take_line(groups);
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty())
      for (const auto& mounted : {root, root / "unified"})
        cores = std::min(cores, least(mounted, group, cores_by_version_2));
    else if (has_cpu(controllers))
      for (const auto& mounted : {root / controllers, root / "cpu"})
        cores = std::min(cores, least(mounted, group, cores_by_version_1));
  }
  return cores;
}

int available_cores() {
  cpu_set_t set;
  const int allowed = sched_getaffinity(getpid(), sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const double given = cores_of_groups(contents_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  return std::max(1, given < allowed ? static_cast<int>(given) : allowed);
}

void use_cores_of_process() {
  cpu_set_t own, all;
  if (sched_getaffinity(0, sizeof own, &own) != 0 || sched_getaffinity(getpid(), sizeof all, &all) != 0) return;
  if (CPU_COUNT(&own) < CPU_COUNT(&all)) sched_setaffinity(0, sizeof all, &all);
}

}  // namespace gradus
