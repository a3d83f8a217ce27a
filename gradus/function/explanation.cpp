/// The explanation as a table.
#include "gradus/function/explanation.h"
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <map>
#include <ostream>
#include "gradus/base/error.h"
#include "gradus/function/profile.h"

namespace gradus {
namespace {

constexpr std::size_t longest_name = 48, bar_length = 12;

std::string counted(std::int64_t n, const char* what) { return text(n, " ", what, n == 1 ? "" : "s"); }

std::string number(double value, int digits) {
  TextStream out;
  out << std::fixed << std::setprecision(digits) << value;
  return std::move(out).str();
}

/// "512 B", "12.0 KiB", "3.4 MiB"
std::string bytes(std::size_t n) {
  if (n < 1024) return text(n, " B");
  double value = static_cast<double>(n);
  for (const char* unit : {" KiB", " MiB"}) {
    value /= 1024;
    if (value < 1000) return number(value, 1) + unit;
  }
  return number(value / 1024, 1) + " GiB";
}

/// "12.3 us", "4.56 ms"
std::string duration(double seconds) {
  if (seconds < 1e-3) return number(seconds * 1e6, 1) + " us";
  return seconds < 1 ? number(seconds * 1e3, 2) + " ms" : number(seconds, 2) + " s";
}

std::string percent(double share) { return number(share * 100, 0) + " %"; }

std::string shortened(const std::string& given) {
  const std::string name = printable(given, true);
  return name.size() <= longest_name ? name : name.substr(0, longest_name - 3) + "...";
}

/// The bytes alive, as a part of the most.
std::string bar(std::size_t alive, std::size_t most) {
  const std::size_t length = most == 0 ? 0 : (alive * bar_length + most - 1) / most;
  return std::string(length, '#');
}

/// One line a kernel; a bracket joins those that run side by side.
class KernelTable {
 public:
  KernelTable(const std::vector<Kernel>& kernels, const ThreadRates& rates) : kernels_(kernels), rates_(rates) {
    for (const Kernel& kernel : kernels) {
      is_measured_ = is_measured_ || kernel.runs > 0;
      has_devices_ = has_devices_ || kernel.device != kernels.front().device;
      most_ = std::max(most_, kernel.bytes_alive);
      ++stages_[kernel.stage];
    }
    for (const Kernel& kernel : kernels) width_ = std::max(width_, name_of(kernel).size());
    for (std::size_t k = 0; k < kernels.size(); ++k) order_.push_back(k);
    std::ranges::stable_sort(order_, {}, [&](std::size_t k) { return kernels[k].stage; });
  }

  void print(std::ostream& out) const {
    print_line(out, {"stage", "kernel", "read", "written", "MFLOP", "estimated"},
               {"measured", "GFLOP/s", "of peak", "GB/s", "of peak"}, "alive");
    int last = -1;
    for (std::size_t k : order_) {
      const Kernel& kernel = kernels_[k];
      const bool joined = stages_.at(kernel.stage) > 1;
      const std::string stage = (kernel.stage == last ? "" : std::to_string(kernel.stage)) + (joined           ? " |"
                                                                                              : kernel.divided ? " /"
                                                                                                               : "  ");
      last = kernel.stage;
      print_line(out,
                 {stage, name_of(kernel), bytes(kernel.bytes_read), bytes(kernel.bytes_written),
                  is_estimated(kernel) ? number(kernel.flops / 1e6, 2) : "-",
                  is_estimated(kernel) ? duration(kernel.seconds) : "-"},
                 measured(kernel), bytes(kernel.bytes_alive) + "  " + bar(kernel.bytes_alive, most_));
    }
  }
  /// Stages of several kernels.
  std::int64_t joined() const {
    return std::ranges::count_if(stages_, [](const auto& stage) { return stage.second > 1; });
  }
  std::size_t most() const { return most_; }

 private:
  using Cells = std::vector<std::string>;

