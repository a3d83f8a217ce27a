#include "bench/profile.h"
#include <iomanip>
#include <iostream>
#include <sstream>
#include "gradus/base/error.h"
#include "gradus/function/profile.h"
#include "gradus/profile/machine_rates.h"

namespace gradus::bench {
namespace {

/// What is not even one part in two hundred of the time is one row.
constexpr double least_share = 0.005;

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return std::move(out).str();
}

void print_row(const KernelRow& row) {
  const bool works = row.kernels > 0;
  const auto rate = [&](double per_second) { return works ? fixed(per_second / 1e9, 1) : ""; };
  const auto share = [&](double of_peak) { return works ? fixed(of_peak * 100, 0) + " %" : ""; };
  std::cout << "| " << row.name << " | " << (works ? fixed(row.runs, 0) : "") << " | " << fixed(row.seconds * 1e6, 1)
            << " | " << fixed(row.share * 100, 1) << " % | " << rate(row.achieved.flops) << " | "
            << share(row.achieved.of_flops) << " | " << rate(row.achieved.bytes) << " | "
            << share(row.achieved.of_bytes) << " |\n";
}

}  // namespace

void print_profile(const std::string& workload, const Figures& figures) {
  require(figures.explanation.has_value(), workload, " has no one function whose kernels it measures");
  Explanation explanation = *figures.explanation;
  explanation.rates.bytes = machine_rates().bytes;
  std::cout << "`" << workload << "`: " << fixed(explanation.measured_seconds * 1e6, 1) << " us a step on "
            << explanation.threads << " threads in " << explanation.kernels.size()
            << " kernels. One thread's peak: " << fixed(explanation.rates.flops / 1e9, 0) << " GFLOP/s, "
            << fixed(explanation.rates.narrow_flops / 1e9, 0) << " in bf16; " << fixed(explanation.rates.bytes / 1e9, 1)
            << " GB/s of memory.\n\n"
            << "| kernel | runs | us, all threads | share | GFLOP/s a thread | of peak | GB/s a thread | of memory |\n"
            << "|---|---|---|---|---|---|---|---|\n";
  KernelRow others{.name = "others", .achieved = {}};
  for (const KernelRow& row : profile_of(explanation)) {
    if (row.share >= least_share || row.name == "waiting") {
      print_row(row);
      continue;
    }
    others.runs += row.runs;
    others.seconds += row.seconds;
    others.share += row.share;
  }
  print_row(others);
}

}  // namespace gradus::bench
