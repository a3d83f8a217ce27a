/// Chrome's trace events: the JSON array format that Perfetto and chrome://tracing read. Times are microseconds.
#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"
#include "gradus/base/version.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/profile/report.h"
#include "gradus/profile/timeline.h"

namespace gradus {
namespace {

using Kind = ActivityEvent::Kind;
using TrackKind = ProfileTimeline::TrackKind;

// Numbers of tracks: those of the pool come first, from 0 on.
constexpr int first_data_track = 1000, compile_track = 2000, communication_track = 2001, first_device_track = 3000;

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class TraceWriter {
 public:
  TraceWriter(const ProfileReport& report, AtomicFile& file)
      : report_(report), timeline_(*report.timeline), file_(file) {}

  void write() {
    out_ << "{\"displayTimeUnit\": \"ms\", \"otherData\": {\"gradus\": " << json_text(version())
         << ", \"seconds\": " << report_.seconds << ", \"left_out\": " << timeline_.left_out
         << "}, \"traceEvents\": [\n";
    name_track("process_name", 0, "gradus");
    note_flows();
    int pool = 0, data = 0, device = 0;
    for (const ProfileTimeline::Track& track : timeline_.tracks) {
      int number = pool;
      if (track.kind == TrackKind::pool) ++pool;
      if (track.kind == TrackKind::data) number = first_data_track + data++;
      if (track.kind == TrackKind::device) number = first_device_track + device++;
      name_track("thread_name", number, track.name);
      write_track(track, number);
    }
    name_track("thread_name", compile_track, "compiling");
    name_track("thread_name", communication_track, "communication");
    write_memory();
    out_ << "{\"ph\": \"M\", \"pid\": 1, \"name\": \"process_labels\", \"args\": {\"labels\": \"profile\"}}\n]}\n";
    flush(0);
  }

 private:
  /// A batch's arrow begins where it is made, or taken, and ends at the first program that reads it, or where it is
  /// taken.
  void note_flows() {
    for (const ProfileTimeline::Track& track : timeline_.tracks)
      for (const ActivityEvent& event : track.kept.events) {
        if (event.flow == 0) continue;
        if (event.kind == Kind::making) made_.insert(event.flow);
        if (event.kind == Kind::fetch) taken_.insert(event.flow);
        if (event.kind == Kind::run) used_.insert(event.flow);
      }
  }

  void name_track(std::string_view what, int number, std::string_view name) {
    out_ << "{\"ph\": \"M\", \"pid\": 1, \"tid\": " << number << ", \"name\": \"" << what
         << "\", \"args\": {\"name\": " << json_text(name) << "}},\n";
    if (what != "thread_name") return;
    out_ << "{\"ph\": \"M\", \"pid\": 1, \"tid\": " << number
         << ", \"name\": \"thread_sort_index\", \"args\": {\"sort_index\": " << number << "}},\n";
  }

  /// Nanoseconds as microseconds, exactly.
  void put_time(std::string_view key, std::int64_t nanoseconds) {
    out_ << ", \"" << key << "\": " << nanoseconds / 1000 << '.' << std::setw(3) << std::setfill('0')
         << nanoseconds % 1000;
  }

  void write_track(const ProfileTimeline::Track& track, int number) {
    const bool is_profiled = &track == &timeline_.tracks.front();
    for (const ActivityEvent& event : track.kept.events) {
      if (event.kind == Kind::memory || event.kind == Kind::held) continue;
      if (event.kind == Kind::queue) {
        write_queue(event);
        continue;
      }
      int where = number;
      if (is_profiled && event.kind == Kind::compile) where = compile_track;
      if (is_profiled && event.kind == Kind::communication) where = communication_track;
      write_slice(event, where);
      write_flow(event, where);
      flush(1 << 16);
    }
  }

  void write_slice(const ActivityEvent& event, int track) {
    out_ << "{\"ph\": \"X\", \"pid\": 1, \"tid\": " << track << ", \"cat\": \"" << category(event.kind) << '"';
    put_time("ts", event.begin - timeline_.begin);
    put_time("dur", event.end - event.begin);
    out_ << ", \"name\": " << label(event) << ", \"args\": {";
    if (event.kind == Kind::kernel) {
      const ProfiledKernel& kernel = timeline_.kernel(event);
      out_ << "\"layer\": " << json_text(kernel.layer) << ", \"gradient\": " << (kernel.is_gradient ? "true" : "false")
           << ", \"bytes\": " << kernel.bytes << ", \"flops\": " << kernel.flops;
    } else if (event.kind == Kind::run) {
      out_ << "\"threads\": " << event.part << ", \"bytes\": " << event.bytes << ", \"program\": " << event.name;
    } else if (event.kind == Kind::fetch) {
      out_ << "\"stage\": " << json_text(timeline_.name(event.name)) << ", \"epoch\": " << event.bytes;
    } else {
      out_ << "\"count\": " << event.count << ", \"bytes\": " << event.bytes;
    }
    out_ << "}},\n";
  }

  /// Names come again and again.
  const std::string& label(const ActivityEvent& event) {
    const auto kind = static_cast<std::uint64_t>(event.kind);
    const bool is_kernel = event.kind == Kind::kernel;
    const std::uint64_t part = is_kernel ? static_cast<std::uint64_t>(event.part) : 0;
    std::string& known = labels_[(event.name << 24) + (part << 4) + kind];
    if (known.empty()) known = json_text(timeline_.label(event));
    return known;
  }

  static std::string_view category(Kind kind) {
    switch (kind) {
      case Kind::kernel: return "kernel";
      case Kind::run: return "compute";
      case Kind::stage: return "stage";
      case Kind::fetch: return "input";
      case Kind::making: return "data";
      case Kind::room: return "waiting";
      case Kind::compile: return "compile";
      case Kind::communication: return "communication";
      default: return "scope";
    }
  }

  void write_flow(const ActivityEvent& event, int track) {
    if (event.flow == 0) return;
    const bool is_made = made_.contains(event.flow), is_used = used_.contains(event.flow);
    const bool is_taken = taken_.contains(event.flow);
    const bool has_arrow = is_taken && (is_made || is_used);
    const char* phase = nullptr;
    if (event.kind == Kind::making) phase = "s";
    if (event.kind == Kind::fetch) phase = !is_made ? "s" : is_used ? "t" : "f";
    if (event.kind == Kind::run) phase = "f";
    if (!phase || !has_arrow) return;
    out_ << "{\"ph\": \"" << phase << "\", \"pid\": 1, \"tid\": " << track
         << ", \"cat\": \"batch\", \"name\": \"batch\", \"bp\": \"e\", \"id\": " << event.flow;
    // It is taken when it is ready.
    const bool is_taken_there = event.kind == Kind::fetch && is_made && event.end > event.begin;
    put_time("ts", (is_taken_there ? event.end - 1 : event.begin) - timeline_.begin);
    out_ << "},\n";
  }

  void write_queue(const ActivityEvent& event) {
    out_ << "{\"ph\": \"C\", \"pid\": 1, \"name\": " << json_text("queue depth of " + timeline_.name(event.name));
    put_time("ts", event.begin - timeline_.begin);
    out_ << ", \"args\": {\"elements\": " << event.count << "}},\n";
  }

  void write_memory() {
    for (const ProfileMemory& at : report_.memory) {
      out_ << "{\"ph\": \"C\", \"pid\": 1, \"name\": \"live bytes\"";
      put_time("ts", static_cast<std::int64_t>(at.seconds * 1e9));
      out_ << ", \"args\": {\"weights\": " << at.weights << ", \"optimizer\": " << at.optimizer
           << ", \"activations\": " << at.activations << ", \"temporaries\": " << at.temporaries
           << ", \"data\": " << at.data << ", \"others\": " << at.others << "}},\n";
      flush(1 << 16);
    }
  }

  void flush(std::streamoff least) {
    if (out_.tellp() < least) return;
    file_.write(out_.view());
    out_.str({});
  }

  const ProfileReport& report_;
  const ProfileTimeline& timeline_;
  AtomicFile& file_;
  TextStream out_;
  std::set<std::uint64_t> made_, taken_, used_;
  std::unordered_map<std::uint64_t, std::string> labels_;
};

}  // namespace

void ProfileReport::save_trace(const std::filesystem::path& file) const {
  require(timeline != nullptr, "save_trace: this report is not of a profile; profile() makes one");
  AtomicFile whole(file);
  TraceWriter(*this, whole).write();
  whole.commit();
}

}  // namespace gradus
