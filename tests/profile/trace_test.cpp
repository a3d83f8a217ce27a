// Traces: their schema, and that tracks, arrows and times are those of the report.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <thread>
#include "gradus/formats/json.h"
#include "gradus/graph/activity_scope.h"
#include "gradus/gradus.h"
#include "gradus/profile/timeline.h"
#include "tests/test_directory.h"

namespace gradus::trace_test {
namespace {

using Json = nlohmann::json;

/// A loop with every kind of entry.
ProfileReport profiled_loop(bool ahead) {
  Sequential model{Dense(64, relu), Dense(1)};
  Adam optimizer;
  const auto step = function(
      [&](Tensor x) {
        GradientTape tape;
        optimizer.apply_gradients(tape.gradient(Loss::mean(square(model(x, training))), model.trainable_variables()));
      },
      {.name = "step"});
  auto dataset = data::from_tensor_slices(random::normal({640, 64})).map([](Tensor x) { return x * 2; }).batch(64);
  if (ahead) dataset = dataset.prefetch({.buffers = 3});
  return profile([&] {
    for (const Tensor& x : dataset) {
      const ProfileScope scope("step \"quoted\"");
      step(x);
    }
  });
}

/// The trace events.
Json events_of(const ProfileReport& report) {
  const EmptyTestDirectory directory;
  const auto file = directory.path() / "trace.json";
  report.save_trace(file);
  std::ifstream in(file);
  std::ostringstream out;
  out << in.rdbuf();
  return parse_json(out.str(), "trace").at("traceEvents");
}

double microseconds(const Json& event, const char* key) { return event.at(key).get<double>(); }

TEST(SaveTrace, HasTheSchemaOfTraceEvents) {
  const Json events = events_of(profiled_loop(true));
  std::set<std::string> phases;
  std::map<int, std::string> tracks;
  for (const Json& event : events) {
    const std::string phase = event.at("ph");
    phases.insert(phase);
    EXPECT_EQ(event.at("pid"), 1);
    EXPECT_TRUE(event.at("name").is_string());
    if (phase == "M") {
      if (event.at("name") == "thread_name") tracks[event.at("tid")] = event.at("args").at("name");
      continue;
    }
    EXPECT_GE(microseconds(event, "ts"), 0);
    if (phase == "X") {
      EXPECT_GE(microseconds(event, "dur"), 0);
      EXPECT_TRUE(event.at("tid").is_number_integer());
      EXPECT_TRUE(event.at("cat").is_string());
    }
    if (phase == "C") {
      for (const auto& [name, value] : event.at("args").items()) EXPECT_GE(value.get<double>(), 0) << name;
    }
    if (phase == "s" || phase == "t" || phase == "f") { EXPECT_GT(event.at("id"), 0); }
  }
  EXPECT_EQ(phases, (std::set<std::string>{"C", "M", "X", "f", "s", "t"}));
  for (const Json& event : events)
    if (event.at("ph") == "X") { EXPECT_TRUE(tracks.contains(event.at("tid"))) << event; }
}

TEST(SaveTrace, HasATrackForEachThreadAndActivity) {
  const ProfileReport report = profiled_loop(true);
  std::map<std::string, int> names;
  for (const Json& event : events_of(report))
    if (event.at("name") == "thread_name") ++names[event.at("args").at("name")];
  EXPECT_EQ(names["thread 0 (profiled)"], 1);
  for (int w = 1; w < report.threads; ++w) EXPECT_EQ(names[text("thread ", w)], 1);
  EXPECT_EQ(names["data thread 1"], 1);
  EXPECT_EQ(names["compiling"], 1);
  EXPECT_EQ(names["communication"], 1);
}

TEST(SaveTrace, SlicesOfATrackNest) {
  for (const bool ahead : {true, false}) {
    std::map<int, std::vector<std::pair<double, double>>> slices;
    for (const Json& event : events_of(profiled_loop(ahead)))
      if (event.at("ph") == "X")
        slices[event.at("tid")].emplace_back(microseconds(event, "ts"),
                                             microseconds(event, "ts") + microseconds(event, "dur"));
    for (auto& [track, all] : slices) {
      std::ranges::stable_sort(all, [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first < b.first : a.second > b.second;
      });
      std::vector<double> open;
      for (const auto& [begin, end] : all) {
        while (!open.empty() && open.back() <= begin + 0.0005) open.pop_back();
        if (!open.empty()) { EXPECT_LE(end, open.back() + 0.0005) << "track " << track; }
        open.push_back(end);
      }
    }
  }
}

/// The time that is in any of these.
double covered(std::vector<std::pair<double, double>> slices) {
  std::ranges::sort(slices);
  double end = 0, sum = 0;
  for (const auto& [from, to] : slices)
    if (to > end) sum += to - std::max(end, from), end = to;
  return sum;
}

TEST(SaveTrace, TimesAddUpToTheReport) {
  for (const bool ahead : {true, false}) {
    const ProfileReport report = profiled_loop(ahead);
    std::map<std::string, double> of_kernels;
    std::vector<std::pair<double, double>> compiling, busy;
    std::int64_t scopes = 0;
    for (const Json& event : events_of(report)) {
      if (event.at("ph") != "X") continue;
      const std::string kind = event.at("cat");
      const double begin = microseconds(event, "ts") * 1e-6, took = microseconds(event, "dur") * 1e-6;
      const std::pair slice(begin, begin + took);
      const bool is_profiled = event.at("tid") == 0;
      if (kind == "kernel") of_kernels[event.at("name")] += took;
      if (event.at("tid") == 2000) compiling.push_back(slice);
      if (event.at("tid") == 2000 || (is_profiled && (kind == "input" || kind == "compute"))) busy.push_back(slice);
      scopes += kind == "scope" ? 1 : 0;
    }
    std::map<std::string, double> of_rows;  // rows of the model and of stages together
    for (const ProfileRow& row : report.rows)
      if (row.kind == ProfileKind::kernel) of_rows[row.name] += row.seconds;
    for (const auto& [name, seconds] : of_rows) EXPECT_NEAR(of_kernels[name], seconds, 1e-8 + 1e-6 * seconds) << name;
    EXPECT_EQ(scopes, 10);
    EXPECT_NEAR(covered(compiling), report.compile, 1e-6);
    EXPECT_NEAR(covered(busy), report.input_wait + report.compute + report.compile, 1e-6);
  }
}

TEST(SaveTrace, ArrowsGoFromTheMakingOfABatchToItsUse) {
  for (const bool ahead : {true, false}) {
    std::map<std::int64_t, std::vector<std::pair<double, std::string>>> arrows;
    for (const Json& event : events_of(profiled_loop(ahead)))
      if (const std::string phase = event.at("ph"); phase == "s" || phase == "t" || phase == "f")
        arrows[event.at("id")].emplace_back(microseconds(event, "ts"), phase);
    EXPECT_EQ(arrows.size(), 10U);  // batches
    for (auto& [id, points] : arrows) {
      std::ranges::stable_sort(points, {}, &std::pair<double, std::string>::first);
      std::string way;
      for (const auto& [time, phase] : points) way += phase;
      EXPECT_EQ(way, ahead ? "stf" : "sf") << id;
    }
  }
}

TEST(SaveTrace, CountsBytesAndQueues) {
  const ProfileReport report = profiled_loop(true);
  std::size_t samples = 0, queue = 0;
  for (const Json& event : events_of(report)) {
    if (event.at("ph") != "C") continue;
    if (event.at("name") == "live bytes") {
      ++samples;
      EXPECT_TRUE(event.at("args").contains("optimizer"));
    } else {
      EXPECT_TRUE(event.at("name").get<std::string>().starts_with("queue depth of batch(64)"));
      EXPECT_LE(event.at("args").at("elements"), 3);
      ++queue;
    }
  }
  EXPECT_EQ(samples, report.memory.size());
  EXPECT_EQ(queue, 20U);  // each batch is put in and taken out
}

TEST(SaveTrace, WhatCannotBeWrittenLeavesNothing) {
  const EmptyTestDirectory directory;
  const ProfileReport report = profile([] {});
  EXPECT_THROW(report.save_trace(directory.path() / "none" / "trace.json"), Unavailable);
  EXPECT_THROW(report.save_trace(directory.path()), Error);
  std::ofstream(directory.path() / "file") << "mine";
  EXPECT_THROW(report.save_trace(directory.path() / "file" / "trace.json"), Unavailable);
  EXPECT_THROW(report.save_xplane(directory.path() / "file"), Unavailable);
  std::ifstream kept(directory.path() / "file");
  std::string contents;
  kept >> contents;
  EXPECT_EQ(contents, "mine");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
  EXPECT_THROW(ProfileReport().save_trace(directory.path() / "empty.json"), InvalidArgument);
  EXPECT_THROW(ProfileReport().save_xplane(directory.path() / "empty"), InvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "empty"));
}

/// What check_xplane.py reads.
TEST(SaveXplane, IsWrittenForTensorBoard) {
  const char* given = std::getenv("GRADUS_WRITTEN");
  const EmptyTestDirectory own;
  const std::filesystem::path directory = given ? std::filesystem::path(given) : own.path();
  std::filesystem::remove_all(directory / "plugins");
  const ProfileReport report = profiled_loop(true);
  report.save_xplane(directory);
  const auto runs = std::filesystem::directory_iterator(directory / "plugins" / "profile");
  ASSERT_NE(runs, std::filesystem::directory_iterator());
  bool found = false;
  for (const auto& file : std::filesystem::directory_iterator(runs->path()))
    found |= file.path().string().ends_with(".xplane.pb") && file.file_size() > 1000;
  EXPECT_TRUE(found);
  std::ofstream(directory / "report.json") << report.to_json();
}

/// The fields of a protobuf message with a number: those that are bytes, and those that are integers.
struct Fields {
  std::vector<std::string> parts;
  std::vector<std::int64_t> integers;
};
Fields fields_of(std::string_view message, std::uint64_t number) {
  Fields fields;
  const auto integer = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.front());
      message.remove_prefix(1);
      value |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return value;
    }
  };
  while (!message.empty()) {
    const std::uint64_t key = integer(), value = integer();
    if (key % 8 == 2) {
      if (key / 8 == number) fields.parts.emplace_back(message.substr(0, value));
      message.remove_prefix(value);
    } else if (key / 8 == number) {
      fields.integers.push_back(static_cast<std::int64_t>(value));
    }
  }
  return fields;
}
std::vector<std::string> parts_of(std::string_view message, std::uint64_t number) {
  return fields_of(message, number).parts;
}

