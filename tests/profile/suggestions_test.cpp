// Suggestions: which numbers of a report lead to which lever, and that a well-tuned loop has none.
#include <gtest/gtest.h>
#include <algorithm>
#include "gradus/profile/make_report.h"

namespace gradus::suggestions_test {
namespace {

using Kind = ActivityEvent::Kind;

/// A loop of one second, as a profile would have written it down.
struct Written {
  ProfileReport report;
  ProfileTimeline timeline;
  Written() {
    report.seconds = 1;
    report.compute = 0.96;
    report.input_wait = 0.01;
    report.host = 0.03;
    report.threads = 2;
    timeline.names = {""};
    timeline.tracks.resize(1);
    add(Kind::run, "", 1000, 0.96);
    kept().function_runs = 1000;
    add(Kind::compile, "trace step", 1, 0);
  }
  ActivityLog::Kept& kept() { return timeline.tracks[0].kept; }
  void add(Kind kind, const std::string& name, std::int64_t calls, double seconds) {
    timeline.names.push_back(name);
    kept().of_sums.emplace_back(kind, timeline.names.size() - 1);
    kept().sums.push_back({.calls = calls, .seconds_ns = static_cast<std::int64_t>(seconds * 1e9)});
  }
  /// Ten elements that are taken in `seconds` in all, evenly divided among the epochs.
  void fetch(bool ahead, double seconds, int epochs = 1) {
    add(Kind::fetch, "batch", 10, seconds);
    for (int i = 0; i < 10; ++i)
      kept().events.push_back({.kind = Kind::fetch,
                               .part = ahead ? 1 : 0,
                               .end = static_cast<std::int64_t>(seconds * 1e8),
                               .bytes = i * epochs / 10});
    report.input_wait = seconds;
    report.compute = 1 - seconds - report.host;
  }
  /// Adds programs, with traces of `name` before some of them, of `seconds` each.
  void trace(const std::string& name, int programs, const std::vector<int>& before, double seconds) {
    timeline.names.push_back("trace " + name);
    const auto end = static_cast<std::int64_t>(seconds * 1e9);
    for (int program = 0; program < programs; ++program) {
      for (int k = 0; k < std::ranges::count(before, program); ++k)
        kept().events.push_back({.kind = Kind::compile, .name = timeline.names.size() - 1, .end = end, .own = end});
      kept().events.push_back({.kind = Kind::run});
    }
  }
  void stage(const std::string& name, double seconds) {
    report.rows.push_back({.name = name, .calls = 10, .seconds = seconds, .kind = ProfileKind::stage});
  }
  void data_threads(int count) {
    for (int i = 0; i < count; ++i) timeline.tracks.push_back({ProfileTimeline::TrackKind::data, "data", {}});
  }
  std::vector<Suggestion> all() const { return suggestions_of(report, timeline); }
  std::vector<std::string> levers() const {
    std::vector<std::string> found;
    double before = 1;
    for (const Suggestion& s : all()) {
      EXPECT_GE(s.gain_seconds, 0.05);
      EXPECT_LE(s.gain_seconds, before);  // dearest first
      EXPECT_NE(s.reason.find(" %"), std::string::npos) << s.reason;
      before = s.gain_seconds;
      found.push_back(s.lever);
    }
    return found;
  }
};
using Levers = std::vector<std::string>;

TEST(Suggestions, AWellTunedLoopHasNone) {
  EXPECT_EQ(Written().levers(), Levers());
  Written with_data;
  with_data.fetch(true, 0.02, 2);
  with_data.stage("map", 0.5);
  with_data.data_threads(1);
  EXPECT_EQ(with_data.levers(), Levers());
}

TEST(Suggestions, AnEmptyReportHasNone) {
  ProfileTimeline nothing;
  nothing.tracks.resize(1);
  EXPECT_TRUE(suggestions_of({}, nothing).empty());
}

TEST(Suggestions, InputThatIsMadeWhenItIsAskedForWantsPrefetch) {
  Written w;
  w.fetch(false, 0.41);
  w.stage("map", 0.41);
  ASSERT_EQ(w.levers(), Levers{"prefetch"});
  EXPECT_NEAR(w.all()[0].gain_seconds, 0.41, 1e-6);
  EXPECT_TRUE(w.all()[0].reason.starts_with("41 % of the time waits for input")) << w.all()[0].reason;
  Written slow;  // no more can be hidden than there is to hide it behind
  slow.fetch(false, 0.8);
  slow.stage("map", 0.8);
  const std::vector<Suggestion> all = slow.all();
  const auto prefetch = std::ranges::find(all, "prefetch", &Suggestion::lever);
  ASSERT_NE(prefetch, all.end());
  EXPECT_NEAR(prefetch->gain_seconds, 0.5, 1e-6) << "but two threads need half the time for all of it";
  slow.stage("from_generator", 0);  // one thread reads it
  const std::vector<Suggestion> in_order = slow.all();
  EXPECT_NEAR(std::ranges::find(in_order, "prefetch", &Suggestion::lever)->gain_seconds, 0.2, 1e-6);
}

/// The first suggestion names the cause of most of the time; if that is the input, it names the slowest stage.
TEST(Suggestions, WorkThatWaitsForItsInputIsToldForWhat) {
  struct Row {
    bool ahead;
    double kernels;  // of the map, on both threads
    Levers expected;
  };
  const Row kinds[] = {
      {false, 0.9, {"prefetch", "input"}}, {false, 1.8, {"input", "prefetch"}}, {true, 1.8, {"input"}}};
  for (const auto& [ahead, kernels, expected] : kinds) {
    Written w;
    w.report.host = 0.02;
    w.fetch(ahead, 0.93);
    w.stage("batch(64)", 0.01);
    w.stage("map", ahead ? 1.7 : 0.9);
    w.report.rows.push_back({.name = "convolution", .seconds = kernels, .stage = "map"});
    if (ahead) w.data_threads(2);
    ASSERT_EQ(w.levers(), expected);
    const std::string reason = w.all()[0].reason;
    EXPECT_TRUE(reason.starts_with("93 % of the time waits for input")) << reason;
    EXPECT_EQ(reason.find("2 of 2 threads make it ahead") != std::string::npos, ahead) << reason;
    EXPECT_NE(reason.find("most of all by `map`"), std::string::npos) << reason;
    EXPECT_NE(w.all().back().reason.find("`map`"), std::string::npos);
  }
  Written w;  // ways to make it sooner come first, and the small rest is not mentioned
  w.fetch(false, 0.5);
  w.stage("map", 0.5);
  ASSERT_EQ(w.levers(), Levers{"prefetch"});
  EXPECT_NE(w.all()[0].reason.find("most of all by `map`"), std::string::npos) << w.all()[0].reason;
}

TEST(Suggestions, ASlowMapOnOneThreadWantsOthers) {
  Written w;
  w.fetch(true, 0.4);
  w.stage("map", 0.9);
  w.data_threads(1);
  ASSERT_EQ(w.levers(), Levers{"parallel map"});
  EXPECT_NEAR(w.all()[0].gain_seconds, 0.2, 1e-6);
  w.data_threads(1);  // both threads do it already
  EXPECT_EQ(w.levers(), Levers());
}

TEST(Suggestions, ElementsOfAnEarlierEpochWantACache) {
  Written w;
  w.fetch(true, 0.4, 2);
  w.stage("images", 0.9);
  w.data_threads(2);
  ASSERT_EQ(w.levers(), Levers{"cache"});
  EXPECT_NEAR(w.all()[0].gain_seconds, 0.2, 1e-6);
  w.stage("cache", 0.01);
  EXPECT_EQ(w.levers(), Levers());
  Written random;  // no cache keeps elements that differ between epochs
  random.fetch(true, 0.4, 2);
  random.stage("map", 0.9);
  random.data_threads(2);
  EXPECT_EQ(random.levers(), Levers{"cache"});
  random.timeline.names.push_back("map");
  random.kept().events.push_back({.kind = Kind::stage, .part = 1, .name = random.timeline.names.size() - 1});
  EXPECT_EQ(random.levers(), Levers());
  Written of_memory;  // which waits for a late thread, not for the making
  of_memory.fetch(true, 0.4, 2);
  of_memory.stage("from_tensor_slices", 0.9);
  of_memory.data_threads(2);
  EXPECT_EQ(of_memory.levers(), Levers());
}

TEST(Suggestions, OpsOneByOneWantAFunction) {
  Written w;
  w.report.host = 0.5;
  w.report.compute = 0.49;
  w.kept().function_runs = 0;
  ASSERT_FALSE(w.levers().empty());
  EXPECT_EQ(w.levers()[0], "compile");
  w.kept().function_runs = 1000;
  EXPECT_EQ(std::ranges::count(w.levers(), "compile"), 0);
}

TEST(Suggestions, AFunctionThatIsTracedTimeAndAgainWantsFixedSizes) {
  Written w;
  w.report.compile = 0.5;
  w.report.compute = 0.46;
  w.trace("shapes", 16, {0, 2, 4, 6, 8, 10, 12, 14}, 0.05);
  ASSERT_EQ(w.levers(), Levers{"fixed sizes"});
  EXPECT_NE(w.all()[0].reason.find("`shapes` was traced 4 times after half"), std::string::npos) << w.all()[0].reason;
  EXPECT_NEAR(w.all()[0].gain_seconds, 0.4, 1e-6);
  EXPECT_NE(w.all()[0].remedy.find("`drop_remainder`"), std::string::npos);
  EXPECT_EQ(w.all()[0].reason.find("explain()"), std::string::npos) << "the command has other remedies";
}

/// Pool threads that make elements count for their stage, not for the time that a reader waits.
TEST(Suggestions, ThreadsThatHelpAStageAreNoWaits) {
  Written w;
  w.report.host = 0.02;
  w.fetch(false, 0.93);
  w.stage("map", 1.8);  // on the reading thread and on another one
  w.timeline.tracks.push_back({ProfileTimeline::TrackKind::pool, "thread 1", {}});
  w.timeline.names.push_back("map");
  ActivityLog::Kept& helper = w.timeline.tracks.back().kept;
  helper.of_sums.emplace_back(Kind::stage, w.timeline.names.size() - 1);
  helper.sums.push_back({.own_ns = 900'000'000});
  const std::vector<Suggestion> all = w.all();
  ASSERT_EQ(w.levers(), (Levers{"input", "prefetch"}));
  EXPECT_NEAR(all[0].gain_seconds, 0.86, 1e-6) << "the threads are busy, so no others would help";
  EXPECT_NEAR(all[1].gain_seconds, 0.07, 1e-6);
  EXPECT_NE(all[0].reason.find("1800 ms of all threads"), std::string::npos) << all[0].reason;
}

/// A profile of few steps is mostly compiling, which a training does once for each batch size.
TEST(Suggestions, TheFirstTracesAreNotToBlame) {
  for (const std::vector<int>& before :
       {std::vector<int>{0, 0, 0, 0}, {0, 0, 32, 32, 32, 32}, {0, 1, 2, 3, 4, 5}, {}}) {
    Written w;
    w.report.compile = 0.7;
    w.report.compute = 0.26;
    w.trace("step", 50, before, 0.1);
    EXPECT_EQ(w.levers(), Levers());
  }
}

TEST(Suggestions, ShortProgramsWantALargerBatch) {
  Written w;
  w.report.host = 0.7;
  w.report.compute = 0.29;
  w.kept().sums[0] = {.calls = 10'000, .seconds_ns = 290'000'000};
  w.kept().function_runs = 10'000;
  EXPECT_EQ(w.levers(), Levers{"batch size"});
}

TEST(Suggestions, OtherProcessesThatAreWaitedForWantFewerSums) {
  Written w;
  w.report.communication = 0.3;
  w.report.compute = 0.66;
  EXPECT_EQ(w.levers(), Levers{"replicas"});
}

}  // namespace
}  // namespace gradus::suggestions_test
