/// What a program may have made of its threads' floating-point state before it calls the library.
#pragma once
#include <gtest/gtest.h>
#include <xmmintrin.h>
#include <array>
#include <cfenv>
#include <cstdint>
#include "gradus/ops/elementwise.h"

namespace gradus {

struct FloatingPointSetting {
  const char* name;
  int rounding = FE_TONEAREST;
  int traps = 0;
  bool flushes = false;
};
inline constexpr int usual_traps = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW;
inline constexpr std::array floating_point_settings{
    FloatingPointSetting{"up", FE_UPWARD}, FloatingPointSetting{"down, with traps", FE_DOWNWARD, usual_traps},
    FloatingPointSetting{"towards zero, flushing", FE_TOWARDZERO, 0, true}};

/// This thread has the state while an object lives.
class SetFloatingPoint {
 public:
  explicit SetFloatingPoint(const FloatingPointSetting& setting) {
    fegetenv(&before_);
    fesetround(setting.rounding);
    if (setting.flushes) _mm_setcsr(_mm_getcsr() | 0x8040);
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(setting.traps);
    set_ = now();
  }
  ~SetFloatingPoint() {
    EXPECT_EQ(now(), set_) << "the state has changed";
    fesetenv(&before_);
  }
  SetFloatingPoint(const SetFloatingPoint&) = delete;

 private:
  /// The controls of vectors and of the x87, without what has been raised.
  static std::uint32_t now() {
    std::uint16_t word = 0;
    asm volatile("fnstcw %0" : "=m"(word));
    return (_mm_getcsr() & 0xFFC0) | static_cast<std::uint32_t>(word) << 16;
  }
  std::fenv_t before_;
  std::uint32_t set_;
};

/// The tensors that `work` gives, computed under each setting, have the bits that they have under none.
void expect_same_in_all_states(const auto& work) {
  const auto want = work();
  for (const FloatingPointSetting& setting : floating_point_settings) {
    auto got = want;
    {
      const SetFloatingPoint scope(setting);
      got = work();
    }
    ASSERT_EQ(got.size(), want.size()) << setting.name;
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(got[i].defined(), want[i].defined()) << setting.name << ", result " << i;
      if (!want[i].defined()) continue;
      EXPECT_TRUE(bitwise_equal(got[i], want[i]))
          << setting.name << ", result " << i << ": " << got[i] << " and " << want[i];
    }
  }
}

}  // namespace gradus