/// The plane that `report` writes.
std::string plane_of(const ProfileReport& report) {
  const EmptyTestDirectory directory;
  report.save_xplane(directory.path());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path())) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return parts_of(out.str(), 1).at(0);
  }
  return {};
}

/// The lines of the plane that `report` writes: their names, and how many entries each has.
std::map<std::string, std::size_t> lines_of(const ProfileReport& report) {
  std::map<std::string, std::size_t> lines;
  for (const std::string& line : parts_of(plane_of(report), 3))
    lines[parts_of(line, 2).at(0)] = parts_of(line, 4).size();
  return lines;
}

TEST(SaveXplane, CompilingAndCommunicationHaveLinesOfTheirOwn) {
  const ProfileReport report = profile([] {
    for (int k = 0; k < 3; ++k) {
      const ProfileScope scope("step");
      const ActivityScope asks(Activity::communication, ActivityEvent::Kind::communication, "asks");
      const CompileActivity compiles("compiles");
    }
  });
  auto lines = lines_of(report);
  EXPECT_EQ(lines["thread 0 (profiled)"], 3U);
  EXPECT_EQ(lines["communication"], 3U);
  EXPECT_EQ(lines["compiling"], 3U);
}

/// An entry of a line.
struct Entry {
  std::int64_t time = 0;    // nanoseconds
  std::int64_t group = -1;  // the number of its step, or -1
  std::string step;         // what it is called, if it is a step itself
};
std::vector<Entry> entries_of(std::string_view line) {
  constexpr std::int64_t step_name = 3, group_id = 4;
  std::vector<Entry> entries;
  for (const std::string& event : parts_of(line, 4)) {
    Entry& entry = entries.emplace_back(Entry{fields_of(event, 2).integers.at(0) / 1000});
    for (const std::string& stat : parts_of(event, 4)) {
      const std::int64_t kind = fields_of(stat, 1).integers.at(0);
      if (kind == group_id) entry.group = fields_of(stat, 4).integers.at(0);
      if (kind == step_name) entry.step = parts_of(stat, 5).at(0);
    }
  }
  return entries;
}

