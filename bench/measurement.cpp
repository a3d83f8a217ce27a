#include "bench/measurement.h"
#include <sys/times.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>
#include <sstream>
#include <thread>

namespace gradus::bench {
namespace {

using Json = nlohmann::ordered_json;

double from_environment(const char* name, double otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? std::strtod(value, nullptr) : otherwise;
}

double status_mb(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return std::strtod(line.c_str() + field.size() + 1, nullptr) / 1024;
  return 0;
}

/// Seconds of processor time since the machine started.
struct Usage {
  double busy = 0, stolen = 0, own = 0;

  static Usage now() {
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    std::ifstream stat("/proc/stat");
    std::string name;
    double user, nice, system, idle, waiting, hard, soft, steal;
    stat >> name >> user >> nice >> system >> idle >> waiting >> hard >> soft >> steal;
    tms mine;
    times(&mine);
    return {(user + nice + system + hard + soft) / ticks, steal / ticks,
            static_cast<double>(mine.tms_utime + mine.tms_stime) / ticks};
  }
  double others_since(const Usage& before) const { return busy - before.busy - (own - before.own); }
};

/// Waits until nobody else computes, a few seconds at most; false where others do not stop.
bool wait_for_quiet() {
  constexpr double limit_s = 6, quiet_s = 0.03;
  for (const double start = seconds_now(); seconds_now() - start < limit_s;) {
    const Usage before = Usage::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    if (Usage::now().others_since(before) < quiet_s) return true;
  }
  return false;
}

struct Sample {
  std::vector<double> seconds;
  double others = 0;  // cores kept busy by other processes
  Json cores;
};

Sample sample(const std::function<void()>& step, double min_s, std::size_t min_repeats, double max_s) {
  Sample taken;
  const Usage before = Usage::now();
  const double start = seconds_now();
  double elapsed = 0;
  while (on_any_rank((elapsed < min_s || taken.seconds.size() < min_repeats) && elapsed < max_s)) {
    const double begin = seconds_now();
    step();
    const double end = seconds_now();
    taken.seconds.push_back(end - begin);
    elapsed = end - start;
  }
  const Usage after = Usage::now();
  taken.others = after.others_since(before) / elapsed;
  taken.cores = {{"others", taken.others},
                 {"steal", (after.stolen - before.stolen) / elapsed},
                 {"own", (after.own - before.own) / elapsed}};
  return taken;
}

/// Measures again, at most three times, while others take more than a little of the machine. Under load, and where it
/// never becomes quiet, once: `cores` says how much others took.
Sample least_disturbed_sample(const std::function<void()>& step) {
  const double min_s = from_environment("BAR_MIN_S", 3), max_s = from_environment("BAR_MAX_S", 25);
  const auto min_repeats = static_cast<std::size_t>(from_environment("BAR_MIN_REP", 30));
  constexpr double tolerable = 0.06, enough_s = 30;
  if (from_environment("BAR_LOADED", 0) != 0) return sample(step, min_s, min_repeats, max_s);
  Sample best;
  const double start = seconds_now();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const bool is_quiet = wait_for_quiet();
    Sample taken = sample(step, min_s, min_repeats, max_s);
    taken.cores["attempts"] = attempt;
    if (attempt == 1 || taken.others < best.others) best = std::move(taken);
    if (!on_any_rank(is_quiet && best.others >= tolerable && seconds_now() - start <= enough_s)) break;
  }
  return best;
}

/// Linear between neighbours, as numpy does it.
double percentile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double sustained_seconds(const Timed& timed, double median_s) {
  const double min_s = from_environment("BAR_MIN_S", 3);
  const double wanted = std::max(10.0, std::min(2.0, min_s) / median_s);
  const auto steps = static_cast<long>(std::min(wanted, std::max(3.0, 10 / median_s)));
  const double start = seconds_now();
  for (long i = 0; on_any_rank(i < steps); ++i) timed.step_without_reading();
  timed.wait();
  return (seconds_now() - start) / static_cast<double>(steps);
}

/// Seven significant digits: losses are compared.
Json rounded(const Json& value) {
  if (value.is_number_float()) {
    std::ostringstream out;
    out.precision(7);
    out << value.get<double>();
    return std::strtod(out.str().c_str(), nullptr);
  }
  if (!value.is_structured()) return value;
  Json result = value;
  for (Json& part : result) part = rounded(part);
  return result;
}

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}
Json seconds_since_exec() {
  const char* began = std::getenv("T0");
  return began ? Json(wall_seconds() - std::strtod(began, nullptr)) : Json();
}
double resident_mb() { return status_mb("VmRSS:"); }
double peak_resident_mb() { return status_mb("VmHWM:"); }

Figures measure(const Timed& timed) {
  constexpr int warm_up = 5;
  const double before_mb = resident_mb();
  double start = seconds_now();
  timed.step();
  const double first_s = seconds_now() - start;
  const Json from_exec_s = seconds_since_exec();
  start = seconds_now();
  timed.step();
  const double second_s = seconds_now() - start;
  for (int i = 1; i < warm_up; ++i) timed.step();
  Sample taken = least_disturbed_sample(timed.step);
  while (on_any_rank(timed.lacks_steps && timed.lacks_steps())) timed.step();
  const double mean_s =
      std::accumulate(taken.seconds.begin(), taken.seconds.end(), 0.0) / static_cast<double>(taken.seconds.size());
  std::ranges::sort(taken.seconds);
  const double median_s = percentile(taken.seconds, 0.5);
  const double sustained_s = sustained_seconds(timed, median_s);
  return {median_s * 1e6,
          taken.seconds.front() * 1e6,
          percentile(taken.seconds, 0.9) * 1e6,
          first_s,
          {{"mean_us", mean_s * 1e6},
           {"sustained_us", sustained_s * 1e6},
           {"second_call_s", second_s},
           {"exec_to_first_s", from_exec_s},
           {"reps", taken.seconds.size()},
           {"cores", taken.cores},
           {"rss_before_mb", std::lround(before_mb)},
           {"rss_growth_mb", std::lround(peak_resident_mb() - before_mb)}},
          {}};
}

void Figures::explain(Explanation e) {
  extra["compile_s"] = e.compile_seconds;
  extra["kernels"] = e.kernels.size();
  explanation = std::move(e);
}

void add_losses(Figures& figures, const std::vector<double>& losses) {
  figures.extra["first_loss"] = losses.front();
  figures.extra["loss_after_10"] = losses.at(compared_steps / 2);
  figures.extra["loss_after_20"] = losses.at(compared_steps);
  figures.extra["loss"] = losses.back();
}

void print_line(const std::string& workload, const Figures& figures) {
  const Json line = {{"peer", "gradus"},
                     {"mode", workload == "eager_chain" ? "lazy" : "function"},
                     {"workload", workload},
                     {"median_us", figures.median_us},
                     {"min_us", figures.min_us},
                     {"p90_us", figures.p90_us},
                     {"first_call_s", figures.first_call_s},
                     {"import_s", 0},
                     {"peak_rss_mb", std::lround(peak_resident_mb())},
                     {"extra", figures.extra}};
  std::cout << rounded(line).dump() << std::endl;
}

}  // namespace gradus::bench
