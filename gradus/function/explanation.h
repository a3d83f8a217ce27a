/// Explanation: the report of a compiled function about itself.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>
#include "gradus/backend/kernel.h"

namespace gradus {

/// The reason for which a function was traced again.
struct Retrace {
  int variant;         // the one that was made
  std::string reason;  // "argument 1: dimension 0 was 64, now 40"
};

/// The report of a compiled function about itself. Printed, it is a table of kernels with the reasons of retraces.
struct Explanation {
  std::string name;               // of the function
  std::vector<Kernel> kernels;    // of the newest variant, in the order of execution; of each path, where it branches
  std::vector<Retrace> retraces;  // in order, since the function was made
  std::size_t peak_bytes = 0, variable_bytes = 0;  // temporaries and results of a call; variables read or assigned
  std::size_t recomputed_bytes = 0;                // of values computed again because of max_bytes
  std::size_t constant_bytes = 0;                  // tensors captured by the lambda: fixed when traced
  int variants = 0;                                // compiled signatures that are kept
  int paths = 0;                                   // control-flow paths among them: one each without C++ branches
  std::int64_t calls = 0, dispatches = 0;          // so far; a dispatch starts one program
  double compile_seconds = 0;                      // tracing and compiling, of all variants
  double side_by_side_seconds = 0;                 // a call, estimated: gained by kernels of one stage running together
  double measured_seconds = 0;                     // a call's programs, the first call left out; 0: without `profile`
  /// Sums exchanged with other processes, a call on average, over all steps that the strategy ran.
  double exchanges = 0, exchanged_bytes = 0;  // their number; their bytes
  /// Seconds of these sums, a call on average.
  double exchange_seconds = 0, exchange_wait_seconds = 0;  // in all; the part in which no kernel ran
  int threads = 1;                                         // among which kernels are divided
  ThreadRates rates;                                       // compared with the measured ones
  std::string target;                                      // the facts that passes used: a line for each kind of device
  /// Text form of the newest variant, which parse_graph reads. Comments say where segments between C++ branches begin.
  std::string graph() const { return graph_text; }
  friend std::ostream& operator<<(std::ostream& out, const Explanation& explanation);

  // For the rooms of the library.
  std::string graph_text;
};

}  // namespace gradus
