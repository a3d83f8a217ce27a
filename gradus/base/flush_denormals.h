/// Subnormal results become zero, and subnormal operands count as zero, while an object of this class lives: the
/// numeric contract, and a matter of speed (an operation on subnormals may cost a hundred others). The mode is the
/// thread's own.
#pragma once
#include <xmmintrin.h>

namespace gradus {

class FlushDenormals {
 public:
  FlushDenormals() : before_(_mm_getcsr()) {
    if ((before_ & mode) != mode) _mm_setcsr(before_ | mode);
  }
  ~FlushDenormals() {
    if ((before_ & mode) != mode) _mm_setcsr((_mm_getcsr() & ~mode) | (before_ & mode));
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  static constexpr unsigned mode = 0x8040;  // flush to zero, denormals are zero
  unsigned before_;
};

}  // namespace gradus
