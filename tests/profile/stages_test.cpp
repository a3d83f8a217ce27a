// Stages of datasets in profiles: each owns what its programs take, on whatever thread.
#include <gtest/gtest.h>
#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include "gradus/data/stage_team.h"
#include "gradus/gradus.h"
#include "tests/profile/rows.h"

namespace gradus::stages_test {
namespace {

double seconds_of_kernels_in(const ProfileReport& report, std::string_view stage) {
  double seconds = 0;
  for (const ProfileRow& row : report.rows)
    if (row.kind == ProfileKind::kernel && row.stage == stage) seconds += row.seconds;
  return seconds;
}

/// A stage's programs count as its own time, not as that of the stage that reads it, whether they run per batch, per
/// example, ahead or on demand.
TEST(ProfiledStages, AStageOwnsWhatItsProgramsTake) {
  const Tensor x = random::normal({256, 128}), w = random::normal({128, 128});
  const auto slow = [=](Tensor v) {
    for (int i = 0; i < 8; ++i) v = tanh(matmul(v, w));
    return v;
  };
  const auto slow_row = [=](Tensor v) { return squeeze(slow(expand_dims(v, 0)), {0}); };
  const auto wanted = [=](Tensor v) { return reduce_sum(slow_row(v)) < 1e9; };
  const Dataset<1> rows = data::from_tensor_slices(x);
  struct Row {
    const char* stage;
    Dataset<1> dataset;
  };
  const Row kinds[] = {{"map", rows.batch(64).map(slow)},
                       {"map", rows.map(slow_row).batch(64)},
                       {"map", rows.shuffle().map(slow_row).batch(64).map([](Tensor v) { return v + 1; })},
                       {"filter", rows.filter(wanted).batch(64)},
                       {"map", rows.batch(64).map(slow).prefetch(2)}};
  for (const Row& kind : kinds) {
    for (const Tensor& b : kind.dataset) reduce_sum(b).item();  // compiles
    const ProfileReport report = profile([&] {
      for (const Tensor& b : kind.dataset) reduce_sum(b).item();
    });
    const ProfileRow* row = row_of(report, ProfileKind::stage, kind.stage);
    ASSERT_NE(row, nullptr) << report;
    const double kernels = seconds_of_kernels_in(report, kind.stage);
    EXPECT_GT(kernels, 0) << report;
    EXPECT_GE(row->seconds * report.threads * 1.001, kernels) << report;
    double stages = 0;
    for (const ProfileRow& stage : report.rows)
      if (stage.kind == ProfileKind::stage) stages += stage.seconds;
    if (kind.dataset.pipeline().ahead().buffers == 0) { EXPECT_LE(stages, report.input_wait * 1.001) << report; }
  }
}

/// The number of threads while it lives.
class Threads {
 public:
  explicit Threads(int n) : before_(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before_); }

