/// What a program may have made of its threads' floating-point state before it calls the library.
#pragma once
#include <gtest/gtest.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
#include <array>
#include <cfenv>
#include <cstdint>
#include "gradus/base/floating_point_state.h"
#include "gradus/ops/elementwise.h"

namespace gradus {

/// The controls of this thread's vectors: rounding, exceptions, subnormals; not the exceptions that have been raised.
inline std::uint64_t vector_controls() {
#if defined(__x86_64__)
  return _mm_getcsr() & 0xFFC0;
#else
  return FloatingPointState::control();
#endif
}
#if defined(__x86_64__)
inline constexpr std::uint64_t flushing_controls = 0x9FC0, usual_controls = 0x1F80, flushing_bits = 0x8040;
#else
inline constexpr std::uint64_t flushing_controls = FloatingPointState::flush, usual_controls = 0,
                               flushing_bits = FloatingPointState::flush;
#endif
/// Subnormals become zeros in this thread.
inline void flush_subnormals() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | static_cast<unsigned>(flushing_bits));
#else
  FloatingPointState::set_control(FloatingPointState::control() | flushing_bits);
#endif
}
/// The controls of the x87; on another architecture those that it has as usual.
inline unsigned x87_controls() {
  std::uint16_t word = 0x037F;
#if defined(__x86_64__)
  asm volatile("fnstcw %0" : "=m"(word));
#endif
  return word & 0x0F3Fu;
}

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
    if (setting.flushes) flush_subnormals();
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
  static std::uint64_t now() { return vector_controls() << 16 | x87_controls(); }
  std::fenv_t before_;
  std::uint64_t set_;
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
