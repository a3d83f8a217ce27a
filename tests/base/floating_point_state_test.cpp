/// The floating-point state of whoever computes is one, whatever a thread had or inherits, and each gets its own back.
#include "gradus/base/floating_point_state.h"
#include <cmath>
#include "gradus/base/thread_pool.h"
#include "tests/floating_point_states.h"
#include "tests/threads.h"

namespace gradus::floating_point_state_test {
namespace {

unsigned vectors() { return _mm_getcsr() & 0xFFC0; }
unsigned x87() {
  std::uint16_t word = 0;
  asm volatile("fnstcw %0" : "=m"(word));
  return word & 0x0F3Fu;
}
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
    const unsigned before = vectors(), x87_before = x87();
    {
      const KernelFloats outer;
      EXPECT_EQ(vectors(), 0x9FC0u);
      EXPECT_EQ(x87(), 0x033Fu);
      volatile double zero = 0;
      EXPECT_TRUE(std::isinf(1 / zero)) << "no trap";
      {
        const HostFloats inner;
        EXPECT_EQ(vectors(), 0x1F80u);
        EXPECT_EQ(third(), usual);
        EXPECT_EQ(wide_third(), wide);
      }
      EXPECT_EQ(vectors(), 0x9FC0u);
    }
    EXPECT_EQ(vectors(), before) << setting.name;
    EXPECT_EQ(x87(), x87_before) << setting.name;
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
        seen[static_cast<std::size_t>(worker)] = vectors() == 0x9FC0u && x87() == 0x033Fu;
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

}  // namespace
}  // namespace gradus::floating_point_state_test
