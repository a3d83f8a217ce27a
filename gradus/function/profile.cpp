/// Kernels by name.
#include "gradus/function/profile.h"
#include <algorithm>
#include <map>
#include "gradus/base/error.h"

namespace gradus {
namespace {

/// Work and time of some kernels in a call; rates differ between kernels, so the times at full rate are added up.
struct Work {
  int kernels = 0;
  double runs = 0, seconds = 0, flops = 0, bytes = 0, flop_seconds = 0, byte_seconds = 0;

  void add(const Kernel& kernel, const ThreadRates& rates) {
    const double flops_here = kernel.flops * kernel.runs;
    const double bytes_here = static_cast<double>(kernel.bytes_read + kernel.bytes_written) * kernel.runs;
    ++kernels;
    runs += kernel.runs;
    seconds += kernel.measured;
    flops += flops_here;
    bytes += bytes_here;
    flop_seconds += flops_here / (kernel.narrow ? rates.narrow_flops : rates.flops);
    byte_seconds += bytes_here / rates.bytes;
  }
  Achieved achieved() const {
    if (seconds <= 0) return {};
    return {flops / seconds, flop_seconds / seconds, bytes / seconds, byte_seconds / seconds};
  }
};

}  // namespace

Achieved achieved_by(const Kernel& kernel, const ThreadRates& rates) {
  Work work;
  work.add(kernel, rates);
  return work.achieved();
}

std::vector<KernelRow> profile_of(const Explanation& explanation) {
  require(explanation.measured_seconds > 0, "function ", explanation.name,
          ": nothing was measured; make it with {.profile = true} and call it, twice or more often");
  std::map<std::string, Work> by_name;
  for (const Kernel& kernel : explanation.kernels) by_name[kernel.name].add(kernel, explanation.rates);
  const double all = explanation.measured_seconds * explanation.threads;
  double busy = 0;
  std::vector<KernelRow> rows;
  for (const auto& [name, work] : by_name) {
    rows.push_back({name, work.kernels, work.runs, work.seconds, work.seconds / all, work.achieved()});
    busy += work.seconds;
  }
  std::ranges::stable_sort(rows, std::greater<>(), &KernelRow::seconds);
  const double waiting = std::max(0.0, all - busy);
  rows.push_back({.name = "waiting", .seconds = waiting, .share = waiting / all, .achieved = {}});
  return rows;
}

}  // namespace gradus