struct ScopeOfTest {
  std::int64_t begin, end;
  int depth;
};
/// In the order in which they are closed: one around many, each with others within, some of which begin or end together
/// or take no time, and gaps between them.
std::vector<ScopeOfTest> scopes_of_a_training() {
  std::vector<ScopeOfTest> scopes;
  for (std::int64_t at = 10; at < 2000; at += 20)
    for (const ScopeOfTest& each :
         {ScopeOfTest{2, 2, 2}, {4, 6, 2}, {9, 12, 3}, {6, 12, 2}, {14, 16, 3}, {14, 16, 2}, {0, 16, 1}, {17, 17, 1}})
      scopes.push_back({at + each.begin, at + each.end, each.depth});
  scopes.push_back({5, 2015, 0});
  return scopes;
}

/// A scope and a stage at each nanosecond are on both tracks; scopes of the second one are no steps.
ProfileReport report_of(const std::vector<ScopeOfTest>& scopes, std::int64_t end) {
  using Kind = ActivityEvent::Kind;
  ProfileTimeline timeline;
  timeline.end = end;
  timeline.names = {"", "a stage"};
  timeline.tracks.resize(2);
  timeline.tracks[0].name = "profiled";
  timeline.tracks[1].name = "another";
  for (const ScopeOfTest& scope : scopes) {
    const ActivityEvent event{
        .kind = Kind::scope, .name = timeline.names.size(), .begin = scope.begin, .end = scope.end};
    timeline.names.push_back(text("depth ", scope.depth, " at ", scope.begin));
    for (ProfileTimeline::Track& track : timeline.tracks) track.kept.events.push_back(event);
  }
  for (std::int64_t time = 0; time < end; ++time)
    for (ProfileTimeline::Track& track : timeline.tracks)
      track.kept.events.push_back({.kind = Kind::stage, .name = 1, .begin = time, .end = time});
  ProfileReport report;
  report.timeline = std::make_shared<const ProfileTimeline>(std::move(timeline));
  return report;
}

