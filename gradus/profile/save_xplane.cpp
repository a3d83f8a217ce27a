/// XPlane files, by the schema of xplane.proto: one plane for the host, one line for a track; compilations and
/// exchanges of the profiled thread have lines of their own. Scopes are the steps of TensorBoard's overview; a profile
/// without scopes has its programs as steps.
#include <unistd.h>
#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <ranges>
#include <system_error>
#include <unordered_map>
#include "gradus/base/error.h"
#include "gradus/base/host_name.h"
#include "gradus/base/numbered.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/protobuf_writer.h"
#include "gradus/profile/report.h"
#include "gradus/profile/timeline.h"

namespace gradus {
namespace {

using Kind = ActivityEvent::Kind;

constexpr std::int64_t picoseconds = 1000;  // in a nanosecond

/// Statistics that TensorFlow's tools know by these names, and ours.
enum class Stat : std::int64_t { is_root = 1, step_num, step_name, group_id, layer, bytes_accessed, flops, elements };
constexpr std::array stat_names{"_r",    "step_num",       "step_name", "group_id",
                                "layer", "bytes_accessed", "flops",     "elements"};

/// The scopes of the profiled thread, or, if it has none, its programs.
class Steps {
 public:
  explicit Steps(const ProfileTimeline& timeline) {
    const std::vector<ActivityEvent>& events = timeline.tracks.front().kept.events;
    const Kind kind =
        std::ranges::find(events, Kind::scope, &ActivityEvent::kind) != events.end() ? Kind::scope : Kind::run;
    // If two have the same times, the outer one ends, and is written down, last.
    for (const ActivityEvent& event : std::views::reverse(events))
      if (event.kind == kind) steps_.push_back({&event, event.begin, event.end});
    std::ranges::stable_sort(steps_, {}, [](const Step& step) { return std::pair(step.begin, -step.end); });
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      steps_[k].outer = ending_after(steps_[k].end, static_cast<std::int64_t>(k) - 1);
      numbers_.emplace(steps_[k].event, k);
    }
  }
  /// The number of the innermost step in which `event` begins, or -1. A step is in itself, and one of another thread in
  /// none.
  std::int64_t of(const ActivityEvent& event) const {
    if (is_step(event)) {
      const auto found = numbers_.find(&event);
      return found != numbers_.end() ? found->second : -1;
    }
    const auto after = std::ranges::upper_bound(steps_, event.begin, {}, &Step::begin) - steps_.begin();
    return ending_after(event.begin, after - 1);
  }
  bool is_step(const ActivityEvent& event) const { return !steps_.empty() && event.kind == steps_[0].event->kind; }

 private:
  struct Step {
    const ActivityEvent* event;
    std::int64_t begin, end, outer = -1;  // outer: the number of the last one before it that ends later, or -1
  };
  /// The last step up to `last` that ends after `time`, or -1. Steps between a step and its outer one end no later than
  /// it: they are skipped at once, so that a long row of steps within another costs no more than a short one.
  std::int64_t ending_after(std::int64_t time, std::int64_t last) const {
    while (last >= 0 && steps_[at(last)].end <= time) last = steps_[at(last)].outer;
    return last;
  }
  std::vector<Step> steps_;  // by begin, the outer one first
  std::unordered_map<const ActivityEvent*, std::int64_t> numbers_;
};

class PlaneWriter {
 public:
  explicit PlaneWriter(const ProfileTimeline& timeline) : timeline_(timeline), steps_(timeline) {}

  ProtobufWriter plane() {
    plane_.integer(1, 1);
    plane_.bytes(2, "/host:CPU");
    std::int64_t line = 1;
    for (const ProfileTimeline::Track& track : timeline_.tracks) {
      const bool is_profiled = &track == &timeline_.tracks.front();
      write_line(track, line++, track.name, [&](Kind kind) { return !is_profiled || !has_own_line(kind); });
      if (!is_profiled) continue;
      write_line(track, line++, "compiling", [](Kind kind) { return kind == Kind::compile; });
      write_line(track, line++, "communication", [](Kind kind) { return kind == Kind::communication; });
    }
    for (const auto& [name, number] : numbers_) write_name(4, number, name);
    for (std::size_t i = 0; i < stat_names.size(); ++i) write_name(5, static_cast<std::int64_t>(i) + 1, stat_names[i]);
    return std::move(plane_);
  }

 private:
  /// True for kinds with a line of their own on the profiled thread, as in save_trace.
  static bool has_own_line(Kind kind) { return kind == Kind::compile || kind == Kind::communication; }

