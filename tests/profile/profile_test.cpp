// Profiles: parts, rows, who is told what, and what it costs.
#include <gtest/gtest.h>
#include <pthread.h>
#include <algorithm>
#include <atomic>
#include <thread>
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"
#include "gradus/profile/timeline.h"
#include "tests/allocations.h"
#include "tests/profile/rows.h"

namespace gradus::profile_test {
namespace {

double sum_of_parts(const ProfileReport& r) { return r.compute + r.input_wait + r.compile + r.communication + r.host; }

/// A small model and its step.
struct Training {
  Sequential model{Dense(64, relu), Dense(32, relu), Dense(1)};
  Adam optimizer;
  Tensor x = random::normal({128, 64});
  std::function<void(const Tensor&)> step;
  std::function<Explanation()> explain;
  Training() {
    const auto made = function(
        [this](Tensor rows) {
          GradientTape tape;
          const Loss loss = Loss::mean(square(model(rows, training)));
          optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
        },
        {.name = "step"});
    step = [made](const Tensor& rows) { made(rows); };
    explain = [made] { return made.explain(); };
  }
};

TEST(TakeProfile, PartsAddUpToTheWhole) {
  Training t;
  const double begin = steady_seconds();
  const ProfileReport report = profile([&] {
    for (int i = 0; i < 10; ++i) t.step(t.x);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  const double all = steady_seconds() - begin;
  EXPECT_DOUBLE_EQ(sum_of_parts(report), report.seconds);
  EXPECT_LE(report.seconds, all);
  EXPECT_GE(report.host, 0.020);
  EXPECT_GT(report.compute, 0);
  EXPECT_GT(report.compile, 0);
  EXPECT_EQ(report.input_wait, 0);
  EXPECT_EQ(report.communication, 0);
}

TEST(TakeProfile, RowsCountRuns) {
  Training t;
  for (int i = 0; i < 3; ++i) t.step(t.x);
  const ProfileReport report = profile([&] {
    for (int i = 0; i < 7; ++i) t.step(t.x);
  });
  EXPECT_EQ(report.compile, 0);
  const Explanation explanation = t.explain();
  double kernels = 0;
  for (const ProfileRow& row : report.rows)
    if (row.kind == ProfileKind::kernel) {
      const auto same = std::ranges::count(explanation.kernels, row.name, &Kernel::name);
      EXPECT_EQ(row.calls % 7, 0) << row.name;
      EXPECT_GE(row.calls, 7 * same) << row.name;
      EXPECT_GE(row.of_peak, 0);
      kernels += row.seconds;
    }
  EXPECT_GT(kernels, 0);
  EXPECT_LE(kernels, report.compute * report.threads * 1.001);
}

TEST(TakeProfile, BytesAndOperationsAreThoseOfTheExplanation) {
  Training t;
  for (int i = 0; i < 3; ++i) t.step(t.x);
  const ProfileReport report = profile([&] {
    for (int i = 0; i < 5; ++i) t.step(t.x);
  });
  double flops = 0, flops_of_rows = 0;
  std::size_t bytes = 0, bytes_of_rows = 0;
  for (const Kernel& kernel : t.explain().kernels)
    flops += 5 * kernel.flops, bytes += 5 * (kernel.bytes_read + kernel.bytes_written);
  for (const ProfileRow& row : report.rows)
    if (row.kind == ProfileKind::kernel) flops_of_rows += row.flops, bytes_of_rows += row.bytes;
  EXPECT_NEAR(flops_of_rows, flops, 1e-9 * flops);
  EXPECT_EQ(bytes_of_rows, bytes);
}

TEST(TakeProfile, RatesOfTheMachineArePlausible) {
  const ProfileReport report = profile([] {});
  EXPECT_GT(report.peak_flops, 1e8);
  EXPECT_LT(report.peak_flops, 2e12);  // a loop that was left out would be faster
  EXPECT_GT(report.peak_bandwidth, 1e7);
  EXPECT_LT(report.peak_bandwidth, 2e12);
}

TEST(TakeProfile, KernelsBelongToLayersAndGradientsToTheirs) {
  Training t;
  for (int i = 0; i < 3; ++i) t.step(t.x);
  const ProfileReport report = profile([&] { t.step(t.x); });
  double of_layers = 0;
  for (const auto* name : {"sequential/dense", "sequential/dense_1", "sequential/dense_2"}) {
    const ProfileRow* row = row_of(report, ProfileKind::layer, name);
    ASSERT_NE(row, nullptr) << name << '\n' << report;
    EXPECT_GT(row->seconds, row->gradient_seconds) << name;
    EXPECT_GT(row->gradient_seconds, 0) << name;
    of_layers += row->seconds;
  }
  double of_kernels = 0;
  for (const ProfileRow& row : report.rows)
    if (row.kind == ProfileKind::kernel) of_kernels += row.seconds;
  EXPECT_LE(of_layers, of_kernels * 1.001);
  EXPECT_GT(of_layers, 0.3 * of_kernels);
}

TEST(TakeProfile, ScopesNestAndCount) {
  const ProfileReport report = profile([&] {
    for (int i = 0; i < 4; ++i) {
      const ProfileScope outer("outer");
      for (int k = 0; k < 3; ++k) {
        const ProfileScope inner("inner");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  });
  const ProfileRow *outer = row_of(report, ProfileKind::scope, "outer"),
                   *inner = row_of(report, ProfileKind::scope, "inner");
  ASSERT_NE(outer, nullptr);
  ASSERT_NE(inner, nullptr);
  EXPECT_EQ(outer->calls, 4);
  EXPECT_EQ(inner->calls, 12);
  EXPECT_GE(inner->seconds, 0.012);
  EXPECT_GE(outer->seconds, inner->seconds);
  EXPECT_LE(outer->seconds, report.seconds);
}

/// A scope within another one of its name is part of it: its time and its work count once.
TEST(TakeProfile, AScopeThatRecursCountsOnce) {
  Training t;
  for (int i = 0; i < 3; ++i) t.step(t.x);
  const std::function<void(int)> within = [&](int depth) {
    const ProfileScope outer("outer");
    const ProfileScope inner("inner");
    if (depth > 0) within(depth - 1);
    else t.step(t.x);
  };
  const ProfileReport report = profile([&] { within(3); });
  std::size_t bytes = 0;
  double flops = 0;
  for (const ProfileRow& row : report.rows)
    if (row.kind == ProfileKind::kernel) bytes += row.bytes, flops += row.flops;
  for (const char* name : {"outer", "inner"}) {
    const ProfileRow* row = row_of(report, ProfileKind::scope, name);
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(row->calls, 4) << name;
    EXPECT_LE(row->seconds, report.seconds) << name;
    EXPECT_EQ(row->bytes, bytes) << name;
    EXPECT_NEAR(row->flops, flops, 1e-9 * flops) << name;
  }
}

TEST(TakeProfile, AScopeHasTheWorkOfItsPrograms) {
  Training t;
  for (int i = 0; i < 3; ++i) t.step(t.x);
  const ProfileReport report = profile([&] {
    const ProfileScope scope("step");
    t.step(t.x);
  });
  std::size_t bytes = 0;
  for (const ProfileRow& row : report.rows)
    if (row.kind == ProfileKind::kernel) bytes += row.bytes;
  EXPECT_EQ(row_of(report, ProfileKind::scope, "step")->bytes, bytes);
}

TEST(TakeProfile, LoopsHaveRowsForTheirBodies) {
  Sequential model{LSTM(16), Dense(1)};
  const Tensor x = random::normal({8, 20, 4});
  const auto predict = function([&](Tensor rows) { return model(rows); });
  for (int i = 0; i < 3; ++i) predict(x);
  const ProfileReport report = profile([&] { predict(x); });
  std::int64_t most = 0;
  double seconds = 0;
  for (const ProfileRow& row : report.rows)
    if (row.kind == ProfileKind::kernel) most = std::max(most, row.calls), seconds += row.seconds;
  EXPECT_GE(most, 1);
  EXPECT_LE(seconds, report.compute * report.threads * 1.001);

  const auto looped = function([](Tensor a) {
    return std::get<1>(while_loop([](Tensor i, Tensor) { return i < 25; },
                                  [](Tensor i, Tensor y) { return std::tuple{i + 1, tanh(y) * 0.5}; },
                                  std::tuple{constant(0), a}));
  });
  const Tensor a = random::normal({64, 64});
  for (int i = 0; i < 3; ++i) looped(a);
  const ProfileReport of_loop = profile([&] { looped(a); });
  most = 0;
  for (const ProfileRow& row : of_loop.rows)
    if (row.kind == ProfileKind::kernel) most = std::max(most, row.calls);
  EXPECT_GE(most, 25) << of_loop;
}

Dataset<1> slow_source(int elements, int milliseconds) {
  return data::from_generator({f32, {16, 64}}, [n = 0, elements, milliseconds]() mutable -> std::optional<Tensor> {
    if (++n > elements) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    return full({16, 64}, n);
  });
}

bool has_lever(const ProfileReport& report, std::string_view lever) {
  return std::ranges::find(report.suggestions, lever, &Suggestion::lever) != report.suggestions.end();
}

TEST(TakeProfile, InputIsWaitedForUnlessItIsMadeAhead) {
  Training t;
  const Dataset<1> source = slow_source(20, 15);
  for (const Tensor& x : source) t.step(x);  // compiles, which takes most of the time on a slow machine
  const auto loop = [&](const Dataset<1>& dataset) {
    return profile([&] {
      for (const Tensor& x : dataset) {
        const ProfileScope scope("step");
        t.step(x);
        std::this_thread::sleep_for(std::chrono::milliseconds(15));  // what the loop does besides
      }
    });
  };
  const ProfileReport waiting = loop(source), overlapped = loop(source.prefetch());
  EXPECT_GE(waiting.input_wait, 20 * 0.015);
  EXPECT_LT(overlapped.input_wait, waiting.input_wait);
  EXPECT_TRUE(has_lever(waiting, "prefetch")) << waiting;
  EXPECT_FALSE(has_lever(overlapped, "prefetch")) << overlapped;
  for (const ProfileReport* report : {&waiting, &overlapped}) {
    const ProfileRow* row = row_of(*report, ProfileKind::stage, "from_generator");
    ASSERT_NE(row, nullptr) << *report;
    EXPECT_GE(row->calls, 20);
    EXPECT_GE(row->seconds, 20 * 0.015);
    EXPECT_EQ(row_of(*report, ProfileKind::scope, "step")->calls, 20);
    EXPECT_DOUBLE_EQ(sum_of_parts(*report), report->seconds);
    for (const Suggestion& s : report->suggestions) {
      EXPECT_GT(s.gain_seconds, 0);
      EXPECT_LE(s.gain_seconds, report->seconds);
      EXPECT_FALSE(s.reason.empty());
    }
  }
}

/// A reading within a reading waits no longer than the outer one.
TEST(TakeProfile, AReadingWithinAReadingCountsOnce) {
  const Dataset<1> inner = slow_source(4, 2);
  const auto outer = data::from_generator({f32, {}}, [=, left = 2]() mutable -> std::optional<Tensor> {
    if (left-- == 0) return std::nullopt;
    Tensor sum = full({}, 0);
    for (const Tensor& x : inner) sum = sum + reduce_sum(x);
    return sum;
  });
  const ProfileReport report = profile([&] {
    for (const Tensor& x : outer) x.item();
  });
  const ActivityLog::Kept& kept = report.timeline->tracks.front().kept;
  double fetched = 0;
  for (std::size_t i = 0; i < kept.sums.size(); ++i)
    if (kept.of_sums[i].first == ActivityEvent::Kind::fetch) fetched += 1e-9 * double(kept.sums[i].seconds_ns);
  EXPECT_GT(fetched, 0);
  EXPECT_LE(fetched, report.seconds);
}

TEST(TakeProfile, LazyOpsThatNobodyLookedAtAreTold) {
  const Tensor x = random::normal({32, 32});
  Tensor kept;
  const ProfileReport waiting = profile([&] { kept = matmul(x, transpose(x)); });
  EXPECT_GE(waiting.unobserved, 1);
  EXPECT_NE(text(waiting).find("nobody looked at a value"), std::string::npos) << waiting;
  EXPECT_NE(waiting.to_json().find("\"unobserved_ops\":"), std::string::npos);
  EXPECT_GE(profile([&] { matmul(x, transpose(x)); }).unobserved, 1) << "none ran, and none will";
  const ProfileReport seen = profile([&] { reduce_sum(kept).item(); });
  EXPECT_EQ(seen.unobserved, 0);
  EXPECT_EQ(text(seen).find("nobody looked"), std::string::npos) << seen;
  Tensor last;
  const ProfileReport part = profile([&] {
    reduce_sum(x).item();
    last = tanh(x);
  });
  EXPECT_EQ(part.unobserved, 1);
  Training t;
  EXPECT_EQ(profile([&] { t.step(t.x); }).unobserved, 0);
}

TEST(TakeProfile, ThreadsHaveReportsOfTheirOwn) {
  std::vector<ProfileReport> reports(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&reports, i] {
      Sequential model{Dense(8 + i)};
      const auto predict = function([&](Tensor x) { return model(x); });
      const auto dataset = data::from_tensor_slices(random::normal({20, 4})).batch(2 + i).prefetch();
      reports[static_cast<std::size_t>(i)] = profile([&] {
        for (const Tensor& x : dataset) {
          const ProfileScope scope(text("thread ", i));
          predict(x);
        }
      });
    });
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 4; ++i) {
    const ProfileReport& report = reports[static_cast<std::size_t>(i)];
    EXPECT_DOUBLE_EQ(sum_of_parts(report), report.seconds);
    for (int k = 0; k < 4; ++k) {
      EXPECT_EQ(row_of(report, ProfileKind::scope, text("thread ", k)) != nullptr, i == k);
      EXPECT_EQ(row_of(report, ProfileKind::stage, text("batch(", 2 + k, ")")) != nullptr, i == k) << report;
    }
  }
}

TEST(TakeProfile, AThreadWithinAProfileMayHaveOneOfItsOwn) {
  ProfileReport inner;
  const ProfileReport outer = profile([&] {
    const ProfileScope scope("outer");
    std::thread([&] { inner = profile([] { const ProfileScope within("inner"); }); }).join();
  });
  EXPECT_NE(row_of(outer, ProfileKind::scope, "outer"), nullptr);
  EXPECT_EQ(row_of(outer, ProfileKind::scope, "inner"), nullptr);
  EXPECT_NE(row_of(inner, ProfileKind::scope, "inner"), nullptr);
}

TEST(TakeProfile, ProfilingInsideProfilingIsRefused) {
  EXPECT_THROW(profile([] { profile([] {}); }), InvalidArgument);
  // By a data thread, too, which works for a profiled one.
  const auto dataset = data::from_generator({f32, {}}, [n = 0]() mutable -> std::optional<Tensor> {
                         profile([] {});
                         return ++n > 2 ? std::nullopt : std::optional(full({}, n));
                       }).prefetch();
  EXPECT_THROW(profile([&] {
                 for (const Tensor& x : dataset) x.item();
               }),
               InvalidArgument);
  EXPECT_EQ(profile([] { const ProfileScope scope("after"); }).rows.size(), 1U);  // and the next one works
}

TEST(TakeProfile, ProfilingWhileTracingIsRefused) {
  const auto f = function([](Tensor x) {
    profile([] {});
    return x;
  });
  EXPECT_THROW(f(full({2}, 1)), InvalidArgument);
}

TEST(TakeProfile, ErrorsOfTheWorkAreThrownOn) {
  Training t;
  EXPECT_THROW(profile([&] {
                 const ProfileScope scope("fails");
                 t.step(t.x);
                 throw OutOfRange("mine");
               }),
               OutOfRange);
  EXPECT_EQ(row_of(profile([] {}), ProfileKind::scope, "fails"), nullptr);
}

TEST(TakeProfile, AScopeThatDoesNotEndIsToldAndHarmless) {
  std::unique_ptr<ProfileScope> kept;
  EXPECT_THROW(profile([&] { kept = std::make_unique<ProfileScope>("kept"); }), InvalidArgument);
  kept.reset();  // after the profile
  EXPECT_THROW(profile([&] {
                 auto first = std::make_unique<ProfileScope>("first");
                 const ProfileScope second("second");
                 first.reset();
               }),
               InvalidArgument);
  EXPECT_NO_THROW(profile([] { const ProfileScope scope("fine"); }));
}

TEST(TakeProfile, AScopeOfAThreadThatHasEndedIsTold) {
  EXPECT_THROW(profile([&] {
                 auto scope = std::make_unique<ProfileScope>("handed on");
                 std::thread([&] { scope.reset(); }).join();
               }),
               InvalidArgument);
}

TEST(TakeProfile, AThreadMayEndWithinItsProfile) {
  static std::atomic<bool> was_reported{false};
  pthread_t thread;
  const auto body = [](void*) -> void* {
    profile([] {
      const ProfileScope scope("ends");
      pthread_exit(nullptr);
    });
    was_reported = true;
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, body, nullptr), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_FALSE(was_reported);
  EXPECT_EQ(profile([] { const ProfileScope scope("after"); }).rows.size(), 1U);
}

TEST(TakeProfile, ADataThreadMayOutliveTheProfile) {
  Training t;
  const auto dataset = slow_source(50, 1).prefetch({.buffers = 4});
  auto place = dataset.begin();
  const ProfileReport first = profile([&] {
    for (int i = 0; i < 3; ++i, ++place) t.step(*place);
  });
  for (int i = 0; i < 3; ++i, ++place) t.step(*place);
  const ProfileReport second = profile([&] {
    for (int i = 0; i < 3; ++i, ++place) t.step(*place);
  });
  EXPECT_NE(row_of(first, ProfileKind::stage, "from_generator"), nullptr);
  EXPECT_NE(row_of(second, ProfileKind::stage, "from_generator"), nullptr);
}

TEST(TakeProfile, PeakIsAboveWhatWasLive) {
  const Tensor before = full({4 << 20}, 1);
  ProfileReport report = profile([&] {
    const Tensor made = full({2 << 20}, 2) + 1;
    reset_peak_memory();  // the program's own look does not disturb it
    check(made.rows(0, 1).shape()[0] == 1 && reduce_sum(made).item() > 0, "computed");
    reset_peak_memory();
  });
  EXPECT_GE(report.peak_bytes, std::size_t{8} << 20);
  EXPECT_LT(report.peak_bytes, std::size_t{40} << 20);
  report = profile([] {});
  EXPECT_LT(report.peak_bytes, std::size_t{1} << 20);
}

TEST(TakeProfile, MemoryIsToldByWhatHoldsIt) {
  Training t;
  const ProfileReport report = profile([&] {
    for (int i = 0; i < 4; ++i) t.step(t.x);
  });
  ASSERT_FALSE(report.memory.empty());
  const ProfileMemory& last = report.memory.back();
  std::size_t weights = 0;
  for (const Variable& variable : t.model.trainable_variables()) weights += variable.value().bytes();
  EXPECT_EQ(last.weights, weights);
  EXPECT_GE(last.optimizer, 2 * weights);  // Adam's moments, and its counts
  EXPECT_LT(last.optimizer, 2 * weights + 1024);
  EXPECT_GT(last.activations, 0U);
}

TEST(TakeProfile, ArraysOfADatasetAreData) {
  Training t;
  const auto dataset = data::from_tensor_slices(random::normal({1024, 64})).batch(128);
  const ProfileReport report = profile([&] {
    for (const Tensor& x : dataset) t.step(x);
  });
  ASSERT_FALSE(report.memory.empty());
  EXPECT_EQ(report.memory.back().data, 1024U * 64 * sizeof(float));
}

TEST(TakeProfile, BitsAreTheSameWithIt) {
  const auto train = [](bool profiled) {
    set_seed(3);
    Training t;
    const auto steps = [&] {
      for (int i = 0; i < 5; ++i) t.step(t.x);
    };
    if (profiled) profile(steps);
    else steps();
    return t.model.trainable_variables()[0].value();
  };
  EXPECT_TRUE(bitwise_equal(train(false), train(true)));
}

TEST(TakeProfile, CostsNothingWhileItIsOff) {
  if (!allocations_so_far()) GTEST_SKIP() << "sanitizers count";
  const OneThread alone;  // how many threads a program takes is tried out in its first runs
  Training t;
  const auto allocated = [&] {
    const int before = *allocations_so_far();
    for (int i = 0; i < 50; ++i) {
      const ProfileScope scope("step");
      t.step(t.x);
    }
    return *allocations_so_far() - before;
  };
  int never = -1;
  for (int now; (now = allocated()) != never;) never = now;  // until it is warm
  profile([&] { t.step(t.x); });
  allocated();
  EXPECT_EQ(allocated(), never);  // a profile leaves nothing behind
  const int before = *allocations_so_far();
  for (int i = 0; i < 1000; ++i) const ProfileScope scope("a name that is longer than what a string holds itself");
  EXPECT_EQ(*allocations_so_far(), before);
}

TEST(TakeProfile, PrintsWithinHundredColumnsAndAsJson) {
  Training t;
  const ProfileReport report = profile([&] {
    const ProfileScope scope(std::string(200, 'n'));
    t.step(t.x);
  });
  std::istringstream lines(text(report));
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("try ")) { EXPECT_LE(line.size(), 100U) << line; }
  EXPECT_NE(report.to_json().find("\"rows\""), std::string::npos);
}

}  // namespace
}  // namespace gradus::profile_test
