/// What a report says of one unit of execution.
#pragma once
#include <cstddef>
#include <string>
#include <vector>
#include "gradus/tensor/device.h"

namespace gradus {

/// What one thread does in a second when nothing holds it up: the constants of the cost model.
struct ThreadRates {
  double flops = 120e9, narrow_flops = 240e9;  // in vectors of f32; in products of 16 bits
  double bytes = 60e9;                         // read and written, from the second cache
};

struct Kernel {
  std::string name;              // "add+relu"
  std::vector<std::string> ops;  // as in the graph's text form
  std::size_t bytes_read = 0, bytes_written = 0;
  double flops = 0;
  int stage = 0;                // kernels of one stage run side by side; stages follow each other
  bool divided = false;         // among all threads; else it is one thread's
  double seconds = 0;           // on one thread, estimated
  std::size_t bytes_alive = 0;  // of temporaries while it runs
  bool narrow = false;          // it multiplies what has 16 bits
  Device device = {};           // where it runs
  // Of a call of the outermost program, where kernels are measured: how often it runs, more than once in a loop, and
  // the seconds of all threads together, of a branch or a loop without those of the kernels inside.
  double runs = 0, measured = 0;
};

}  // namespace gradus
