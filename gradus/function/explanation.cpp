/// The explanation as a table.
#include "gradus/function/explanation.h"
#include <algorithm>
#include <iomanip>
#include <ostream>

namespace gradus {

std::ostream& operator<<(std::ostream& out, const Explanation& e) {
  const auto flags = out.flags();
  const auto precision = out.precision();
  out << std::fixed << std::setprecision(2);
  out << "function " << e.name << ": " << e.variants << (e.variants == 1 ? " variant, " : " variants, ") << e.paths
      << (e.paths == 1 ? " path, " : " paths, ") << e.calls << (e.calls == 1 ? " call, " : " calls, ") << e.dispatches
      << " programs started, traced and compiled in " << e.compile_seconds * 1e3 << " ms\n";
  out << "memory: temporaries and results " << e.peak_bytes << " bytes, variables " << e.variable_bytes
      << " bytes, captured constants " << e.constant_bytes << " bytes\n";
  std::size_t width = 6;
  for (const Kernel& kernel : e.kernels) width = std::max(width, std::min<std::size_t>(kernel.name.size(), 60));
  out << "kernels: " << e.kernels.size() << '\n';
  for (const Kernel& kernel : e.kernels)
    out << "  " << std::left << std::setw(static_cast<int>(width)) << kernel.name.substr(0, 60) << std::right
        << "  read " << std::setw(10) << kernel.bytes_read << "  written " << std::setw(10) << kernel.bytes_written
        << "  MFLOP " << std::setw(9) << kernel.flops / 1e6 << '\n';
  for (const Retrace& retrace : e.retraces) out << "variant " << retrace.variant << ": " << retrace.reason << '\n';
  out.flags(flags);
  out.precision(precision);
  return out;
}

}  // namespace gradus