  /// False for the program of a plugin, which says nothing about its kernels.
  static bool is_estimated(const Kernel& kernel) { return kernel.seconds > 0 || kernel.device.kind == DeviceKind::cpu; }
  /// With the device, where kernels run on several.
  std::string name_of(const Kernel& kernel) const {
    return has_devices_ ? text(kernel.device, ' ', shortened(kernel.name)) : shortened(kernel.name);
  }

  /// Beside the estimate: the measured time, and its rates.
  Cells measured(const Kernel& kernel) const {
    const Achieved achieved = achieved_by(kernel, rates_);
    return {duration(kernel.measured), number(achieved.flops / 1e9, 1), percent(achieved.of_flops),
            number(achieved.bytes / 1e9, 1), percent(achieved.of_bytes)};
  }
  void print_line(std::ostream& out, const Cells& cells, const Cells& measured, const std::string& alive) const {
    out << std::right << std::setw(8) << cells[0] << "  " << std::left << std::setw(static_cast<int>(width_))
        << cells[1] << std::right;
    for (std::size_t i = 2; i < cells.size(); ++i) out << std::setw(11) << cells[i];
    for (std::size_t i = 0; is_measured_ && i < measured.size(); ++i) out << std::setw(i == 0 ? 11 : 9) << measured[i];
    const std::size_t end = alive.find("  ");
    out << "  " << std::setw(10) << alive.substr(0, end) << (end == std::string::npos ? "" : alive.substr(end)) << '\n';
  }

  const std::vector<Kernel>& kernels_;
  const ThreadRates& rates_;
  bool is_measured_ = false, has_devices_ = false;
  std::vector<std::size_t> order_;
  std::map<int, int> stages_;  // how many kernels each has
  std::size_t width_ = 6, most_ = 0;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Explanation& e) {
  const auto flags = out.flags();
  out << "function " << printable(e.name, true) << ": " << counted(e.variants, "variant") << ", "
      << counted(e.paths, "path") << ", " << counted(e.calls, "call") << ", " << counted(e.dispatches, "program")
      << " started; traced and compiled in " << duration(e.compile_seconds) << '\n';
  out << "memory: " << bytes(e.peak_bytes) << " of temporaries and results, " << bytes(e.variable_bytes)
      << " of variables, " << bytes(e.constant_bytes) << " of captured constants";
  if (e.recomputed_bytes > 0) out << "; " << bytes(e.recomputed_bytes) << " computed again to keep to max_bytes";
  out << '\n';
  for (const Retrace& retrace : e.retraces) out << text("variant ", retrace.variant, ": ", retrace.reason, '\n');
  const KernelTable table(e.kernels, e.rates);
  if (!e.target.empty()) out << "compiled for " << e.target << '\n';
  out << counted(static_cast<std::int64_t>(e.kernels.size()), "kernel") << " of the newest variant ( | side by side, / "
      << "divided among threads; time on one thread):\n";
  if (e.measured_seconds > 0)
    out << "measured: " << duration(e.measured_seconds) << " a call on " << counted(e.threads, "thread")
        << "; times of kernels are those of all threads together, rates those of one\n";
  if (e.exchanges > 0)
    out << "sums with other processes: " << std::lround(e.exchanges) << " messages of "
        << bytes(static_cast<std::size_t>(e.exchanged_bytes)) << " a call, under way for "
        << duration(e.exchange_seconds) << ", of which kernels hid "
        << std::lround(100 * std::max(0.0, 1 - e.exchange_wait_seconds / e.exchange_seconds)) << " %\n";
  if (!e.kernels.empty()) table.print(out);
  if (const std::int64_t joined = table.joined(); joined > 0)
    out << "kernels run side by side in " << counted(joined, "stage") << ": about " << duration(e.side_by_side_seconds)
        << " a call less than one after the other\n";
  out.flags(flags);
  return out;
}

}  // namespace gradus
