/// The floating-point state of whoever computes is one, whatever a thread had or inherits, and each gets its own back.
#include "gradus/base/floating_point_state.h"
#include <bit>
#include <cmath>
#include "gradus/base/thread_pool.h"
#include "tests/floating_point_states.h"
#include "tests/threads.h"

namespace gradus::floating_point_state_test {
namespace {

/// What any compiler would compute itself, unless it cannot see the numbers.
double third() {
  volatile double one = 1, three = 3;
  return one / three;
}
double wide_third() {
  volatile long double one = 1, three = 3;
  return static_cast<double>((one / three) * 3 - 1);
}

TEST(FloatingPointState, IsSetAndPutBack) {
  const double usual = third(), wide = wide_third();
  for (const FloatingPointSetting& setting : floating_point_settings) {
    const SetFloatingPoint scope(setting);
    const std::uint64_t before = vector_controls(), x87_before = x87_controls();
    {
      const KernelFloats outer;
      EXPECT_EQ(vector_controls(), flushing_controls);
      EXPECT_EQ(x87_controls(), 0x033Fu);
      volatile double zero = 0;
      EXPECT_TRUE(std::isinf(1 / zero)) << "no trap";
      {
        const HostFloats inner;
        EXPECT_EQ(vector_controls(), usual_controls);
        EXPECT_EQ(third(), usual);
        EXPECT_EQ(wide_third(), wide);
      }
      EXPECT_EQ(vector_controls(), flushing_controls);
    }
    EXPECT_EQ(vector_controls(), before) << setting.name;
    EXPECT_EQ(x87_controls(), x87_before) << setting.name;
  }
}

/// Not even what was raised inside is left behind, which a program that unmasks exceptions would be told of.
TEST(FloatingPointState, WhatIsRaisedInsideStaysThere) {
  const SetFloatingPoint scope({"up", FE_UPWARD});
  {
    const KernelFloats floats;
    volatile double zero = 0;
    volatile double infinite = 1 / zero;
    volatile long double wide = 1 / static_cast<long double>(zero);
    EXPECT_TRUE(std::isinf(infinite) && std::isinf(wide));
  }
  EXPECT_EQ(fetestexcept(FE_ALL_EXCEPT), 0);
}

TEST(FloatingPointState, OfThePoolsThreadsIsOneWhoeverMadeThem) {
  for (const FloatingPointSetting& setting : floating_point_settings)
    for (const bool made_before : {false, true}) {
      const Threads threads(made_before ? 3 : 2);  // another number: another team, which the next job makes
      std::array<unsigned, 3> seen{};
      const auto look = [&](int worker, int) {
        seen[static_cast<std::size_t>(worker)] = vector_controls() == flushing_controls && x87_controls() == 0x033Fu;
      };
      if (made_before) ThreadPool::global().run(3, look);
      const SetFloatingPoint scope(setting);
      seen = {};
      ThreadPool::global().run(3, look);
      for (int worker = 0; worker < (made_before ? 3 : 2); ++worker)
        EXPECT_TRUE(seen[static_cast<std::size_t>(worker)]) << setting.name << ", worker " << worker;
      seen = {};
      ThreadPool::global().run(1, look);
      EXPECT_TRUE(seen[0]);
    }
}

/// The one place where processors differ (docs/architecture.md, contract): x86 asks if a result is subnormal once it is
/// rounded, ARM before. All other results near the least normal number are the same.
TEST(FloatingPointState, AResultThatRoundsUpToTheLeastNormalNumberIsZeroOnArm) {
  struct Case {
    float x, y;
    std::uint32_t on_x86, on_arm;
  };
  constexpr Case cases[] = {
      {0x1.000002p-63F, 0x1.fffffcp-64F, 0x00800000, 0},  // (1 - 2^-46) 2^-126
      {-0x1.000002p-63F, 0x1.fffffcp-64F, 0x80800000, 0x80000000},
      {0x1p-63F, 0x1p-63F, 0x00800000, 0x00800000},  // exactly
      {0x1.000002p-63F, 0x1p-63F, 0x00800001, 0x00800001},
      {0x1.fffffep-64F, 0x1p-63F, 0, 0},  // (1 - 2^-24) 2^-126, a number without rounding
      {0x1p-126F, 0.5F, 0, 0},
      {0x1p-140F, 0x1p100F, 0, 0},  // an operand is subnormal
  };
  for (const Case& c : cases) {
    const KernelFloats floats;
    volatile float x = c.x, y = c.y, zero = 0;
    const std::uint32_t product = std::bit_cast<std::uint32_t>(x * y);
    const std::uint32_t fused = std::bit_cast<std::uint32_t>(std::fma(x, y, zero));
#if defined(__x86_64__)
    const std::uint32_t want = c.on_x86;
#else
    const std::uint32_t want = c.on_arm;
#endif
    EXPECT_EQ(product, want) << c.x << " * " << c.y;
    EXPECT_EQ(fused & 0x7fffffff, want & 0x7fffffff) << "fma of " << c.x << ' ' << c.y;
  }
}

}  // namespace
}  // namespace gradus::floating_point_state_test
