#include "gradus/distribute/cluster/launcher_reports.h"
#include <algorithm>
#include <array>
#include "gradus/base/launcher_note.h"
#include "gradus/distribute/cluster/json_fields.h"

namespace gradus {
namespace {

constexpr std::string_view report = "a report to the launcher";
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
    const nlohmann::json read = object(written, report);
    RankReport out{.process = integer(field(read, report, "process"), report, "process"),
                   .ranks = integer(field(read, report, "ranks"), report, "ranks"),
                   .why = printable(string(field(read, report, "why"), report, "why"))};
    const auto found = std::ranges::find(names, string(field(read, report, "state"), report, "state"));
    if (found == names.end()) return {};
    out.state = static_cast<RankState>(found - names.begin());
    return out;
  } catch (const Error&) { return {}; }
}

LauncherReports::LauncherReports(const Cluster& cluster)
    : is_of_process_(!cluster.in_process),
      report_{.process = cluster.task == TaskType::parameter_server ? cluster.ranks() + cluster.rank : cluster.rank,
              .ranks = cluster.ranks()} {}

void LauncherReports::say(RankState state, std::string_view why) noexcept {
  using enum RankState;
  if (!is_of_process_) return;
  const std::lock_guard lock(mutex_);
  const bool has_ended = report_.state == failed || report_.state == followed;
  if (has_ended && state != joins) return;
  try {
    report_.state = state;
    report_.why = why;
    send_to_launcher(report_.to_string());
  } catch (...) {}  // without memory for the words
}

}  // namespace gradus
