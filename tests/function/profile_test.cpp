/// Measured kernels: nothing unless asked for, the same bits, counts and times that add up, also of loops; and how rows
/// of a profile follow from them.
#include "gradus/function/profile.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <numeric>
#include "gradus/base/error.h"
#include "gradus/function/function.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "tests/threads.h"

namespace gradus::profile_test {
namespace {

Tensor layers(const Tensor& x, const Tensor& w) {
  const Tensor h = tanh(matmul(x, w));
  return reduce_sum(matmul(h, w) + h * 2, {.axis = {0}});
}

double kernel_seconds(const Explanation& e) {
  return std::accumulate(e.kernels.begin(), e.kernels.end(), 0.0,
                         [](double sum, const Kernel& kernel) { return sum + kernel.measured; });
}

TEST(Profile, NothingIsMeasuredUnlessAskedFor) {
  const auto f = function([](Tensor x, Tensor w) { return layers(x, w); }, {.name = "plain"});
  const Tensor x = random::normal({96, 64}), w = random::normal({64, 64});
  for (int call = 0; call < 3; ++call) f(x, w).observed();
  const Explanation e = f.explain();
  EXPECT_EQ(e.measured_seconds, 0);
  for (const Kernel& kernel : e.kernels) EXPECT_EQ(kernel.runs + kernel.measured, 0) << kernel.name;
  EXPECT_THROW(profile_of(e), InvalidArgument);
}

TEST(Profile, TheSameBitsAndTimesWithinTheTimeOfTheCall) {
  for (const int threads : {1, 2, 3}) {
    const Threads set(threads);
    const auto plain = function([](Tensor x, Tensor w) { return layers(x, w); });
    const auto measured = function([](Tensor x, Tensor w) { return layers(x, w); }, {.profile = true});
    for (const std::int64_t rows : {1, 33, 700}) {
      const Tensor x = random::normal({rows, 64}), w = random::normal({64, 64});
      for (int call = 0; call < 4; ++call) EXPECT_TRUE(bitwise_equal(plain(x, w), measured(x, w))) << rows;
      const Explanation e = measured.explain();
      ASSERT_GT(e.measured_seconds, 0);
      EXPECT_LE(kernel_seconds(e), e.measured_seconds * e.threads) << rows << " rows, " << threads << " threads";
      for (const Kernel& kernel : e.kernels) {
        EXPECT_EQ(kernel.runs, 1) << kernel.name;
        EXPECT_GT(kernel.measured, 0) << kernel.name;
      }
    }
  }
}

TEST(Profile, WhatALoopRunsIsCountedAsOftenAsItRuns) {
  const Threads set(2);
  const auto f = function(
      [](Tensor x, Tensor w) {
        const auto body = [&](Tensor h, Tensor) {
          const Tensor next = tanh(matmul(h, w));
          return std::pair{next, reduce_sum(next)};
        };
        return scan(body, x[0], x).second;
      },
      {.profile = true});
  const Tensor x = random::normal({7, 16, 32}), w = random::normal({32, 32});
  for (int call = 0; call < 5; ++call) f(x, w).observed();
  const Explanation e = f.explain();
  const auto runs_of = [&](std::string_view op) {
    for (const Kernel& kernel : e.kernels)
      if (std::ranges::find(kernel.ops, op) != kernel.ops.end()) return kernel.runs;
    return -1.0;
  };
  EXPECT_EQ(runs_of("scan"), 1);
  EXPECT_EQ(runs_of("tanh"), 7) << e;
  EXPECT_LE(kernel_seconds(e), e.measured_seconds * e.threads);
  EXPECT_NE(text(e).find("GFLOP/s"), std::string::npos);
}

TEST(Profile, RatesAreThoseOfOneThread) {
  const ThreadRates rates{.flops = 100e9, .narrow_flops = 300e9, .bytes = 10e9};
  Kernel kernel{.name = "matmul", .bytes_read = 6'000'000, .bytes_written = 2'000'000, .flops = 40e6};
  EXPECT_EQ(achieved_by(kernel, rates).flops, 0) << "not measured";
  kernel.runs = 2;
  kernel.measured = 2e-3;
  Achieved achieved = achieved_by(kernel, rates);
  EXPECT_DOUBLE_EQ(achieved.flops, 40e9);
  EXPECT_DOUBLE_EQ(achieved.of_flops, 0.4);
  EXPECT_DOUBLE_EQ(achieved.bytes, 8e9);
  EXPECT_DOUBLE_EQ(achieved.of_bytes, 0.8);
  kernel.narrow = true;
  EXPECT_DOUBLE_EQ(achieved_by(kernel, rates).of_flops, 0.4 / 3);
}

TEST(Profile, KernelsOfOneNameAreOneRowAndWhatIsLeftIsWaiting) {
  Explanation e;
  EXPECT_THROW(profile_of(e), InvalidArgument);
  e.threads = 2;
  e.measured_seconds = 5e-3;
  e.kernels = {{.name = "add", .flops = 1e6, .runs = 1, .measured = 1e-3},
               {.name = "matmul", .flops = 50e6, .runs = 1, .measured = 2e-3},
               {.name = "matmul", .flops = 50e6, .runs = 3, .measured = 3e-3}};
  e.rates.flops = 100e9;
  const std::vector<KernelRow> rows = profile_of(e);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "matmul");
  EXPECT_EQ(rows[0].kernels, 2);
  EXPECT_EQ(rows[0].runs, 4);
  EXPECT_DOUBLE_EQ(rows[0].share, 0.5);
  EXPECT_DOUBLE_EQ(rows[0].achieved.of_flops, 0.4);
  EXPECT_EQ(rows[1].name, "add");
  EXPECT_EQ(rows[2].name, "waiting");
  EXPECT_DOUBLE_EQ(rows[2].seconds, 4e-3);
}

}  // namespace
}  // namespace gradus::profile_test
