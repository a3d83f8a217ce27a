/// A hint to the processor that a thread is polling.
#pragma once
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace gradus {

inline void cpu_pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  asm volatile("isb" : : : "memory");  // waits about as long as x86's pause; most cores pass by `yield` at once
#endif
}

}  // namespace gradus
