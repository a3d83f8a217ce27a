/// Lookup of the watched number.
#include "gradus/train/monitor.h"
#include <algorithm>
#include <cmath>
#include "gradus/base/nearest.h"
#include "gradus/base/ranges.h"
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/train/history_record.h"

namespace gradus {

Remembered::Remembered(std::string name, double value)
    : variable_(full({}, value, f64), std::move(name), {.trainable = false}) {}
void Remembered::operator=(double value) { variable_.assign(full({}, value, f64)); }

Monitor::Monitor(std::string callback, std::string monitor, MonitorMode mode, double min_delta)
    : callback_(std::move(callback)), monitor_(long_name(monitor)), mode_(mode), min_delta_(min_delta) {
  check_number(callback_, "min_delta", Allowed::not_negative("min_delta"), min_delta);
}

std::optional<double> Monitor::value(const EpochLog& log) const {
  const auto is_absent = [&](std::string_view name) { return std::ranges::find(log.absent, name) != log.absent.end(); };
  if (is_absent(monitor_.empty() ? "validation_loss" : monitor_)) return {};
  if (monitor_.empty() && log.validation_loss) return log.validation_loss;
  if (log.has_loss && (monitor_.empty() || monitor_ == "loss")) return log.loss;
  if (monitor_ == "validation_loss" && log.validation_loss) return log.validation_loss;
  std::vector<std::string> known;
  if (log.has_loss) known.push_back("loss");
  if (log.validation_loss) known.push_back("validation_loss");
  for (const auto& [name, number] : log.metrics) {
    if (!monitor_.empty() && long_name(name) == monitor_) return number;
    known.push_back(name);
  }
  const std::string wanted = monitor_.empty() ? "loss" : monitor_;
  throw InvalidArgument(text(callback_, ": there is no `", wanted, "` to watch", did_you_mean(wanted, known)));
}

bool Monitor::more_is_better() const {
  if (mode_ != MonitorMode::automatic) return mode_ == MonitorMode::max;
  for (const char* word : {"accuracy", "precision", "recall", "auc"})
    if (monitor_.find(word) != std::string::npos) return true;
  return false;
}

bool Monitor::is_better(double now, double best) const {
  return more_is_better() ? now > best + min_delta_ : now < best - min_delta_;
}

double Monitor::worst() const {
  const double infinity = std::numeric_limits<double>::infinity();
  return more_is_better() ? -infinity : infinity;
}

}  // namespace gradus
