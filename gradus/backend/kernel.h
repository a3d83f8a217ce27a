/// Kernel: one unit of execution in a report.
#pragma once
#include <cstddef>
#include <string>
#include <vector>
#include "gradus/tensor/device.h"

namespace gradus {

/// The peak speed of one thread, a second. The defaults are those of a Zen 4: byte budgets use them, so that they are
/// the same on every machine. thread_rates() measures the machine that runs (backend/cpu/thread_rates.h).
struct ThreadRates {
  double flops = 120e9, narrow_flops = 240e9;  // in vectors of f32; in products of 16 bits
  double bytes = 60e9;                         // read and written, from the second cache
};

/// A kernel: ops that are computed together.
struct Kernel {
  std::string name;                               // "add+relu"
  std::vector<std::string> ops;                   // as in the graph's text form
  std::size_t bytes_read = 0, bytes_written = 0;  // read in a run; written in a run
  double flops = 0;                               // operations in a run
  int stage = 0;                                  // kernels of one stage run side by side; stages follow each other
  bool divided = false;                           // among all threads; else it is one thread's
  double seconds = 0;                             // on one thread, estimated
  std::size_t bytes_alive = 0;                    // of temporaries while it runs
  bool narrow = false;                            // it multiplies values of 16 bits
  Device device = {};                             // where it runs
  std::string layer = {};                         // that its op was recorded in: "sequential/dense_1"; empty: none
  bool is_gradient = false;                       // it computes a gradient of that layer
  /// Measured, per call of the function, if it was made with `profile`.
  double runs = 0, measured = 0;  // runs, several in a loop; seconds of all threads, without those of kernels inside
};

}  // namespace gradus