/// What the innermost scope at `time` is called; empty: there is none.
std::string deepest_at(std::int64_t time, const std::vector<ScopeOfTest>& scopes) {
  const ScopeOfTest* deepest = nullptr;
  for (const ScopeOfTest& scope : scopes)
    if (scope.begin <= time && time < scope.end && (deepest == nullptr || scope.depth > deepest->depth))
      deepest = &scope;
  return deepest == nullptr ? "" : text("depth ", deepest->depth, " at ", deepest->begin);
}

TEST(SaveXplane, EntriesBelongToTheInnermostScope) {
  constexpr std::int64_t end = 2030;
  const std::vector<ScopeOfTest> scopes = scopes_of_a_training();
  const std::vector<std::string> lines = parts_of(plane_of(report_of(scopes, end)), 3);
  ASSERT_EQ(lines.size(), 4U);  // two have no entries: compiling and communication
  const std::vector<Entry> profiled = entries_of(lines[0]), another = entries_of(lines[3]);
  std::map<std::int64_t, std::string> names;  // of steps
  for (const Entry& entry : profiled)
    if (!entry.step.empty()) {
      const std::string number = text(' ', entry.group);
      ASSERT_TRUE(entry.step.ends_with(number)) << entry.step;
      names[entry.group] = entry.step.substr(0, entry.step.size() - number.size());
    }
  EXPECT_EQ(names.size(), scopes.size());
  EXPECT_EQ(names[0], "depth 0 at 5");
  std::int64_t stages = 0;
  for (const Entry& entry : profiled) {
    if (!entry.step.empty()) continue;
    ++stages;
    EXPECT_EQ(entry.group < 0 ? "" : names[entry.group], deepest_at(entry.time, scopes)) << "at " << entry.time;
  }
  EXPECT_EQ(stages, end);
  std::map<std::int64_t, std::vector<std::int64_t>> groups;  // of the other track, by time
  for (const Entry& entry : another) {
    EXPECT_EQ(entry.step, "");
    groups[entry.time].push_back(entry.group);
  }
  for (const auto& [time, all] : groups) {
    const auto within = std::ranges::count_if(all, [](std::int64_t group) { return group >= 0; });
    EXPECT_EQ(within, deepest_at(time, scopes).empty() ? 0 : 1) << "at " << time;
    for (const std::int64_t group : all)
      if (group >= 0) { EXPECT_EQ(names[group], deepest_at(time, scopes)) << "at " << time; }
  }
}

}  // namespace
}  // namespace gradus::trace_test
