/// So many threads while a test, or a part of one, runs.
#pragma once
#include "gradus/base/threads.h"

namespace gradus {

struct Threads {
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  Threads(const Threads&) = delete;
  const int before = num_threads();
};

}  // namespace gradus
