/// The floating-point state of a thread: rounding, subnormals, exceptions. It belongs to the thread, a new thread
/// inherits its maker's, and a program may have changed it with fesetround, feenableexcept or for subnormals. The
/// numeric contract knows one state. So code that computes sets all of it, and restores the program's.
#pragma once
#include <xmmintrin.h>
#include <cfenv>

namespace gradus {

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
