// Debian's LLVM draws the names of temporary files by arc4random, for which alone the wheel would need glibc 2.36.
#include <sys/random.h>

#include <cstdint>

extern "C" std::uint32_t arc4random() {
  std::uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {  // a signal came first
  }
  return number;
}