  void write_line(const ProfileTimeline::Track& track, std::int64_t number, std::string_view name,
                  const auto& belongs) {
    ProtobufWriter line;
    line.integer(1, number);
    line.bytes(2, name);
    line.integer(3, timeline_.wall_begin);
    std::vector<const ActivityEvent*> events;
    for (const ActivityEvent& event : track.kept.events)
      if (event.kind < Kind::memory && belongs(event.kind)) events.push_back(&event);
    std::ranges::stable_sort(events, {},
                             [](const ActivityEvent* event) { return std::pair(event->begin, -event->end); });
    for (const ActivityEvent* event : events) line.message(4, event_of(*event));
    line.integer(9, (timeline_.end - timeline_.begin) * picoseconds);
    line.integer(10, number);
    line.bytes(11, name);
    plane_.message(3, line);
  }

  ProtobufWriter event_of(const ActivityEvent& event) {
    ProtobufWriter out;
    out.integer(1, number_of(timeline_.label(event)));
    out.integer(2, (event.begin - timeline_.begin) * picoseconds);
    out.integer(3, (event.end - event.begin) * picoseconds);
    if (const std::int64_t step = steps_.of(event); step >= 0) {
      add(out, Stat::group_id, step);  // of all that a step consists of: the overview has no step without compute
      if (steps_.is_step(event)) {
        add(out, Stat::is_root, 1);
        add(out, Stat::step_num, step);
        add(out, Stat::step_name, text(timeline_.label(event), " ", step));  // as viewers call it
      }
    }
    if (event.kind == Kind::kernel) {
      const ProfiledKernel& kernel = timeline_.kernel(event);
      add(out, Stat::layer, kernel.layer);
      add(out, Stat::bytes_accessed, kernel.bytes);
      add(out, Stat::flops, static_cast<std::int64_t>(kernel.flops));
    }
    if (event.kind == Kind::stage) {
      add(out, Stat::elements, event.count);
      add(out, Stat::bytes_accessed, event.bytes);
    }
    return out;
  }
  static void add(ProtobufWriter& event, Stat stat, std::int64_t value) {
    ProtobufWriter out;
    out.integer(1, static_cast<std::int64_t>(stat));
    out.integer(4, value);
    event.message(4, out);
  }
  static void add(ProtobufWriter& event, Stat stat, std::string_view value) {
    ProtobufWriter out;
    out.integer(1, static_cast<std::int64_t>(stat));
    out.bytes(5, value);
    event.message(4, out);
  }

  std::int64_t number_of(const std::string& name) {
    return numbers_.try_emplace(name, static_cast<std::int64_t>(numbers_.size()) + 1).first->second;
  }
  /// The name that a number stands for, in field 4 of a plane for events, 5 for stats.
  void write_name(int field, std::int64_t number, std::string_view name) {
    ProtobufWriter metadata, entry;
    metadata.integer(1, number);
    metadata.bytes(2, name);
    entry.integer(1, number);
    entry.message(2, metadata);
    plane_.message(field, entry);
  }

  const ProfileTimeline& timeline_;
  const Steps steps_;
  ProtobufWriter plane_;
  std::map<std::string, std::int64_t> numbers_;
};

/// "2026_11_26_14_03_09", the name of a run in TensorBoard's list.
std::string run_name(std::int64_t wall) {
  const std::time_t seconds = wall / 1'000'000'000;
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 32> name{};
  std::strftime(name.data(), name.size(), "%Y_%m_%d_%H_%M_%S", &local);
  return name.data();
}

}  // namespace

void ProfileReport::save_xplane(const std::filesystem::path& directory) const {
  require(timeline != nullptr, "save_xplane: this report is not of a profile; profile() makes one");
  const std::string host = host_name("localhost");
  ProtobufWriter space;
  space.message(1, PlaneWriter(*timeline).plane());
  space.bytes(4, host);
  const std::filesystem::path run = directory / "plugins" / "profile" / run_name(timeline->wall_begin);
  std::error_code problem;
  std::filesystem::create_directories(run, problem);
  require<Unavailable>(!problem, "save_xplane: the directory ", run.string(), " cannot be made: ", problem.message());
  try {
    AtomicFile file(run / (host + ".xplane.pb"));
    file.write(space.written());
    file.commit();
  } catch (...) {
    std::filesystem::remove(run, problem);  // unless something else is in it
    throw;
  }
}

}  // namespace gradus
