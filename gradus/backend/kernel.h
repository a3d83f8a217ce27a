/// What a report says of one unit of execution.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace gradus {

struct Kernel {
  std::string name;              // "add+relu"
  std::vector<std::string> ops;  // as in the graph's text form
  std::size_t bytes_read = 0, bytes_written = 0;
  double flops = 0;
  int stage = 0;                // kernels of one stage run side by side; stages follow each other
  bool divided = false;         // among all threads; else it is one thread's
  double seconds = 0;           // on one thread, estimated
  std::size_t bytes_alive = 0;  // of temporaries while it runs
};

}  // namespace gradus
