/// The floating-point state of a thread: rounding, subnormals, exceptions. It belongs to the thread, a new thread
/// inherits its maker's, and a program may have changed it with fesetround, feenableexcept or for subnormals. The
/// numeric contract knows one state. So code that computes sets all of it, and restores the program's.
#pragma once
#include <cfenv>
#include <cstdint>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace gradus {

#if defined(__x86_64__)
class FloatingPointState {
 public:
  /// Rounds to nearest even and masks all exceptions. `subnormals`: keep them; else they are zero as operands and
  /// results.
  explicit FloatingPointState(bool subnormals)
      : vectors_(_mm_getcsr()), x87_(control_of_x87()), wanted_(subnormals ? with_subnormals : flushing) {
    if (has_vectors()) [[likely]] {
      if (has_x87()) [[likely]]
        return;
    }
    if (!has_x87()) [[unlikely]] {
      fegetenv(&all_);  // masks exceptions of the x87, too
      const unsigned short usual = usual_x87;
      asm volatile("fnclex\n\tfldcw %0" : : "m"(usual));
    }
    _mm_setcsr(wanted_);
  }
  ~FloatingPointState() {
    if (!has_x87()) [[unlikely]]
      fesetenv(&all_);
    if (!has_vectors() || !has_x87()) _mm_setcsr(vectors_);
  }
  FloatingPointState(const FloatingPointState&) = delete;
  FloatingPointState& operator=(const FloatingPointState&) = delete;

 private:
  static constexpr unsigned with_subnormals = 0x1F80, flushing = 0x9FC0, raised = 0x3F;
  static constexpr unsigned short usual_x87 = 0x37F, unused_x87 = 0xF0C0;

  static unsigned short control_of_x87() {
    unsigned short word = 0;
    asm volatile("fnstcw %0" : "=m"(word));
    return word;
  }
  bool has_vectors() const { return (vectors_ & ~raised) == wanted_; }
  bool has_x87() const { return ((x87_ ^ usual_x87) & ~unused_x87) == 0; }

  const unsigned vectors_;  // previous MXCSR
  const unsigned short x87_;
  const unsigned wanted_;
  std::fenv_t all_;  // the previous state, if that of the x87 was another
};
#else
/// One register, FPCR, whose bit FZ flushes operands and results of f32 and f64 as x86 does, but for one thing: a
/// result is found to be subnormal before it is rounded, on x86 after it (docs/architecture.md, contract).
class FloatingPointState {
 public:
  explicit FloatingPointState(bool subnormals) : before_(control()), wanted_(subnormals ? 0 : flush) {
    if (!is_another()) [[likely]]
      return;
    asm volatile("mrs %0, fpsr" : "=r"(raised_));
    set_control(wanted_);
  }
  ~FloatingPointState() {
    if (!is_another()) [[likely]]
      return;
    set_control(before_);
    asm volatile("msr fpsr, %0" : : "r"(raised_) : "memory");
  }
  FloatingPointState(const FloatingPointState&) = delete;
  FloatingPointState& operator=(const FloatingPointState&) = delete;

  static std::uint64_t control() {
    std::uint64_t word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void set_control(std::uint64_t word) { asm volatile("msr fpcr, %0" : : "r"(word) : "memory"); }
  static constexpr std::uint64_t flush = std::uint64_t{1} << 24;  // FZ

 private:
  // AHP, DN, FZ, rounding, FZ16; exceptions that trap; AH, FIZ, NEP.
  static constexpr std::uint64_t meaningful = std::uint64_t{0x7f89f07};
  bool is_another() const { return (before_ & meaningful) != wanted_; }

  const std::uint64_t before_, wanted_;
  std::uint64_t raised_;  // previously, if the state was another
};
#endif

/// For kernels, and for code that has to give the same bits: subnormals are flushed. That is a matter of speed, too: an
/// operation on subnormals may cost as much as a hundred others.
struct KernelFloats : FloatingPointState {
  KernelFloats() : FloatingPointState(false) {}
};

/// For the library's own arithmetic: the constants of ops, schedules, numbers in files.
struct HostFloats : FloatingPointState {
  HostFloats() : FloatingPointState(true) {}
};

}  // namespace gradus