 private:
  const int before_;
};

/// Threads of the pool that make elements beside the reading thread work for the stage: both call a program here.
TEST(ProfiledStages, TheTeamOfAStageWorksForIt) {
  const Threads two(2);
  const Tensor x = random::normal({64, 64});
  const auto f = function([](Tensor v) { return reduce_sum(tanh(matmul(v, v))); });
  for (int i = 0; i < 3; ++i) f(x).item();
  std::atomic<int> team = 0, done = 0;
  const ProfileReport report = profile([&] {
    ActivityLog& log = *CallContext::here().log;
    const std::uint64_t stage = log.profile().name("map");
    log.begin(Activity::host);
    log.enter_stage(stage);
    run_stage_team(2, [&](int, int workers) {
      team = workers;
      f(x).item();
      for (++done; done < team;) std::this_thread::yield();
    });
    log.enter_stage(0);
    log.end({.kind = ActivityEvent::Kind::stage, .name = stage, .count = 2});
  });
  ASSERT_EQ(team, 2);
  const ProfileRow* row = row_of(report, ProfileKind::stage, "map");
  ASSERT_NE(row, nullptr) << report;
  EXPECT_EQ(row->calls, 2);
  EXPECT_GT(row->seconds, report.seconds) << "that of both threads, which waited for each other";
  std::int64_t calls = 0;
  for (const ProfileRow& kernel : report.rows)
    if (kernel.kind == ProfileKind::kernel && kernel.name.find("matmul") != std::string::npos) {
      EXPECT_EQ(kernel.stage, "map");
      calls += kernel.calls;
    }
  EXPECT_EQ(calls, 2) << report;
}

/// Elements that differ in size are not mapped together: each is a call, on the thread that comes first.
TEST(ProfiledStages, EveryCallOfAMapThatIsNotVectorizedIsCounted) {
  const Threads two(2);
  constexpr std::int64_t count = 48;
  const Tensor w = random::normal({1, 32});
  const auto source = data::from_generator({f32, {any_size}}, [n = 0]() mutable -> std::optional<Tensor> {
    if (n == count) return std::nullopt;
    return full({1 + n++ % 3}, 1);
  });
  const auto f = [=](Tensor v) { return reduce_sum(matmul(expand_dims(v, 1), w)); };
  const Dataset<1> dataset = source.cache().map(f, {.num_parallel_calls = 2}).batch(16);
  const auto run = [&] {
    for (const Tensor& b : dataset) reduce_sum(b).item();
  };
  for (int i = 0; i < 3; ++i) run();
  const ProfileReport report = profile(run);
  std::int64_t calls = 0;
  for (const ProfileRow& row : report.rows)
    if (row.kind == ProfileKind::kernel && row.name.find("matmul") != std::string::npos) {
      EXPECT_EQ(row.stage, "map");
      calls += row.calls;
    }
  EXPECT_EQ(calls, count) << report;
  EXPECT_EQ(row_of(report, ProfileKind::stage, "map")->calls, count) << report;
}

TEST(ProfiledStages, StagesOfOneNameAreToldApart) {
  const auto slow = [](Tensor v) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return v;
  };
  const auto source = data::from_generator({f32, {4}}, [n = 0]() mutable -> std::optional<Tensor> {
    if (++n > 12) return std::nullopt;
    return full({4}, n);
  });
  const Dataset<1> dataset =
      source.map([](Tensor v) { return v + 1; }).batch(2).map([](Tensor v) { return v * 2; }).take(3).map(slow);
  for (const bool ahead : {false, true}) {
    const ProfileReport report = profile([&] {
      for (const Tensor& b : ahead ? dataset.prefetch() : dataset) reduce_sum(b).item();
    });
    EXPECT_EQ(row_of(report, ProfileKind::stage, "map")->calls, 6) << report;
    EXPECT_EQ(row_of(report, ProfileKind::stage, "map 2")->calls, 3) << report;
    EXPECT_EQ(row_of(report, ProfileKind::stage, "map 3")->calls, 3) << report;
    EXPECT_EQ(row_of(report, ProfileKind::stage, "map 4"), nullptr) << report;
    if (ahead) { EXPECT_GT(row_of(report, ProfileKind::stage, "map 3")->waiting, 0) << report; }
  }
}

TEST(ProfiledStages, OneKernelOfAMapAndOfAModelIsTwoRows) {
  const Tensor w = random::normal({64, 64});
  const auto f = [=](Tensor v) { return tanh(matmul(v, w)); };
  const Dataset<1> dataset = data::from_tensor_slices(random::normal({96, 64})).batch(32).map(f);
  const auto step = function(f);
  const auto run = [&] {
    for (const Tensor& b : dataset) reduce_sum(step(b)).item();
  };
  for (int i = 0; i < 3; ++i) run();
  const ProfileReport report = profile(run);
  std::map<std::string, std::vector<const ProfileRow*>> by_name;
  for (const ProfileRow& row : report.rows)
    if (row.kind == ProfileKind::kernel) by_name[row.name].push_back(&row);
  bool found = false;
  for (const auto& [name, same] : by_name) {
    if (name.find("matmul") == std::string::npos || same.size() != 2) continue;
    found = true;
    EXPECT_NE(same[0]->stage == "map", same[1]->stage == "map");
    for (const ProfileRow* row : same) EXPECT_EQ(row->calls, 3) << row->stage;
  }
  EXPECT_TRUE(found) << report;
  EXPECT_NE(text(report).find(" in map "), std::string::npos) << report;
}

}  // namespace
}  // namespace gradus::stages_test
